from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Document, Fault, Kind, TaskSpec
from noetl.tools.host.input_rules import Inputs, exactly_one


class PlaybookInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A child execution; its workload comes from `args`."""

    path: Annotated[str | None, Meta(description="`metadata.path` of the playbook to run.")] = None
    version: Annotated[int | str | None, Meta(description="Version in the catalog. Default: the latest.")] = (
        None
    )
    document: Annotated[
        Document | None, Meta(description="A whole playbook, written here instead of named by `path`.")
    ] = None
    return_step: Annotated[
        str | None, Meta(description="Accepted and without effect: the child's result is waited for anyway.")
    ] = None


class PlaybookSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a child execution."""

    wait: Annotated[
        bool | None, Meta(description="Whether to wait for the child's result. Default true.")
    ] = None
    on_failure: Annotated[
        Literal["fail", "continue"] | None,
        Meta(description="What a failed child makes of this task: an error (`fail`, default) or nothing."),
    ] = None


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """One playbook, and a version only where there are versions."""
    yield from exactly_one(inputs, "path", "document", hint="name a playbook by its `metadata.path`")
    if inputs.get("version") is not None and inputs.get("path") is None:
        yield Fault("`version` needs `path`", key="version", hint="only the catalog has versions")


EXAMPLE = """\
name: report
kind: playbook
path: shop/report
args: { region: north }
"""

KIND = Kind(
    name="playbook",
    summary="Runs another playbook as a child and gives its result.",
    result="The result of the child.",
    helpers={"playbook": "`execution_id` and `status` of the child."},
    example=EXAMPLE,
    inputs=PlaybookInputs,
    spec=PlaybookSpec,
    defaults={"wait": True, "on_failure": "fail"},
    spellings={"payload": "args"},
    check=check,
    reads=frozenset(),
)
