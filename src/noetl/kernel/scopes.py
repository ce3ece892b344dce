"""Which namespaces expressions see, for each place they stand at. The only place that builds scopes."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from msgspec import structs

from noetl.dsl.document.playbook import Guard, Write
from noetl.events.bodies import Patch
from noetl.expr.runtime.marker import ReferenceUnresolved, write_at_path
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.expr.runtime.truth import truthy
from noetl.expr.template import Template, render
from noetl.kernel.references.resolve import (
    Fetched,
    Unfetched,
    element_at,
    missing_keys,
    secret_keys_in,
    substitute_fetched,
)
from noetl.kernel.result_rules import INLINE_MAX_BYTES
from noetl.kernel.state.reducers import combine
from noetl.kernel.state.run_state import ExecutionInputs, Frame, RunState, reducer_of
from noetl.kernel.state.variables import json_size, size_growth, variable_at
from noetl.model.errors import ExpressionError, NoetlError
from noetl.model.json import Json
from noetl.model.reference import (
    is_reference,
    is_table_reference,
    may_hold_marker,
    references_in,
    stored_keys,
    unescape,
)

CTX_KEYS = 1_000
"""The most keys that `ctx` may have."""

CTX_BYTES = 1_048_576
"""The most that `ctx` may take in JSON, references counted as what they take themselves."""
ROWS_BYTES = 128 << 20
"""The most that a table may take whose rows are read; as Python objects they take many times as much."""
KEPT_BYTES = 2_048
"""About what a reference takes in place of a large value."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def playbook_time(micros: int) -> str:
    """A time as playbooks see it."""
    seconds, micro = divmod(micros, 1_000_000)
    return f"{_second(seconds)}.{micro:06d}Z" if micro else f"{_second(seconds)}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    # Most times that are asked for lie in the same few seconds.
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")


class EvaluationScope:
    """A scope whose `ctx`, `run` and `iter` can be written: what follows sees it at once.

    `seed` is what tells this decision from all others, for `random`. For what a worker decides it must not
    hold a time: its clock is not on record.
    """

    __slots__ = ("_fetched", "_room", "_run", "_used", "expression_scope", "namespaces", "patches")

    def __init__(
        self,
        spaces: dict[str, Any],
        now: int,
        seed: tuple[object, ...],
        results: Mapping[str, object] | None = None,
        run: RunState | None = None,
        *,
        ctx_size: int = 0,
        fetched: Fetched | None = None,
        iterator: str = "",
    ) -> None:
        self._fetched: Fetched = fetched or {}
        self._used: set[str] | None = None
        self._room = CTX_BYTES - ctx_size
        if fetched:  # else nothing can be put in place, and values need not be walked through
            for name, space in spaces.items():
                spaces[name] = self.with_fetched(space)
            results = self.with_fetched(results)
        self.namespaces = spaces
        self.expression_scope = Scope(
            spaces, results=results or {}, now=_clock(now), draw=_draws(spaces, seed), iterator=iterator
        )
        self.patches: list[Patch] = []
        self._run = run

    def holds(self, guard: Guard) -> bool:
        """Whether a condition is true here. Raises ExpressionError."""
        return (
            guard
            if isinstance(guard, bool)
            else truthy(guard.evaluate(self.expression_scope, EvaluationSite.GUARD))
        )

    def value(self, data: Template) -> Json:
        """Raises ExpressionError."""
        return render(data, self.expression_scope)

    def mapping(self, entries: Mapping[str, Template]) -> dict[str, Json]:
        """Raises ExpressionError."""
        return {key: render(data, self.expression_scope) for key, data in entries.items()}

    def write(self, write: Write) -> None:
        """Evaluate one assignment. Raises ExpressionError."""
        assert write.scope != "args"  # noqa: S101 - the reader makes those the args of their arc
        patch = Patch(scope=write.scope, path=write.path, value=self.value(write.value))
        values = _namespace_after(self.namespaces.get(patch.scope), patch, self._run)
        if patch.scope == "ctx":
            self._require_room(patch, values)
        self.patches.append(patch)
        self.namespaces[patch.scope] = values

    def _require_room(self, patch: Patch, values: Mapping[str, Any]) -> None:
        if len(values) > CTX_KEYS:
            raise limit_error(f"ctx would have more than {CTX_KEYS} keys")
        self._room -= size_growth(self.namespaces.get("ctx") or {}, patch.path, inline_stand_in(patch.value))
        if self._room < 0:
            raise limit_error(
                f"with `ctx.{'.'.join(patch.path)}`, ctx would be larger than {CTX_BYTES:,} bytes"
            )

    def with_fetched(self, value: Any) -> Any:
        """The value with what was fetched in its place."""
        if not self._fetched:
            return value
        if self._used is None:
            self._used = set()
        return substitute_fetched(value, self._fetched, self._used)

    def for_tool(self, values: list[Any], fetched: Fetched, revealed: Fetched | None) -> list[Any]:
        """The whole values, as users wrote them.

        With `revealed`, the secrets in all but the last are in their places; without, they stay hidden.
        Raises Unfetched and SecretLost.
        """
        if not may_hold_marker(values):  # the common case: a search in the bytes, not a walk
            return values
        used: set[str] = set()
        values = substitute_fetched(values, fetched, used)
        for reference in references_in(values):
            if huge := _too_large_table(reference):
                raise huge
        missing = missing_keys(values, fetched)
        if revealed is not None:
            values = [*substitute_fetched(values[:-1], revealed, used), values[-1]]
            missing |= secret_keys_in(values[:-1])
        if missing:
            raise self._needs(missing | used)
        unescaped: list[Any] = unescape(values)
        return unescaped

    def _needs(self, missing: set[str]) -> Unfetched:
        return Unfetched(tuple(sorted(missing.union(self._used or ()))))

    def unfetched(self, error: ReferenceUnresolved) -> NoetlError:
        """What to raise for a value that is not at hand: that it must be fetched, or that it cannot be."""
        missing = set(stored_keys(error.reference)) - self._fetched.keys()
        if huge := _too_large_table(error.reference):
            return huge
        return self._needs(missing) if missing else error

    def apply_patch(self, patch: Patch) -> None:
        """Take over a write that is evaluated already."""
        self.patches.append(patch)
        self.namespaces[patch.scope] = write_at_path(
            self.namespaces.get(patch.scope), patch.path, patch.value
        )


