from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.host.input_rules import Action, Format, Inputs, check_action


class ArtifactInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on a result store."""

    action: Annotated[Literal["put", "get", "list", "delete"], Meta(description="What to do.")]
    key: Annotated[str | None, Meta(description="Name of the artifact; for `list`, how the names begin.")] = (
        None
    )
    ref: Annotated[
        str | dict[str, Any] | None, Meta(description="Reference to the artifact, instead of `key`.")
    ] = None
    content: Annotated[Any, Meta(description="What to store.")] = None
    format: Annotated[
        Format | None,
        Meta(
            description="How it is written or read. Default: `put` goes by the content, "
            "`get` gives a reference."
        ),
    ] = None
    store: Annotated[str | None, Meta(description="Name of a result store. Default: the engine's own.")] = (
        None
    )


ACTIONS = {
    "put": Action(needs=(("content",),), takes=("key", "format")),
    "get": Action(needs=(("key", "ref"),), takes=("format",)),
    "list": Action(takes=("key",)),
    "delete": Action(needs=(("key", "ref"),)),
}


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """What the action needs."""
    return check_action(ACTIONS, inputs)


EXAMPLE = """\
name: keep
kind: artifact
action: put
key: reports/today.json
content: { orders: 3, total: 20.5 }
"""

KIND = Kind(
    name="artifact",
    summary="Stores, reads, lists or deletes artifacts in a result store.",
    result="A reference to what was put, the content, or a list.",
    example=EXAMPLE,
    inputs=ArtifactInputs,
    check=check,
    takes_references=frozenset({"content", "ref", "args"}),
    reads=frozenset(),
    implementation="noetl.tools.artifact.tool:ArtifactTool",
)
