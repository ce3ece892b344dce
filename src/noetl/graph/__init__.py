"""Pictures of playbooks: the net of steps and arcs as SVG, PNG, Mermaid or DOT."""

from collections.abc import Mapping

from noetl.dsl.document.playbook import Playbook
from noetl.graph.dot import dot_of
from noetl.graph.errors import GraphError
from noetl.graph.mermaid import mermaid_of
from noetl.graph.picture import picture_of
from noetl.graph.svg import png_of, svg_of

__all__ = ["FORMATS", "GraphError", "draw"]

FORMATS = ("svg", "png", "mermaid", "dot")


def draw(playbook: Playbook, format: str, *, states: Mapping[str, str] | None = None) -> bytes:  # noqa: A002
    """The playbook's net in one of FORMATS; texts are UTF-8. Equal playbooks give equal bytes.

    `states` (step name → status) colours steps by what happened; steps it does not name are faded.
    Raises GraphError for an unknown format or a missing library.
    """
    picture = picture_of(playbook, states)
    match format:
        case "svg":
            return svg_of(picture).encode()
        case "png":
            return png_of(svg_of(picture))
        case "mermaid":
            return mermaid_of(picture).encode()
        case "dot":
            return dot_of(picture).encode()
        case _:
            raise GraphError(f"unknown format `{format}`: one of {', '.join(FORMATS)}")
