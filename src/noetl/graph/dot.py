"""The picture as a Graphviz digraph."""

from collections.abc import Iterator

from noetl.graph.lines import lines
from noetl.graph.palette import EDGE, FAILURE, FORK, tint_of
from noetl.graph.picture import Edge, Node, Picture
from noetl.graph.playbook_text import short

LONGEST = 80


def dot_of(picture: Picture) -> str:
    """A digraph from top to bottom. Node ids are numbers; names are in the labels."""
    text = [
        f"digraph {quoted(escaped(picture.title))} {{",
        f"  graph [label={quoted(escaped(picture.title))}, labelloc=t, rankdir=TB, fontname=Helvetica]",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11]',
        f'  edge [fontname=Helvetica, fontsize=10, color="{EDGE}"]',
    ]
    text.extend(f"  s{number} [{', '.join(_node(node))}]" for number, node in enumerate(picture.nodes))
    text.extend(f"  s{edge.source} -> s{edge.target}{_edge(edge)}" for edge in picture.edges)
    return "\n".join([*text, "}", ""])


def escaped(content: str) -> str:
    """Text as Graphviz shows it unchanged: it reads backslashes and HTML entities in labels."""
    return content.replace("&", "&amp;").replace("\\", "\\\\")


def quoted(content: str) -> str:
    """A string of the DOT language."""
    return '"' + content.replace('"', '\\"') + '"'


def _node(node: Node) -> Iterator[str]:
    tint = tint_of(node.state, node.roles)
    yield "label=" + quoted("".join(f"{escaped(short(line, LONGEST))}\\l" for line in lines(node)))
    yield f'fillcolor="{tint.fill}"'
    yield f'color="{tint.stroke}"'
    if any(badge.kind == "loop" for badge in node.badges):
        yield "peripheries=2"
    if node.faded:
        yield 'fontcolor="#94a3b8"'


def _edge(edge: Edge) -> str:
    """Dashed and red for failures, thick for arcs that may be taken together."""
    attributes: list[str] = []
    label = f"{edge.order} {short(edge.text, LONGEST)}".strip()
    if label:
        attributes.append(f"label={quoted(escaped(label))}")
        attributes.append(f"tooltip={quoted(escaped(edge.text or label))}")
    if edge.failure:
        attributes.append(f'color="{FAILURE}", fontcolor="{FAILURE}", style=dashed')
    elif edge.order == "+":
        attributes.append(f'color="{FORK}", penwidth=1.6')
    return f" [{', '.join(attributes)}]" if attributes else ""
