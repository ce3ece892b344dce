"""The picture as text that other programs draw: a Mermaid flowchart for pages, a Graphviz digraph (DOT)."""

import json
import re
from collections.abc import Iterator

from noetl.graph.palette import EDGE, FAILURE, FORK, STATES, UNTAKEN, tint_of
from noetl.graph.picture import Picture, PictureEdge, PictureNode, node_lines
from noetl.graph.playbook_text import LONGEST_LABEL, shorten

# A `+`, `-` or `_` that begins or ends a word could be read as a list or as emphasis.
_MERMAID_SPECIAL = re.compile(r"[^\w .,\u00d7…·/()=!?@$^'◇⋎⟳↻↩■✓✗-]|(?<![^\W_])[_-]|[_-](?![^\W_])")
_MERMAID_SHAPES = {"start": ('(["', '"])'), "end": ('(["', '"])'), "final": ('[["', '"]]')}


def mermaid_of(picture: Picture) -> str:
    """A flowchart from top to bottom. Node ids are numbers, so no name can be a keyword."""
    chart = ["---", f"title: {json.dumps(shorten(picture.title, LONGEST_LABEL))}", "---", "flowchart TD"]
    chart.extend(f"  s{number}{_mermaid_node(node)}" for number, node in enumerate(picture.nodes))
    chart.extend(f"  {_mermaid_edge(edge)}" for edge in picture.edges)
    chart.extend(_mermaid_styles(picture))
    return "\n".join([*chart, ""])


def _mermaid_escape(content: str) -> str:
    """Text inside quotes; all that Mermaid, Markdown or HTML could read as more than text is encoded."""
    return _MERMAID_SPECIAL.sub(lambda special: f"#{ord(special[0])};", shorten(content, LONGEST_LABEL))


def _mermaid_node(node: PictureNode) -> str:
    opening, closing = _MERMAID_SHAPES[node.roles[0]] if node.roles else ('["', '"]')
    name, *details = (_mermaid_escape(line) for line in node_lines(node))
    return opening + "<br/>".join([f"<b>{name}</b>", *details]) + closing


def _mermaid_edge(edge: PictureEdge) -> str:
    """Dotted for failures, thick for arcs that may be taken together."""
    arrow = "-->"
    if edge.order == "+":
        arrow = "==>"
    if edge.failure:
        arrow = "-.->"
    label = _mermaid_escape(edge.label)
    return f"s{edge.source} {arrow}" + (f'|"{label}"| ' if label else " ") + f"s{edge.target}"


def _mermaid_styles(picture: Picture) -> Iterator[str]:
    for state, tint in STATES.items():
        members = [f"s{number}" for number, node in enumerate(picture.nodes) if node.state == state]
        if members:
            yield f"  classDef {state} fill:{tint.fill},stroke:{tint.stroke}"
            yield f"  class {','.join(members)} {state}"
    faded = [f"s{number}" for number, node in enumerate(picture.nodes) if node.faded]
    if faded:
        yield "  classDef faded opacity:0.4"
        yield f"  class {','.join(faded)} faded"
    untaken = [str(number) for number, edge in enumerate(picture.edges) if edge.faded]
    if untaken:
        yield f"  linkStyle {','.join(untaken)} opacity:0.4,stroke-dasharray:2 4"
    failures = [str(number) for number, edge in enumerate(picture.edges) if edge.failure]
    if failures:
        yield f"  linkStyle {','.join(failures)} stroke:{FAILURE}"


def dot_of(picture: Picture) -> str:
    """A digraph from top to bottom. Node ids are numbers; names are in the labels."""
    title = _dot_quote(_dot_escape(picture.title))
    text = [
        f"digraph {title} {{",
        f"  graph [label={title}, labelloc=t, rankdir=TB, fontname=Helvetica]",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11]',
        f'  edge [fontname=Helvetica, fontsize=10, color="{EDGE}"]',
    ]
    text.extend(f"  s{number} [{', '.join(_dot_node(node))}]" for number, node in enumerate(picture.nodes))
    text.extend(f"  s{edge.source} -> s{edge.target}{_dot_edge(edge)}" for edge in picture.edges)
    return "\n".join([*text, "}", ""])


def _dot_escape(content: str) -> str:
    """Text as Graphviz shows it unchanged: it reads backslashes and HTML entities in labels."""
    return content.replace("&", "&amp;").replace("\\", "\\\\")


def _dot_quote(content: str) -> str:
    """A string of the DOT language."""
    return '"' + content.replace('"', '\\"') + '"'


def _dot_node(node: PictureNode) -> Iterator[str]:
    tint = tint_of(node.state, node.roles)
    yield "label=" + _dot_quote(
        "".join(f"{_dot_escape(shorten(line, LONGEST_LABEL))}\\l" for line in node_lines(node))
    )
    yield f'fillcolor="{tint.fill}"'
    yield f'color="{tint.stroke}"'
    if any(badge.kind == "loop" for badge in node.badges):
        yield "peripheries=2"
    if node.faded:
        yield 'fontcolor="' + UNTAKEN + '"'


def _dot_edge(edge: PictureEdge) -> str:
    """Dashed and red for failures, thick for arcs that may be taken together, dotted if not taken."""
    attributes: list[str] = []
    if label := shorten(edge.label, LONGEST_LABEL):
        attributes.append(f"label={_dot_quote(_dot_escape(label))}")
        attributes.append(f"tooltip={_dot_quote(_dot_escape(edge.guard or label))}")
    if edge.faded:
        attributes.append(f'color="{UNTAKEN}", fontcolor="{UNTAKEN}", style=dotted')
    elif edge.failure:
        attributes.append(f'color="{FAILURE}", fontcolor="{FAILURE}", style=dashed')
    elif edge.order == "+":
        attributes.append(f'color="{FORK}", penwidth=1.6')
    return f" [{', '.join(attributes)}]" if attributes else ""
