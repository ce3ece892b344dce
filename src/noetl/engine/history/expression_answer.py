"""What an expression gives on the state of an execution as it was, with the stored values that it reads."""

import asyncio

import msgspec

from noetl.engine.history.read import RecordedHistory
from noetl.expr.expression import Expression
from noetl.kernel.explain.expression_console import ExpressionConsole, parse_question
from noetl.kernel.expression_reads import truncate_value
from noetl.kernel.references.resolve import Unfetched
from noetl.kernel.scopes import limit_error
from noetl.model.secret import printable_value
from noetl.model.table_reader import decode_value_or_table, split_row_key
from noetl.ports.execution_views import EvaluatedExpression, EvaluateRequest
from noetl.ports.results import ResultStore
from noetl.stores.results.result_reader import read_result

FETCHED_BYTES = 32 << 20
"""The most that is read of stored values for one answer."""
ANSWER_BYTES = 1 << 20
"""A larger value is cut."""


async def answer_expression(
    history: RecordedHistory, request: EvaluateRequest, at: int, results: ResultStore
) -> EvaluatedExpression:
    """Its value after event `at`, worked out beside the event loop. Raises ExpressionError, ResultError."""
    expression = parse_question(request.expr)
    console = await asyncio.to_thread(_console, history, request, at)
    fetched: dict[str, object] = {}
    room = FETCHED_BYTES
    while True:
        try:
            return await asyncio.to_thread(_answer, console, expression, fetched, at, request.step)
        except Unfetched as needed:
            missing = [key for key in needed.keys if key not in fetched]
            if not missing:
                raise
            for key in missing:
                room -= await _stored_size(results, key)
                if room < 0:
                    raise limit_error(f"more than {FETCHED_BYTES:,} stored bytes are not read here") from None
                fetched[key] = decode_value_or_table(await read_result(results, key))


def _console(history: RecordedHistory, request: EvaluateRequest, at: int) -> ExpressionConsole:
    execution_id, events = history.record.execution_id, history.events[:at]
    return ExpressionConsole(
        history.plan, execution_id, events, step=request.step, iteration=request.iteration
    )


def _answer(
    console: ExpressionConsole, expression: Expression, fetched: dict[str, object], at: int, step: str
) -> EvaluatedExpression:
    value, reads = console.evaluate(expression, fetched)
    value = printable_value(value)
    is_large = len(msgspec.json.encode(value)) > ANSWER_BYTES
    return EvaluatedExpression(
        execution_id=console.state.execution_id,
        at=at,
        step=step or None,
        run=console.run.id if console.run is not None else None,
        value=truncate_value(value) if is_large else value,
        cut=is_large,
        reads=[msgspec.structs.replace(read, value=printable_value(read.value)) for read in reads],
        names=console.names,
    )


async def _stored_size(results: ResultStore, key: str) -> int:
    stored, rows = split_row_key(key)
    if rows is not None:
        return 0  # a few rows of a table, which are bounded
    async with results.local(stored) as path:
        return path.stat().st_size
