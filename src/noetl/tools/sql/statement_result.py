"""What a SQL task gives: the shape that all SQL kinds share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from noetl.kernel.references.reference_builder import value_preview
from noetl.kernel.result_rules import INLINE_MAX_BYTES, PREVIEW_MAX_BYTES
from noetl.model import Json
from noetl.model.outcome import Outcome
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference, encode_value
from noetl.ports.results import ObjectDraft
from noetl.ports.tool import Call


class StatementResult(NamedTuple):
    """What one statement gave. `rows` are mappings or a stored Arrow table; None if it returns no rows.

    `row_count` is the number of rows, or of those that the statement changed.
    """

    columns: Sequence[str] = ()
    rows: list[dict[str, Json]] | StoredReference | None = None
    row_count: int = 0


def sql_task_result(answers: Sequence[StatementResult]) -> dict[str, Json]:
    """The result of a task: the last answer with rows, and each by its number, as `command_0`."""
    last = next((one for one in reversed(answers) if one.rows is not None), None)
    last = last or (answers[-1] if answers else StatementResult())
    return {
        **_shape(last),
        "statements": len(answers),
        **{f"command_{number}": _shape(one) for number, one in enumerate(answers)},
    }


def sql_outcome(
    call: Call, answers: Sequence[StatementResult], warnings: list[str], **helpers: dict[str, Json]
) -> Outcome:
    """The outcome of a task that went well; its warnings go into the log, too."""
    for warning in warnings:
        call.log(f"warning: {warning}")
    meta: dict[str, Any] = {"warnings": warnings} if warnings else {}
    return Outcome(status="ok", result=sql_task_result(answers), meta=meta, helpers=helpers)


def _shape(answer: StatementResult) -> dict[str, Any]:
    rows = [] if answer.rows is None else answer.rows
    return {"rows": rows, "row_count": answer.row_count, "columns": list(answer.columns)}


def inline_limit(call: Call) -> int:
    """Bytes of JSON up to which rows stay values; a larger table is stored as Arrow."""
    limit = _kept(call, "inline_max_bytes")
    return INLINE_MAX_BYTES if limit is None else min(limit, INLINE_MAX_BYTES)


def preview_limit(call: Call) -> int:
    """Bytes that a preview may take."""
    limit = _kept(call, "preview_max_bytes")
    return PREVIEW_MAX_BYTES if limit is None else limit


async def store_table(
    call: Call, draft: ObjectDraft, columns: Sequence[str], row_count: int, first: list[dict[str, Json]]
) -> StoredReference:
    """Stores the Arrow stream that the draft's file holds; `first` are rows of it, for the preview."""
    preview = value_preview(encode_value(first), preview_limit(call))
    return await draft.keep(
        ARROW_MEDIA_TYPE, preview=preview, type="list", length=row_count, columns=list(columns)
    )


def _kept(call: Call, knob: str) -> int | None:
    spec = call.spec.get("result")
    value = spec.get(knob) if isinstance(spec, dict) else None
    return value if isinstance(value, int) else None


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names of columns, each once: a second `id` is `id_2`."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in found:
            number += 1
            own = f"{name}_{number}"
        found[own] = None
    return list(found)
