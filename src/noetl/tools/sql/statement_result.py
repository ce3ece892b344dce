"""What a SQL task gives: the shape that all SQL kinds share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from noetl.kernel.references.reference_builder import preview_of
from noetl.kernel.result_rules import INLINE_MAX_BYTES, PREVIEW_MAX_BYTES
from noetl.model import Json
from noetl.model.outcome import Outcome
from noetl.model.reference import ARROW, Stored, encode_value
from noetl.ports.results import Draft
from noetl.ports.tool import Call


class Answer(NamedTuple):
    """What one statement gave. `rows` are mappings or a stored Arrow table; None if it returns no rows.

    `row_count` is the number of rows, or of those that the statement changed.
    """

    columns: Sequence[str] = ()
    rows: list[dict[str, Json]] | Stored | None = None
    row_count: int = 0


def result_of(answers: Sequence[Answer]) -> dict[str, Json]:
    """The result of a task: the last answer with rows, and each by its number, as `command_0`."""
    last = next((one for one in reversed(answers) if one.rows is not None), None)
    last = last or (answers[-1] if answers else Answer())
    return {
        **_shape(last),
        "statements": len(answers),
        **{f"command_{number}": _shape(one) for number, one in enumerate(answers)},
    }


def outcome_of(
    call: Call, answers: Sequence[Answer], warnings: list[str], **helpers: dict[str, Json]
) -> Outcome:
    """The outcome of a task that went well; its warnings go into the log, too."""
    for warning in warnings:
        call.log(f"warning: {warning}")
    meta: dict[str, Any] = {"warnings": warnings} if warnings else {}
    return Outcome(status="ok", result=result_of(answers), meta=meta, helpers=helpers)


def _shape(answer: Answer) -> dict[str, Any]:
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


async def keep_table(
    call: Call, draft: Draft, columns: Sequence[str], row_count: int, first: list[dict[str, Json]]
) -> Stored:
    """Stores the Arrow stream that the draft's file holds; `first` are rows of it, for the preview."""
    preview = preview_of(encode_value(first), preview_limit(call))
    return await draft.keep(ARROW, preview=preview, type="list", length=row_count, columns=list(columns))


def _kept(call: Call, knob: str) -> int | None:
    spec = call.spec.get("result")
    value = spec.get(knob) if isinstance(spec, dict) else None
    return value if isinstance(value, int) else None


def distinct(names: Sequence[str]) -> list[str]:
    """The names of columns, each once: a second `id` is `id_2`."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in found:
            number += 1
            own = f"{name}_{number}"
        found[own] = None
    return list(found)
