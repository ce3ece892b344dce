"""What the rules of a task may do with an outcome, whether a step can fail so, and what it may write."""

from collections.abc import Iterator

from noetl.dsl.document.guard_verdicts import ERROR, OK, matches_on
from noetl.dsl.document.playbook import Fail, Policy, RetryTask, Step, Task, Then, Write


def possible_thens(policy: Policy, status: str) -> Iterator[Then | None]:
    """What may follow an outcome of this status; None stands for no rule matching, and comes last."""
    for rule in policy.rules:
        verdict = matches_on(rule.when, status)
        if verdict is not False:
            yield rule.then
        if verdict:
            return
    yield policy.otherwise


def possible_statuses(task: Task) -> tuple[str, ...]:
    """The statuses its tool can give; `noop` has no errors of its own."""
    return (OK,) if task.kind == "noop" else (OK, ERROR)


def step_may_fail(step: Step) -> bool:
    """Whether a run may fail in the ordinary way: a tool's error, a rule, a gate that says so."""
    if step.admit is not None and step.admit.may_fail:
        return True
    if step.loop is not None and step.loop.failure == "best_effort":
        return False
    return any(_may_fail(task) for task in step.tasks)


def _may_fail(task: Task) -> bool:
    if task.policy is None:
        return task.kind != "noop"
    for status in possible_statuses(task):
        for then in possible_thens(task.policy, status):
            if then is None:
                if status == ERROR and task.policy.on_unmatched == "fail":
                    return True
            elif isinstance(then.do, Fail | RetryTask):
                return True
    return False


def task_writes(task: Task) -> Iterator[Write]:
    """The writes that a task and its rules may make."""
    yield from task.writes
    for then in task.thens:
        yield from then.writes


def run_writes(step: Step) -> Iterator[Write]:
    """The writes that a run of the step may make before an arc is taken."""
    for task in step.tasks:
        yield from task_writes(task)
    yield from step.writes


def step_writes(step: Step) -> Iterator[Write]:
    """Every write that the step and its arcs may make."""
    yield from run_writes(step)
    for arc in step.arcs:
        yield from arc.writes
