"""One attempt of a task: from the kernel's instruction to the tool and back."""

import asyncio
from functools import partial
from time import perf_counter_ns, time_ns
from typing import Any

from msgspec.structs import replace

from noetl.kernel import RunState
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.scopes import iso
from noetl.model.outcome import ErrorInfo, Outcome, failed
from noetl.ports.control import Ledger
from noetl.ports.tool import Call, Tool
from noetl.tools.hosting import Tools

GRACE = 1.0
"""Seconds beyond its timeout after which a tool is interrupted that does not keep to it."""


async def attempt(tools: Tools, ledger: Ledger, run: RunState, move: RunTask) -> Outcome:
    """What the tool makes of it. Never raises but for cancellation."""
    began = perf_counter_ns()
    started = time_ns() // 1_000
    tool = tools.get(move.task.kind)
    outcome = _unknown(move.task.kind) if tool is None else await _bounded(tool, call_of(ledger, run, move))
    return replace(outcome, meta=_meta(ledger, move, outcome, started, began))


def attempt_now(tools: Tools, ledger: Ledger, run: RunState, move: RunTask) -> Outcome:
    """The same for a pure tool, which waits for nothing."""
    began = perf_counter_ns()
    started = time_ns() // 1_000
    tool = tools.get(move.task.kind)
    outcome = _unknown(move.task.kind) if tool is None else _at_once(tool, call_of(ledger, run, move))
    return replace(outcome, meta=_meta(ledger, move, outcome, started, began))


def call_of(ledger: Ledger, run: RunState, move: RunTask) -> Call:
    started = move.started
    return Call(
        execution_id=ledger.execution_id,
        task=move.task.label,
        kind=move.task.kind,
        inputs=move.inputs,
        args=move.args,
        spec=move.spec,
        prev=move.prev,
        attempt=started.attempt,
        idempotency_key=move.idempotency_key,
        timeout=move.timeout,
        folder=ledger.folder,
        log=partial(ledger.log, run, started.iteration, started.task, started.attempt),
        objects=ledger.objects(run, started.task),
    )


async def _bounded(tool: Tool, call: Call) -> Outcome:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 -- a coroutine runs in one
    late = False

    def interrupt() -> None:
        nonlocal late
        late = True
        task.cancel()

    handle = loop.call_later(call.timeout + GRACE, interrupt)
    try:
        return await tool.run(call)
    except asyncio.CancelledError:
        if not late:
            raise
        task.uncancel()
        message = f"the tool was not done within {call.timeout:g} s"
        return failed(ErrorInfo(kind="timeout", message=message, retryable=True))
    except Exception as error:  # noqa: BLE001 -- a tool never raises: this is a bug in it, told as one
        return failed(ErrorInfo(kind="tool", message=f"{type(error).__name__}: {error}"))
    finally:
        handle.cancel()


def _at_once(tool: Tool, call: Call) -> Outcome:
    work = tool.run(call)
    try:
        work.send(None)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    except Exception as error:  # noqa: BLE001 -- as above
        return failed(ErrorInfo(kind="tool", message=f"{type(error).__name__}: {error}"))
    work.close()
    message = f"`{call.kind}` says that it is pure, and waits for something"
    return failed(ErrorInfo(kind="tool", message=message))


def _unknown(kind: str) -> Outcome:
    message = f"no tool of kind `{kind}` is installed"
    return failed(ErrorInfo(kind="not_found", message=message))


def _meta(ledger: Ledger, move: RunTask, outcome: Outcome, started: int, began: int) -> dict[str, Any]:
    return {
        **outcome.meta,
        "attempt": move.started.attempt,
        "duration_ms": round((perf_counter_ns() - began) / 1e6, 3),
        "started_at": iso(started),
        "finished_at": iso(time_ns() // 1_000),
        "trace_id": ledger.trace_id,
        "span_id": move.idempotency_key[:16],
        "idempotency_key": move.idempotency_key,
    }