def _too_large_table(reference: dict[str, Any]) -> ExpressionError | None:
    """Why the rows of a table are not read, if there are too many."""
    if not is_table_reference(reference) or reference["size"] <= ROWS_BYTES:
        return None
    error = limit_error(
        f"a table of {reference['size']:,} bytes is not read as rows: {ROWS_BYTES:,} are the most"
    )
    error.hint = "loop over it, or hand the whole table to a tool that takes it, such as duckdb"
    return error


def limit_error(message: str) -> ExpressionError:
    error = ExpressionError(message)
    error.kind = "limit"
    return error


def inline_stand_in(value: Any) -> Any:
    """Something about as large as what stays of a value in the log."""
    return "." * KEPT_BYTES if json_size(value) > INLINE_MAX_BYTES else value


def _namespace_after(values: object, patch: Patch, run: RunState | None) -> dict[str, Any]:
    """What a scope looks like to its writer after a write."""
    reducer = reducer_of(run, patch) if run is not None else ""
    value = combine(reducer, variable_at(values, patch.path), [patch.value]) if reducer else patch.value
    return write_at_path(values, patch.path, value)


# One moment for all of a decision, and not the clock: deciding it again must give the same.
def _clock(now: int) -> Callable[[], str]:
    return lambda: playbook_time(now)


def _draws(spaces: Mapping[str, Any], seed: tuple[object, ...]) -> Callable[[int], int]:
    """Numbers below a bound that look random, and come out the same when the decision is made again."""
    count = 0

    def draw(bound: int) -> int:
        nonlocal count
        count += 1
        text = repr((spaces["execution_id"], *seed, spaces.get("_attempt"), count))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") * bound >> 64

    return draw


def workload_scope(inputs: ExecutionInputs, workload: Mapping[str, Any], now: int) -> EvaluationScope:
    """For the defaults of the workload."""
    seed = ("workload", len(workload), now)
    return EvaluationScope({"workload": workload, "execution_id": inputs.execution_id}, now, seed)


