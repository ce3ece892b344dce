"""What is set at each place of one pipeline: its tasks are nodes, its rules edges."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, assert_never

from noetl.dsl.checks.flow.guard_verdicts import ERROR, OK, matches_on, possible_statuses
from noetl.dsl.checks.flow.name_reads import NameBits
from noetl.dsl.checks.flow.name_sources import task_writes
from noetl.dsl.document.context import ELSE
from noetl.dsl.document.playbook import (
    Break,
    Continue,
    Directive,
    Fail,
    Guard,
    Jump,
    RetryTask,
    Step,
    Task,
    Write,
)
from noetl.expr.runtime.scope import ITERATOR_NAMESPACES
from noetl.expr.use import Path

NOTHING = 0


class TaskContinuation(NamedTuple):
    """How a task may go on: what is set when it is chosen, and what its rule's writes add."""

    do: Directive
    sets: int
    writes: int = NOTHING
    rule: int | None = None


class PipelineEdge(NamedTuple):
    target: int
    sets: int


class PipelineFlow(NamedTuple):
    """What is set, beside what was when the step began.

    An edge leads to a task's index, to the number of tasks for success, to one more for failure.
    """

    matched: tuple[dict[int | None, int], ...] | None
    """For each task what is set when one of its rules has matched, by the rule's index. Of a
    pipeline that sets nothing that is read they were not looked at."""
    edges: tuple[tuple[PipelineEdge, ...], ...]
    before: tuple[int, ...]
    done: int
    failed: int


class NameEncoder(NamedTuple):
    """Turns what a step says into bits. Guards count only if their proofs are asked for."""

    bits: NameBits
    prove: bool
    iterator: str = ""
    """The item of the loop that guards stand in: its name may be that of a namespace."""

    def write_bits(self, writes: Iterable[Write]) -> int:
        sets = NOTHING
        for write in writes:
            sets |= self.bits.write(write)
        return sets

    def proof_bits(self, guard: Guard, *, holds: bool) -> int:
        """What is set, given the guard's verdict."""
        sets = NOTHING
        # `may_prove` changes no result: it saves taking apart guards that prove no name asked for.
        if not isinstance(guard, bool) and self.may_prove(guard):
            for path in guard.proves(holds=holds):
                sets |= self._proof(path)
        return sets

    def may_prove(self, guard: Guard) -> bool:
        """Whether the guard reads a name that matters; only then it is worth taking apart."""
        return self.prove and not isinstance(guard, bool) and any(self._proof(use.path) for use in guard.uses)

    def _proof(self, path: Path) -> int:
        if path[0] == self.iterator:
            return NOTHING
        match path:
            case ("ctx", _, *_):
                return self.bits.ctx(path[1:])
            case ("iter", _, *_):
                return self.bits.iter(path[1:])
            case ("run", _, *_):
                return self.bits.run(path[1:])
            case ("args", _, *_):
                return self.bits.arg(path[1:])
            case ("steps", name, *rest):
                return self.bits.step(name, succeeded=rest[:1] == ["result"])
            case _:
                return self.bits.bare(path)


def pipeline_flow(step: Step, encoder: NameEncoder) -> PipelineFlow:
    """The least that every way through the pipeline sets."""
    if step.loop is not None and step.loop.iterator in ITERATOR_NAMESPACES:
        encoder = encoder._replace(iterator=step.loop.iterator)
    # Fast path of `solve_pipeline`, to which it is equal wherever a way leads: most pipelines set no name
    # that is read, and need neither the verdicts of their rules nor a solution.
    if not _sets_any_name(step, encoder):
        return PipelineFlow(None, (), (NOTHING,) * len(step.tasks), NOTHING, NOTHING)
    return solve_pipeline(step, encoder)


