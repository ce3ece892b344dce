"""What can come of an abstract playbook: every end that some order of events leads to.

It is written from the specification alone and shares nothing with what it judges: no import of the kernel, of
expressions or of the reader. Nothing here is clever. All orders are tried one by one.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

from noetl.testing.oracle.abstract_playbook import (
    AbstractArc,
    AbstractLoop,
    AbstractPlaybook,
    AbstractStep,
    Condition,
    Write,
)
from noetl.testing.oracle.loop_model import reduced_value

MOST_STATES = 600


class TooManyStates(Exception):
    """There are more orders than anybody wants to try."""


class _ModelToken(NamedTuple):
    number: int
    args: Mapping[str, Any]
    source: str | None
    brought: Any
    """The result of the run whose arc brought it."""


class _ModelRun(NamedTuple):
    step: AbstractStep
    args: Mapping[str, Any]
    result: Any
    writes: tuple[tuple[str, Any], ...]
    """What it still writes, one after the other, before it ends."""
    contributions: tuple[Any, ...]
    """What its loop hands to the reducer when it is done."""
    event: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        return bool(self.event["name"] == "step.failed")


class _ModelState:
    """Everything at one moment. A copy shares only what never changes."""

    def __init__(self) -> None:
        self.ctx: dict[str, Any] = {}
        self.runs: list[_ModelRun] = []
        self.waiting: dict[str, tuple[_ModelToken, ...]] = {}
        self.arrivals = 0
        self.fired: frozenset[str] = frozenset()
        """Joins of any that have run."""
        self.failures: tuple[str, ...] = ()
        """Steps of the unhandled failures, in their order."""
        self.counts: dict[str, int] = {}
        self.failed_steps: frozenset[str] = frozenset()
        self.branch_ends: tuple[tuple[int, Any], ...] = ()
        self.discarded: tuple[str, ...] = ()

    def copy(self) -> "_ModelState":
        twin = copy(self)
        twin.ctx, twin.runs, twin.waiting = dict(self.ctx), list(self.runs), dict(self.waiting)
        twin.counts = dict(self.counts)
        return twin


class PlaybookModel:
    """`possible_ends` is what it is for."""

    def __init__(self, playbook: AbstractPlaybook) -> None:
        self.playbook = playbook
        self.steps = {step.name: step for step in playbook.steps}
        self.position = {step.name: number for number, step in enumerate(playbook.steps)}
        self.reach = {name: self._reachable(name) for name in self.steps}

    def _reachable(self, name: str) -> set[str]:
        """The steps to which at least one arc leads from here, over whatever others."""
        reached: set[str] = set()
        ahead = [name]
        while ahead:
            for arc in self.steps[ahead.pop()].arcs:
                if arc.target not in reached:
                    reached.add(arc.target)
                    ahead.append(arc.target)
        return reached

    def possible_ends(self) -> list[dict[str, Any]]:
        """Each end once. Raises TooManyStates."""
        state = _ModelState()
        self._arrive(state, self.playbook.steps[0], {}, None, None)
        self._fire_joins(state)
        ahead, seen, ends = [state], {repr(vars(state))}, {}
        while ahead:
            state = ahead.pop()
            if not state.runs and not self._settle(state):
                end = self._end(state)
                ends[repr(end)] = end
                continue
            for number in range(len(state.runs)) or [-1]:
                following = state.copy()
                if number >= 0:
                    self._advance(following, number)
                key = repr(vars(following))
                if key not in seen:
                    seen.add(key)
                    ahead.append(following)
            if len(seen) > MOST_STATES:
                raise TooManyStates
        return list(ends.values())

    # Tokens and joins

    def _arrive(
        self,
        state: _ModelState,
        step: AbstractStep,
        args: Mapping[str, Any],
        source: str | None,
        brought: Any,
    ) -> None:
        state.arrivals += 1
        token = _ModelToken(state.arrivals, args, source, brought)
        if step.join == "":
            self._schedule(state, step, (token,))
        elif step.join == "any":
            if step.name not in state.fired:
                state.fired |= {step.name}
                self._schedule(state, step, (token,))
        else:
            tokens = (*state.waiting.get(step.name, ()), token)
            if step.join == len(tokens):
                state.waiting.pop(step.name, None)
                self._schedule(state, step, tokens)
            else:
                state.waiting[step.name] = tokens

    def _may_still_come(self, state: _ModelState, name: str) -> bool:
        """Whether a run, a token at another join or a failed run could bring a token to this step."""
        steps = {run.step.name for run in state.runs} | set(state.failures)
        steps |= {other for other in state.waiting if other != name}
        return any(name in self.reach[step] for step in steps)

    def _fire_joins(self, state: _ModelState) -> None:
        """Joins of all that nothing can come to any more."""
        for name in sorted(state.waiting, key=lambda name: state.waiting[name][0].number):
            if self.steps[name].join == "all" and not self._may_still_come(state, name):
                self._schedule(state, self.steps[name], state.waiting.pop(name))

    def _settle(self, state: _ModelState) -> bool:
        """Nothing runs: the join of all that waited longest goes on; then what others left over goes.

        What a retry of a failed run could still change stays. False if nothing is left to do.
        """
        held = {name for failure in state.failures for name in self.reach[failure]}
        free = [name for name in state.waiting if name not in held]
        free.sort(key=lambda name: (self.steps[name].join != "all", state.waiting[name][0].number))
        for name in free[:1]:
            tokens = state.waiting.pop(name)
            if self.steps[name].join == "all":
                self._schedule(state, self.steps[name], tokens)
            else:
                state.discarded += (name,) * len(tokens)
        self._fire_joins(state)
        return bool(free)

    # Runs

    def _schedule(self, state: _ModelState, step: AbstractStep, tokens: tuple[_ModelToken, ...]) -> None:
        """A run sees ctx as it is now, and what it writes itself: so all that it will do is known now."""
        state.counts[step.name] = state.counts.get(step.name, 0) + 1
        args: dict[str, Any] = {}
        for token in tokens:
            args.update(token.args)
        # Of several branches it hands on the result of the last in the document; of its tokens, the first.
        brought = max(tokens, key=lambda token: self.position.get(token.source or "", -1)).brought
        state.runs.append(_run_of(step, args, tokens, state.ctx, brought))

    def _advance(self, state: _ModelState, number: int) -> None:
        run = state.runs[number]
        if run.writes:
            (key, value), *rest = run.writes
            state.ctx[key] = value
            state.runs[number] = run._replace(writes=tuple(rest))
            return
        del state.runs[number]
        step = run.step
        if step.loop is not None and step.loop.reducer and run.contributions:
            state.ctx[step.loop.key] = reduced_value(
                step.loop.reducer, state.ctx.get(step.loop.key), run.contributions
            )
        for write in step.ending_writes:
            state.ctx[write[0]] = write[1]
        taken = self._arcs_taken(state, run)
        error = run.failed or (bool(step.arcs) and not taken and self.playbook.no_next_is_error)
        if error:
            state.failed_steps |= {step.name}
            if not any(arc.condition[0] in ("name", "status", "failed") for arc in taken):
                state.failures += (step.name,)
        elif not taken:
            state.branch_ends += ((self.position[step.name], run.result),)
        self._take(state, run, taken)
        self._fire_joins(state)

    def _arcs_taken(self, state: _ModelState, run: _ModelRun) -> list[AbstractArc]:
        taken = [arc for arc in run.step.arcs if _holds(arc.condition, run, state.ctx)]
        return taken if run.step.inclusive else taken[:1]

    def _take(self, state: _ModelState, run: _ModelRun, arcs: list[AbstractArc]) -> None:
        for arc in arcs:
            for key, value in arc.writes:
                state.ctx[key] = value
        for arc in arcs:
            args = {"v": run.args.get("v", 0) + arc.more, f"of_{run.step.name}": run.event.get("loop", "-")}
            self._arrive(state, self.steps[arc.target], args, run.step.name, run.result)

    def _end(self, state: _ModelState) -> dict[str, Any]:
        steps = {
            name: (
                "waiting"
                if name in state.waiting
                else "failed"
                if name in state.failed_steps
                else "completed",
                runs,
            )
            for name, runs in state.counts.items()
        }
        steps |= {name: ("waiting", 0) for name in state.waiting if name not in steps}
        steps |= {name: ("not_admitted", 0) for name in state.discarded if name not in steps}
        failed = bool(state.failures)
        if (final := self.playbook.final) is not None:
            steps[final.name] = ("failed" if final.failing else "completed", 1)
            counts = ["failed" if failed else "completed", len(state.waiting), len(state.discarded)]
            state.ctx["final"] = counts
            failed = failed or bool(final.failing)
        # The last in the document; of several runs of that step, the one that ended last.
        _, result = max(reversed(state.branch_ends), key=lambda end: end[0], default=(0, None))
        if self.playbook.output:
            result = None if failed else state.ctx.get(self.playbook.output, "none")
        return {
            "status": "failed" if failed else "completed",
            "result": result,
            "ctx": state.ctx,
            "steps": dict(sorted(steps.items())),
            "discarded": sorted(state.discarded),
            "waiting": sorted(state.waiting),
        }


def _run_of(
    step: AbstractStep,
    args: Mapping[str, Any],
    tokens: tuple[_ModelToken, ...],
    ctx: Mapping[str, Any],
    brought: Any,
) -> _ModelRun:
    """A run from what it is given, with all that it will write and how it will end."""
    if step.loop is not None:
        return _loop_run(step, step.loop, args, ctx)
    v = args.get("v", 0)
    seen = dict(ctx)
    writes = []
    for key, value in step.writes:
        seen[key] = _written(value, v, seen)
        writes.append((key, seen[key]))
    failed = v in step.failing
    if step.tool != "value":
        result = brought
    else:
        result = {"step": step.name, "args": dict(args)}
        if step.join != "":
            result["joined"] = [token.source for token in tokens]
        if step.reads:
            result["seen"] = ctx.get(step.reads, "none")
    if failed:
        result = None
    event = {
        "name": "step.failed" if failed else "step.done",
        "v": (result or {}).get("args", {}).get("v") if step.tool == "value" else None,
    }
    return _ModelRun(step, args, result, tuple(writes), (), event)


def _written(value: Any, v: int, seen: Mapping[str, Any]) -> Any:
    if isinstance(value, tuple):
        return v if value[0] == "v" else seen.get(value[1], 0) + 1
    return value


def _loop_run(
    step: AbstractStep, loop: AbstractLoop, args: Mapping[str, Any], ctx: Mapping[str, Any]
) -> _ModelRun:
    """Iterations in the order of their items; where that is not so it makes no difference that is counts."""
    writes: list[Write] = []
    contributions: list[Any] = []
    results: list[Any] = []
    seen = ctx.get(loop.key, "none")
    failed = 0
    for index, item in enumerate(loop.items):
        own = [item, item] if loop.twice else [item]
        if loop.key and loop.reducer:
            seen = reduced_value(loop.reducer, ctx.get(loop.key), own)
        elif loop.key:
            seen = item
            writes += [(loop.key, item)] * len(own)
        if index in loop.failing:
            failed += 1
            results.append(None)
            if not loop.best_effort:
                break
        else:
            contributions += own if loop.key else []
            results.append(
                {"index": index, "item": item, "seen": seen} if loop.key else {"index": index, "item": item}
            )
    if failed and not loop.best_effort:
        return _ModelRun(step, args, None, tuple(writes), (), {"name": "step.failed"})
    counts = {"total": len(loop.items), "succeeded": len(loop.items) - failed, "failed": failed}
    event = {"name": "loop.done", "loop": counts}
    return _ModelRun(step, args, results, tuple(writes), tuple(contributions), event)


def _holds(condition: Condition, run: _ModelRun, ctx: Mapping[str, Any]) -> bool:
    match condition:
        case ("always",):
            return True
        case ("name", name):
            return bool(run.event["name"] == name)
        case ("status", status):
            return bool(status == ("error" if run.failed else "success"))
        case ("failed", kind):
            return run.failed and (kind == "iteration_failed") == (run.step.loop is not None)
        case ("v", least):
            return bool(run.args.get("v", 0) >= least)
        case ("below", limit):
            return bool(run.args.get("v", 0) < limit)
        case ("ctx", key, value):
            return bool(ctx.get(key, 0) == value)
        case ("result", value):
            return isinstance(run.result, dict) and run.result["args"].get("v") == value
        case ("some failed",):
            return run.step.loop is not None and (run.failed or run.event["loop"]["failed"] > 0)
        case _:
            raise ValueError(condition)
