"""Which namespaces expressions see, for each place they stand at. The only place that builds scopes."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from noetl.dsl.playbook import Guard, Write
from noetl.events.bodies import Patch
from noetl.expr import Data, Scope, Site, render, truthy
from noetl.kernel.reducers import combine
from noetl.kernel.run import Frame, Given, RunState, reducer_of
from noetl.kernel.variables import read, written
from noetl.model import ExpressionError, Json

CTX_KEYS = 1_000
"""The most keys that `ctx` may have."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(micros: int) -> str:
    """A time as playbooks see it."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")


class Surroundings:
    """A scope whose `ctx`, `run` and `iter` can be written: what follows sees it at once."""

    __slots__ = ("_run", "patches", "scope", "spaces")

    def __init__(
        self,
        spaces: dict[str, Any],
        now: int,
        results: Mapping[str, object] | None = None,
        run: RunState | None = None,
    ) -> None:
        self.spaces = spaces
        self.scope = Scope(spaces, results=results or {}, now=_clock(now))
        self.patches: list[Patch] = []
        self._run = run

    def holds(self, guard: Guard) -> bool:
        """Whether a condition is true here. Raises ExpressionError."""
        return guard if isinstance(guard, bool) else truthy(guard.evaluate(self.scope, Site.GUARD))

    def value(self, data: Data) -> Json:
        """Raises ExpressionError."""
        return render(data, self.scope)

    def mapping(self, entries: Mapping[str, Data]) -> dict[str, Json]:
        """Raises ExpressionError."""
        return {key: render(data, self.scope) for key, data in entries.items()}

    def write(self, write: Write) -> None:
        """Evaluate one assignment. Raises ExpressionError."""
        assert write.scope != "args"  # noqa: S101 -- the reader makes those the args of their arc
        patch = Patch(scope=write.scope, path=write.path, value=self.value(write.value))
        values = _seen(self.spaces.get(patch.scope), patch, self._run)
        if patch.scope == "ctx" and len(values) > CTX_KEYS:
            raise ExpressionError(f"ctx would have more than {CTX_KEYS} keys")
        self.patches.append(patch)
        self.spaces[patch.scope] = values

    def see(self, patch: Patch) -> None:
        """Take over a write that is evaluated already."""
        self.patches.append(patch)
        self.spaces[patch.scope] = written(self.spaces.get(patch.scope), patch.path, patch.value)


def _seen(values: object, patch: Patch, run: RunState | None) -> dict[str, Any]:
    """What a scope looks like to its writer after a write."""
    reducer = reducer_of(run, patch) if run is not None else ""
    value = combine(reducer, read(values, patch.path), [patch.value]) if reducer else patch.value
    return written(values, patch.path, value)


def _clock(now: int) -> Callable[[], str]:
    return lambda: iso(now)


def workload_scope(given: Given, workload: Mapping[str, Any], now: int) -> Surroundings:
    """For the defaults of the workload."""
    return Surroundings({"workload": workload, "execution_id": given.execution_id}, now)


def state_scope(
    given: Given, ctx: Mapping[str, Any], steps: Mapping[str, Any], now: int, **more: Any
) -> Surroundings:
    """For what the server asks outside of runs: admission, a step's args, the execution's output."""
    spaces = {
        "workload": given.workload,
        "execution_id": given.execution_id,
        "ctx": ctx,
        "steps": steps,
        **more,
    }
    return Surroundings(spaces, now)


def loop_scope(run: RunState, now: int) -> Surroundings:
    """For `loop.in` and the loop's knobs."""
    return Surroundings(_of_run(run), now)


def task_scope(run: RunState, frame: Frame, now: int, keychain: Mapping[str, Any] | None) -> Surroundings:
    """For a task's args, inputs and spec."""
    spaces = _of_run(run)
    for patch in frame.contributions:
        spaces[patch.scope] = _seen(spaces[patch.scope], patch, run)
    spaces["iter"] = _iter(run, frame)
    spaces["_prev"] = frame.prev
    spaces["_task"] = run.task(frame).label
    spaces["_attempt"] = max(frame.attempt - frame.forgiven, 1)
    if keychain is not None:
        spaces["keychain"] = keychain
    return Surroundings(spaces, now, frame.results, run)


def routing_scope(
    run: RunState, ctx: Mapping[str, Any], steps: Mapping[str, Any], event: Mapping[str, Any], now: int
) -> Surroundings:
    """For a step's own writes, and its arcs."""
    spaces = _of_run(run)
    spaces["ctx"] = ctx
    spaces["steps"] = steps
    spaces["event"] = event
    return Surroundings(spaces, now)


def _of_run(run: RunState) -> dict[str, Any]:
    spaces: dict[str, Any] = {
        "workload": run.given.workload,
        "execution_id": run.given.execution_id,
        "ctx": run.ctx.values,
        "steps": run.steps,
        "args": run.args,
        "run": run.scope.values,
    }
    if run.joined is not None:
        spaces["joined"] = run.joined
    return spaces


def _iter(run: RunState, frame: Frame) -> dict[str, Any]:
    loop = run.loop
    index = frame.index
    if loop is None or run.step.step.loop is None:
        return {"index": 0, "count": 1, "first": True, "last": True, **frame.iter.values}
    return {
        run.step.step.loop.iterator: loop.items[index],
        "index": index,
        "count": loop.total,
        "first": index == 0,
        "last": index == loop.total - 1,
        **frame.iter.values,
    }
