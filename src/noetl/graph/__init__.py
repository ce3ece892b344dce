"""Pictures of playbooks: the net of steps and arcs as SVG, PNG, Mermaid or DOT."""

from collections.abc import Callable

from noetl.dsl.document.playbook import Playbook
from noetl.graph.picture import ExecutionFacts, GraphError, Picture, picture_of
from noetl.graph.svg import png_of, svg_of
from noetl.graph.text_formats import dot_of, mermaid_of

__all__ = ["FORMATS", "ExecutionFacts", "GraphError", "draw"]

_WRITERS: dict[str, Callable[[Picture], bytes]] = {
    "svg": lambda picture: svg_of(picture).encode(),
    "png": lambda picture: png_of(svg_of(picture)),
    "mermaid": lambda picture: mermaid_of(picture).encode(),
    "dot": lambda picture: dot_of(picture).encode(),
}
FORMATS = tuple(_WRITERS)


def draw(playbook: Playbook, format: str, *, facts: ExecutionFacts | None = None) -> bytes:  # noqa: A002 - what callers call it
    """The playbook's net in one of FORMATS; texts are UTF-8. Equal playbooks give equal bytes.

    `facts` colours it by what happened in an execution.
    Raises GraphError for an unknown format or a missing library.
    """
    if format not in _WRITERS:
        raise GraphError(f"unknown format `{format}`: one of {', '.join(FORMATS)}")
    return _WRITERS[format](picture_of(playbook, facts))
