"""A step as lines of text, for formats and places that have nothing but text."""

from collections.abc import Iterator

from noetl.graph.picture import PictureNode

GLYPHS = {"admit": "◇", "join": "⋎", "loop": "⟳", "retry": "↻", "jump": "↩", "break": "■"}


def node_lines(node: PictureNode) -> Iterator[str]:
    """All there is to say about a step: its name first, its tasks last; nothing is shortened."""
    words = [*node.roles, *([node.state.replace("_", " ")] if node.state else [])]
    yield node.name + (f" ({', '.join(words)})" if words else "")
    if node.desc:
        yield node.desc
    for badge in node.badges:
        yield f"{GLYPHS[badge.kind]} {badge.text}" + (f" ({badge.detail})" if badge.detail else "")
    for row in node.rows:
        yield f"{row.label} · {row.kind}" + "".join(f" {GLYPHS[mark.kind]} {mark.text}" for mark in row.marks)
