from typing import Annotated

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Kind, TaskSpec


class WorkbookInputs(Struct, frozen=True, kw_only=True):
    """A task of the root `workbook`. Any other input overrides one of that task: its kind knows them."""

    task: Annotated[
        str | None, Meta(description="Name in the root `workbook`. Default: this task's own label.")
    ] = None


class WorkbookSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Overrides the knobs of the named task, those of its kind included."""


EXAMPLE = """\
name: fetch_orders
kind: workbook
task: fetch
params: { page: 2 }
"""

KIND = Kind(
    name="workbook",
    summary="Runs a task of the root `workbook`, with its inputs and policy overridden where given.",
    result="What the named task gives.",
    example=EXAMPLE,
    inputs=WorkbookInputs,
    spec=WorkbookSpec,
)
