"""One attempt of a task: from the kernel's instruction to the tool and back."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.scopes import playbook_time
from noetl.kernel.state.run_state import RunState
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.trace_context import attempt_span_id, traceparent
from noetl.ports.credentials import CredentialError
from noetl.ports.ledger import Ledger
from noetl.ports.tool import Call, Tool
from noetl.tools.host.deadlines import DeadlineExceeded
from noetl.tools.host.tool_attempt import error_outcome, exception_outcome
from noetl.tools.host.worker_tools import Tools
from noetl.worker.keychain.execution_keychain import Keychain
from noetl.worker.keychain.masked_objects import MaskedObjects

MAX_TRACEBACK = 4_000
"""Characters of a traceback that go into events, counted from its end."""

GRACE = 1.0
"""Seconds beyond its timeout after which a tool is interrupted that does not keep to it."""


async def run_attempt(
    tools: Tools, ledger: Ledger, run: RunState, move: RunTask, keychain: Keychain | None = None
) -> Outcome:
    """What the tool makes of it, secrets masked. Never raises but for cancellation."""
    tool, call, finish = _prepare(tools, ledger, run, move, keychain)
    if tool is None:
        return finish(_unknown(move.task.kind))
    if keychain is None:
        return finish(await _run_within_deadline(tools, tool, call))
    return finish(await _run_with_auth(tools, tool, call, keychain))


def run_pure_attempt(
    tools: Tools, ledger: Ledger, run: RunState, move: RunTask, keychain: Keychain | None = None
) -> Outcome:
    """The same for a pure tool, which waits for nothing.

    The fast path of `run_attempt`: without a task of the event loop, a deadline and a turn of the loop for
    each attempt, which is most of what a pure task costs. test_engine_fast_paths.py holds both equal.
    """
    tool, call, finish = _prepare(tools, ledger, run, move, keychain)
    return finish(_unknown(move.task.kind) if tool is None else _run_pure(tool, call))


def _prepare(
    tools: Tools, ledger: Ledger, run: RunState, move: RunTask, keychain: Keychain | None
) -> tuple[Tool | None, Call, Callable[[Outcome], Outcome]]:
    """The tool, what it is called with, and what makes of its outcome the one that is told."""
    system = tools.system
    began, started = system.monotonic(), system.now()
    call = tool_call_of(ledger, run, move, traced=tools.traced)

    def finish(outcome: Outcome) -> Outcome:
        if keychain is not None:
            outcome = keychain.mask_outcome(move, outcome)
        if outcome.error is not None:
            outcome = _log_traceback(outcome, outcome.error, call.log)
        return replace(
            outcome,
            meta={
                **outcome.meta,
                "attempt": move.started.attempt,
                "duration_ms": round((system.monotonic() - began) * 1e3, 3),
                "started_at": playbook_time(started),
                "finished_at": playbook_time(system.now()),
                "trace_id": ledger.trace_id,
                "span_id": move.idempotency_key[:16],
                "idempotency_key": move.idempotency_key,
            },
        )

    return tools.get(move.task.kind), call if keychain is None else mask_call(call, keychain), finish


def _log_traceback(outcome: Outcome, error: ErrorInfo, log: Callable[[str], None]) -> Outcome:
    """The outcome with the end of the traceback that its tool left, which the task's log has whole."""
    text = error.details.get("traceback")
    if not isinstance(text, str):
        return outcome
    log(text.rstrip("\n"))
    # It stands in several events of a failure.
    short = text if len(text) <= MAX_TRACEBACK else f"…{text[-MAX_TRACEBACK:]}"
    return replace(outcome, error=replace(error, details={**error.details, "traceback": short}))


def tool_call_of(ledger: Ledger, run: RunState, move: RunTask, *, traced: bool = False) -> Call:
    started = move.started
    span_id = attempt_span_id(move.idempotency_key, started.attempt) if traced else ""
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
        run_id=run.id,
        traceparent=traceparent(ledger.trace_id, span_id) if traced else "",
        timeout=move.timeout,
        folder=ledger.folder,
        log=partial(ledger.log, run, started.iteration, started.task, started.attempt),
        objects=ledger.objects(run, started.task),
    )


def mask_call(call: Call, keychain: Keychain) -> Call:
    """The call of an execution that knows secrets: what its tool logs and keeps is masked."""
    log, masker = call.log, keychain.masker
    return replace(
        call,
        log=lambda text: log(masker.mask_text(text)),
        objects=MaskedObjects(call.objects, masker),
        credentials=keychain,
        mask=masker,
    )


async def _run_with_auth(tools: Tools, tool: Tool, call: Call, keychain: Keychain) -> Outcome:
    try:
        async with asyncio.timeout(call.timeout):
            inputs, token = await keychain.resolve_auth(call.inputs)
    except CredentialError as error:
        return error_outcome("credential", str(error), retryable=error.retryable)
    except TimeoutError:
        message = f"the credential was not there within {call.timeout:g} s"
        return error_outcome("timeout", message, retryable=True)
    outcome = await _run_within_deadline(tools, tool, replace(call, inputs=inputs))
    if token is not None and 401 in _statuses(outcome):
        keychain.forget_token(token)
    return outcome


def _statuses(outcome: Outcome) -> tuple[Any, Any]:
    """What a server answered, if one did: to the task itself, or to what fetched something for it."""
    details = outcome.error.details if outcome.error else {}
    return outcome.helpers.get("http", {}).get("status"), details.get("status")


async def _run_within_deadline(tools: Tools, tool: Tool, call: Call) -> Outcome:
    try:
        return await tools.deadlines.within(call.timeout + GRACE, tool.run(call))
    except DeadlineExceeded:
        message = f"the tool was not done within {call.timeout:g} s"
        return error_outcome("timeout", message, retryable=True)
    except Exception as error:  # noqa: BLE001 - a tool never raises: this is a bug in it, told as one
        return exception_outcome(error)


def _run_pure(tool: Tool, call: Call) -> Outcome:
    work = tool.run(call)
    try:
        work.send(None)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    except Exception as error:  # noqa: BLE001 - a tool never raises: this is a bug in it, told as one
        return exception_outcome(error)
    work.close()
    message = f"`{call.kind}` says that it is pure, and waits for something"
    return error_outcome("tool", message)


def _unknown(kind: str) -> Outcome:
    message = f"no tool of kind `{kind}` is installed"
    return error_outcome("not_found", message)