def solve_pipeline(step: Step, encoder: NameEncoder) -> PipelineFlow:
    """As `pipeline_flow`, by following every rule."""
    index_of_label = {task.label: index for index, task in enumerate(step.tasks)}
    done = len(step.tasks)
    continuations = [list(_continuations(task, encoder)) for task in step.tasks]
    matched = tuple(
        {continuation.rule: continuation.sets for continuation in task_continuations}
        for task_continuations in continuations
    )
    edges = []
    for index, task_continuations in enumerate(continuations):
        targets = (
            _target_of(continuation.do, index, index_of_label, done) for continuation in task_continuations
        )
        edges.append(
            tuple(
                PipelineEdge(target, continuation.sets | continuation.writes)
                for target, continuation in zip(targets, task_continuations, strict=True)
            )
        )
    before, seen = _solve(edges, done + 2, encoder.bits.all)
    failed = before[done + 1] if done + 1 in seen and not _fails_anywhere(step) else NOTHING
    return PipelineFlow(matched, tuple(edges), tuple(before[:done]), before[done], failed)


def _sets_any_name(step: Step, encoder: NameEncoder) -> bool:
    for task in step.tasks:
        if encoder.bits.label(task.label) or encoder.write_bits(task_writes(task)):
            return True
        if task.policy is not None and any(encoder.may_prove(rule.when) for rule in task.policy.rules):
            return True
    return False


def _continuations(task: Task, encoder: NameEncoder) -> Iterator[TaskContinuation]:
    """Every way to go on from a task.

    A rule is taken to see a success unless it can only match an error.
    """
    ran = encoder.bits.label(task.label)
    after = {OK: ran | encoder.write_bits(task.writes), ERROR: ran}
    open_statuses = set(possible_statuses(task))
    refuted = NOTHING
    policy = task.policy
    for index, rule in enumerate(policy.rules if policy else ()):
        verdicts = {status: matches_on(rule.when, status) for status in open_statuses}
        if any(verdict is not False for verdict in verdicts.values()):
            status_seen = OK if verdicts.get(OK, False) is not False else ERROR
            sets = after[status_seen] | refuted | encoder.proof_bits(rule.when, holds=True)
            yield TaskContinuation(rule.then.do, sets, encoder.write_bits(rule.then.writes), index)
        open_statuses -= {status for status, verdict in verdicts.items() if verdict is True}
        refuted |= encoder.proof_bits(rule.when, holds=False)
    if policy is not None and policy.otherwise is not None and open_statuses:
        sets = after[OK if OK in open_statuses else ERROR] | refuted
        yield TaskContinuation(policy.otherwise.do, sets, encoder.write_bits(policy.otherwise.writes), ELSE)
        return
    falls_through = policy is not None and policy.on_unmatched == "continue"
    if OK in open_statuses or (ERROR in open_statuses and falls_through):
        yield TaskContinuation(Continue(), after[OK if OK in open_statuses else ERROR] | refuted)
    if ERROR in open_statuses and not falls_through:
        yield TaskContinuation(Fail(), after[ERROR] | refuted)


def _target_of(do: Directive, index: int, index_of_label: dict[str, int], done: int) -> int:
    match do:
        case Continue():
            return index + 1
        case Jump():
            return index_of_label.get(do.to, done + 1)
        case Break():
            return done
        case Fail() | RetryTask():
            # Trying again changes nothing that was set; giving up fails.
            return done + 1
        case _:
            assert_never(do)


def _solve(edges: Sequence[Sequence[PipelineEdge]], size: int, everything: int) -> tuple[list[int], set[int]]:
    """For each node what all ways to it set, everything where no way leads; and where ways lead."""
    before = [everything] * size
    before[0] = NOTHING
    waiting = [0] if edges else []
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        for target, sets in edges[node]:
            state = before[target] & (before[node] | sets)
            # A node that was never seen goes on even if nothing changed: what follows it is reached, too.
            if state != before[target] or target not in seen:
                before[target] = state
                seen.add(target)
                if target < len(edges):
                    waiting.append(target)
    return before, seen


def _fails_anywhere(step: Step) -> bool:
    """Whether a failure may come before any task has run, or take back what was written."""
    refused = step.admit is not None and step.admit.may_fail
    return refused or step.timeout is not None or (step.loop is not None and bool(step.loop.reduce))
