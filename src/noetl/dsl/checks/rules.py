"""What the policy of a task may do with an outcome, and so whether its step can fail."""

from collections.abc import Iterator

from noetl.dsl.checks.guards import ERROR, OK, matches_on
from noetl.dsl.playbook import Fail, Policy, Retry, Step, Task, Then


def possible_thens(policy: Policy, status: str) -> Iterator[Then | None]:
    """What may follow an outcome of this status; None stands for no rule matching, and comes last."""
    for rule in policy.rules:
        verdict = matches_on(rule.when, status)
        if verdict is not False:
            yield rule.then
        if verdict:
            return
    yield policy.otherwise


def outcomes_of(task: Task) -> tuple[str, ...]:
    """The statuses its tool can give; `noop` has no errors of its own."""
    return (OK,) if task.kind == "noop" else (OK, ERROR)


def may_fail(step: Step) -> bool:
    """Whether a run may fail in the ordinary way: a tool's error, a rule, a gate that says so."""
    if step.admit is not None and (step.admit.on_deny == "fail" or step.admit.timeout is not None):
        return True
    if step.loop is not None and step.loop.failure == "best_effort":
        return False
    return any(_may_fail(task) for task in step.tasks)


def _may_fail(task: Task) -> bool:
    if task.policy is None:
        return task.kind != "noop"
    for status in outcomes_of(task):
        for then in possible_thens(task.policy, status):
            if then is None:
                if status == ERROR and task.policy.on_unmatched == "fail":
                    return True
            elif isinstance(then.do, Fail | Retry):
                return True
    return False
