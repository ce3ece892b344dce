"""An execution in one value: what `noetl run -o json` prints and `noetl.run` gives."""

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from noetl.dsl.document.problem import Problem
from noetl.kernel.state.execution_state import ExecutionState, waiting_steps
from noetl.model.errors import NoetlError
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import printable_value


class ExecutionFailed(NoetlError):
    """An execution did not complete; `execution` says how it ended."""

    def __init__(self, execution: "Execution") -> None:
        error = execution.error or {}
        message = f": {error['message']}" if error.get("message") else ""
        super().__init__(f"{execution.execution_id} {execution.status}{message}")
        self.execution = execution


class Execution(Struct, frozen=True, kw_only=True):
    """An execution as it stands, or ended: what `noetl run -o json` prints.

    `error` is `{step, task, attempt, kind, message}` of the first unhandled failure, with the end of the
    `traceback` if that is an exception of a tool; `duration_ms` is from the request's first event to the
    last; of a fork, since it was made. `forked_from` is what it copied. `warnings` are those about its
    playbook, and from a run also those about the playbooks that it started.
    """

    execution_id: str
    playbook: str
    version: str | None
    status: str
    result: Any
    ctx: dict[str, Any]
    error: dict[str, Any] | None
    duration_ms: int
    discarded: list[dict[str, str]]
    waiting: list[dict[str, str]]
    """`{step, reason}` of the steps where tokens wait for a retry of what failed."""
    steps: dict[str, dict[str, Any]]
    warnings: list[Problem]
    forked_from: str | None = None

    @property
    def ok(self) -> bool:
        return self.status == "completed"

    def raise_for_status(self) -> "Execution":
        """The same; raises ExecutionFailed unless it completed."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self


def execution_of(state: ExecutionState, *, last: int = 0) -> Execution:
    """`last` is the time of the last event, where the execution is not over."""
    metadata = state.plan.playbook.metadata
    return Execution(
        execution_id=state.execution_id,
        playbook=metadata.path,
        version=metadata.version,
        status=state.status,
        result=printable_value(state.result),
        ctx=printable_value(state.ctx.values),
        error=_error_json(first_failure(state)),
        duration_ms=elapsed_micros(state, last) // 1_000,
        discarded=[{"step": token["step"], "reason": token["reason"]} for token in state.discarded],
        waiting=waiting_steps(state) if state.over else [],
        steps={
            name: {"status": status, "runs": state.summaries[name].runs}
            for name, status in state.step_statuses().items()
        },
        warnings=list(state.plan.playbook.warnings),
        forked_from=state.fork.source if state.fork is not None else None,
    )


def execution_json(state: ExecutionState, *, version: str | None = None, last_ts: int = 0) -> dict[str, Any]:
    """The document that `run` prints. `last_ts` is the time of the last event of one that is not over."""
    document: dict[str, Any] = msgspec.to_builtins(execution_of(state, last=last_ts))
    return {**document, "version": version or document["version"]}


def marking_json(state: ExecutionState) -> dict[str, dict[str, int]]:
    """By step: how many tokens are enqueued, parked, waiting or joined, and how many runs in which phase."""
    counts: dict[str, Counter[str]] = {}
    for token in state.tokens.values():
        counts.setdefault(state.step_of(token).name, Counter())[token.stage] += 1
    for run in state.runs.values():
        counts.setdefault(run.step.name, Counter())[run.phase] += 1
    return {step: dict(places) for step, places in counts.items()}


def first_failure(state: ExecutionState) -> ErrorInfo | None:
    """The first unhandled failure, also while the rest still runs."""
    if state.error is not None or state.over or not state.failures:
        return state.error
    return state.failures[0].error


def elapsed_micros(state: ExecutionState, last: int = 0) -> int:
    """Microseconds from the request's first event to the last; of a fork, since it was made."""
    return max((state.ended_at or last) - state.began_at, 0)


def _error_json(error: ErrorInfo | None) -> dict[str, Any] | None:
    if error is None:
        return None
    # Before its first attempt, an expression of its inputs may fail: it has none, and not one of number 0.
    where = {name: error.details.get(name) or None for name in ("step", "task", "attempt")}
    traceback = {"traceback": text} if (text := error.details.get("traceback")) else {}
    return {**where, "kind": error.kind, "message": error.message, **traceback}
