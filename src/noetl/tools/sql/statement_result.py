"""What a SQL task gives: the shape that all SQL kinds share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference, encode_value
from noetl.ports.results import ObjectDraft
from noetl.ports.tool import Call
from noetl.tools.host.bounded_text import text_preview
from noetl.tools.host.result_limits import preview_limit


class StatementResult(NamedTuple):
    """What one statement gave. `rows` are mappings or a stored Arrow table; None if it returns no rows.

    `row_count` is the number of rows, or of those that the statement changed.
    """

    columns: Sequence[str] = ()
    rows: list[dict[str, Json]] | StoredReference | None = None
    row_count: int = 0


def sql_task_result(results: Sequence[StatementResult]) -> dict[str, Json]:
    """The result of a task: that of the last statement with rows, and each by its number, as `command_0`."""
    last = next((result for result in reversed(results) if result.rows is not None), None)
    last = last or (results[-1] if results else StatementResult())
    return {
        **_shape(last),
        "statements": len(results),
        **{f"command_{number}": _shape(result) for number, result in enumerate(results)},
    }


def sql_outcome(
    call: Call, results: Sequence[StatementResult], warnings: list[str], **helpers: dict[str, Json]
) -> Outcome:
    """The outcome of a task that went well; its warnings go into the log, too."""
    for warning in warnings:
        call.log(f"warning: {warning}")
    meta: dict[str, Any] = {"warnings": warnings} if warnings else {}
    return Outcome(status="ok", result=sql_task_result(results), meta=meta, helpers=helpers)


def _shape(result: StatementResult) -> dict[str, Any]:
    rows = [] if result.rows is None else result.rows
    return {"rows": rows, "row_count": result.row_count, "columns": list(result.columns)}


async def store_table(
    call: Call, draft: ObjectDraft, columns: Sequence[str], row_count: int, first: list[dict[str, Json]]
) -> StoredReference:
    """Stores the Arrow stream that the draft's file holds; `first` are rows of it, for the preview."""
    preview = text_preview(encode_value(first), preview_limit(call), call.mask)
    return await draft.keep(
        ARROW_MEDIA_TYPE, preview=preview, type="list", length=row_count, columns=list(columns)
    )


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names of columns, each once: a second `id` is `id_2`."""
    taken: dict[str, None] = {}
    for name in names:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken[unique] = None
    return list(taken)