def state_scope(
    inputs: ExecutionInputs,
    ctx: Mapping[str, Any],
    steps: Mapping[str, Any],
    now: int,
    token: str = "",
    **extra: Any,
) -> EvaluationScope:
    """For what the server asks outside of runs: admission, a step's args, the execution's output."""
    spaces = {
        "workload": inputs.workload,
        "execution_id": inputs.execution_id,
        "ctx": ctx,
        "steps": steps,
        **extra,
    }
    return EvaluationScope(spaces, now, ("state", token, now))


def loop_scope(run: RunState, now: int, fetched: Fetched | None = None) -> EvaluationScope:
    """For `loop.in` and the loop's knobs."""
    return EvaluationScope(_run_namespaces(run), now, ("loop", run.id), fetched=fetched)


def task_scope(
    run: RunState,
    frame: Frame,
    now: int,
    keychain: Mapping[str, Any] | None,
    fetched: Fetched | None = None,
) -> EvaluationScope:
    """For a task's args, inputs and spec."""
    spaces = _run_namespaces(run)
    spaces["iter"] = _iter_namespace(run, frame)
    spaces["_prev"] = frame.prev
    label = spaces["_task"] = run.task(frame).label
    spaces["_attempt"] = max(frame.attempt - frame.forgiven, 1)
    if keychain is not None:
        spaces["keychain"] = keychain
    loop = run.step.step.loop
    scope = EvaluationScope(
        spaces,
        now,
        ("task", run.id, frame.index, label, frame.visits.get(label)),
        frame.results,
        run,
        ctx_size=run.ctx.size,
        fetched=fetched,
        iterator=loop.iterator if loop is not None and run.loop is not None else "",
    )
    for patch in frame.contributions:
        fetched_patch = structs.replace(patch, value=scope.with_fetched(patch.value))
        try:
            scope.namespaces[patch.scope] = _namespace_after(
                scope.namespaces[patch.scope], fetched_patch, run
            )
        except ReferenceUnresolved as error:
            raise scope.unfetched(error) from None
    return scope


def routing_scope(
    run: RunState,
    ctx: Mapping[str, Any],
    steps: Mapping[str, Any],
    event: Mapping[str, Any],
    now: int,
    *,
    ctx_size: int = 0,
) -> EvaluationScope:
    """For a step's own writes, and its arcs."""
    spaces = _run_namespaces(run)
    spaces["ctx"] = ctx
    spaces["steps"] = steps
    spaces["event"] = event
    return EvaluationScope(spaces, now, ("run", run.id, now), ctx_size=ctx_size)


def console_scope(
    namespaces: Mapping[str, Any],
    now: int,
    fetched: Fetched,
    results: Mapping[str, object] | None = None,
    iterator: str = "",
) -> EvaluationScope:
    """For what somebody asks about an execution: the namespaces of another scope, and what was fetched."""
    return EvaluationScope(dict(namespaces), now, ("console",), results, fetched=fetched, iterator=iterator)


def _run_namespaces(run: RunState) -> dict[str, Any]:
    spaces: dict[str, Any] = {
        "workload": run.inputs.workload,
        "execution_id": run.inputs.execution_id,
        "ctx": run.ctx.values,
        "steps": run.steps,
        "args": run.args,
        "run": run.variables.values,
    }
    if run.joined is not None:
        spaces["joined"] = run.joined
    return spaces


def item_keys(run: RunState, frame: Frame) -> tuple[str, ...]:
    """Where the item of this iteration is stored, if it is."""
    if run.loop is None or type(run.loop.items) is list:
        return ()
    item = element_at(run.loop.items, frame.index)
    return stored_keys(item) if is_reference(item) else ()


def _iter_namespace(run: RunState, frame: Frame) -> dict[str, Any]:
    loop = run.loop
    index = frame.index
    if loop is None or run.step.step.loop is None:
        return {"index": 0, "count": 1, "first": True, "last": True, **frame.iter.values}
    return {
        run.step.step.loop.iterator: element_at(loop.items, index),
        "index": index,
        "count": loop.total,
        "first": index == 0,
        "last": index == loop.total - 1,
        **frame.iter.values,
    }
