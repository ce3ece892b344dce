"""The picture as a Mermaid flowchart, for pages that draw it themselves."""

import json
import re
from collections.abc import Iterator

from noetl.graph.palette import FAILURE, STATES
from noetl.graph.picture import Picture, PictureEdge, PictureNode, node_lines
from noetl.graph.playbook_text import LONGEST_LABEL, shorten

# A `+`, `-` or `_` that begins or ends a word could be read as a list or as emphasis.
_SPECIAL = re.compile(r"[^\w .,\u00d7…·/()=!?@$^'◇⋎⟳↻↩■✓✗-]|(?<![^\W_])[_-]|[_-](?![^\W_])")
_SHAPES = {"start": ('(["', '"])'), "end": ('(["', '"])'), "final": ('[["', '"]]')}


def mermaid_of(picture: Picture) -> str:
    """A flowchart from top to bottom. Node ids are numbers, so no name can be a keyword."""
    chart = ["---", f"title: {json.dumps(shorten(picture.title, LONGEST_LABEL))}", "---", "flowchart TD"]
    chart.extend(f"  s{number}{_node(node)}" for number, node in enumerate(picture.nodes))
    chart.extend(f"  {_edge(edge)}" for edge in picture.edges)
    chart.extend(_styles(picture))
    return "\n".join([*chart, ""])


def _escape(content: str) -> str:
    """Text inside quotes; all that Mermaid, Markdown or HTML could read as more than text is encoded."""
    return _SPECIAL.sub(lambda special: f"#{ord(special[0])};", shorten(content, LONGEST_LABEL))


def _node(node: PictureNode) -> str:
    opening, closing = _SHAPES[node.roles[0]] if node.roles else ('["', '"]')
    name, *details = (_escape(line) for line in node_lines(node))
    return opening + "<br/>".join([f"<b>{name}</b>", *details]) + closing


def _edge(edge: PictureEdge) -> str:
    """Dotted for failures, thick for arcs that may be taken together."""
    arrow = "-->"
    if edge.order == "+":
        arrow = "==>"
    if edge.failure:
        arrow = "-.->"
    label = _escape(edge.label)
    return f"s{edge.source} {arrow}" + (f'|"{label}"| ' if label else " ") + f"s{edge.target}"


def _styles(picture: Picture) -> Iterator[str]:
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
