"""The picture as a Graphviz digraph."""

from collections.abc import Iterator

from noetl.graph.palette import EDGE, FAILURE, FORK, UNTAKEN, tint_of
from noetl.graph.picture import Picture, PictureEdge, PictureNode, node_lines
from noetl.graph.playbook_text import LONGEST_LABEL, shorten


def dot_of(picture: Picture) -> str:
    """A digraph from top to bottom. Node ids are numbers; names are in the labels."""
    text = [
        f"digraph {_quote(_escape(picture.title))} {{",
        f"  graph [label={_quote(_escape(picture.title))}, labelloc=t, rankdir=TB, fontname=Helvetica]",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11]',
        f'  edge [fontname=Helvetica, fontsize=10, color="{EDGE}"]',
    ]
    text.extend(f"  s{number} [{', '.join(_node(node))}]" for number, node in enumerate(picture.nodes))
    text.extend(f"  s{edge.source} -> s{edge.target}{_edge(edge)}" for edge in picture.edges)
    return "\n".join([*text, "}", ""])


def _escape(content: str) -> str:
    """Text as Graphviz shows it unchanged: it reads backslashes and HTML entities in labels."""
    return content.replace("&", "&amp;").replace("\\", "\\\\")


def _quote(content: str) -> str:
    """A string of the DOT language."""
    return '"' + content.replace('"', '\\"') + '"'


def _node(node: PictureNode) -> Iterator[str]:
    tint = tint_of(node.state, node.roles)
    yield "label=" + _quote(
        "".join(f"{_escape(shorten(line, LONGEST_LABEL))}\\l" for line in node_lines(node))
    )
    yield f'fillcolor="{tint.fill}"'
    yield f'color="{tint.stroke}"'
    if any(badge.kind == "loop" for badge in node.badges):
        yield "peripheries=2"
    if node.faded:
        yield 'fontcolor="' + UNTAKEN + '"'


def _edge(edge: PictureEdge) -> str:
    """Dashed and red for failures, thick for arcs that may be taken together, dotted if not taken."""
    attributes: list[str] = []
    if label := shorten(edge.label, LONGEST_LABEL):
        attributes.append(f"label={_quote(_escape(label))}")
        attributes.append(f"tooltip={_quote(_escape(edge.guard or label))}")
    if edge.faded:
        attributes.append(f'color="{UNTAKEN}", fontcolor="{UNTAKEN}", style=dotted')
    elif edge.failure:
        attributes.append(f'color="{FAILURE}", fontcolor="{FAILURE}", style=dashed')
    elif edge.order == "+":
        attributes.append(f'color="{FORK}", penwidth=1.6')
    return f" [{', '.join(attributes)}]" if attributes else ""
