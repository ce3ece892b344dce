"""Pipelines: jumps that never end, errors that pass unseen, parallel writes without a reducer."""

from collections.abc import Iterator

from noetl.dsl.checks.flow.rule_effects import outcomes_of, possible_thens, task_writes
from noetl.dsl.document.guard_verdicts import ERROR, OK
from noetl.dsl.document.playbook import (
    Break,
    Continue,
    Fail,
    Jump,
    Loop,
    Place,
    Playbook,
    Retry,
    Step,
    Task,
)
from noetl.dsl.document.step_graph import components, is_cycle, reachable, reversed_edges
from noetl.dsl.reader import Context, Role, Where


def check_jumps(playbook: Playbook, context: Context) -> None:
    """Every round of jumps has a rule that leaves it other than by an error."""
    for step in playbook.workflow:
        jumps = any(isinstance(then.do, Jump) for task in step.tasks for then in task.thens)
        if jumps and not any(_unreadable(context, step, position) for position in range(len(step.tasks))):
            _check_rounds(step, context)


def check_unmatched_errors(playbook: Playbook, context: Context) -> None:
    """No error goes on because no rule of the policy matched it (000 §6.3)."""
    reported: set[Place] = set()
    for step in playbook.workflow:
        for position, task in enumerate(step.tasks):
            policy = task.policy
            if policy is None or policy.on_unmatched == "fail" or ERROR not in outcomes_of(task):
                continue
            if policy.place in reported or _unreadable(context, step, position):
                continue
            if None in possible_thens(policy, ERROR):
                reported.add(policy.place)
                context.report(
                    "error-falls-through",
                    policy.place,
                    f"an error of `{task.label}` that no rule matches goes on as if it were a success",
                    "add a rule for `outcome.status == 'error'`, an `else`, or `on_unmatched: fail`",
                )


def check_parallel_writes(playbook: Playbook, context: Context) -> None:
    """Parallel iterations write `ctx` and `run` through reducers alone (000 §7.2)."""
    for step in playbook.workflow:
        if step.loop is None:
            continue
        written = set()
        for write in (write for task in step.tasks for write in task_writes(task)):
            if write.scope not in ("ctx", "run"):
                continue
            key = f"{write.scope}.{'.'.join(write.path)}"
            written.add(key)
            if step.loop.mode == "parallel" and key not in step.loop.reduce:
                context.report(
                    "parallel-set-ctx",
                    write.place,
                    f"parallel iterations of `{step.name}` write `{key}`, and no reducer combines them",
                    f"name a reducer: `loop.spec.reduce: {{ {key}: last }}`, or write `iter` instead",
                )
        _check_reducers(step, step.loop, written, context)


def _check_reducers(step: Step, loop: Loop, written: set[str], context: Context) -> None:
    for key in loop.reduce:
        if key not in written:
            context.report(
                "unused-reducer",
                context.reducers.get((step.name, key), loop.place),
                f"nothing in the loop of `{step.name}` writes `{key}`",
                "write it with `set_ctx` or `set_run`, or remove the reducer",
            )


def _unreadable(context: Context, step: Step, position: int) -> bool:
    return Where(Role.POLICY, step.name, position) in context.unreadable


def _check_rounds(step: Step, context: Context) -> None:
    """Tasks as nodes; one more node is the end of the pipeline."""
    number = {task.label: position for position, task in enumerate(step.tasks)}
    end = len(step.tasks)
    after = [sorted(set(_targets(task, position, number, end))) for position, task in enumerate(step.tasks)]
    after.append([])
    trapped = reachable(after, [0]) - reachable(reversed_edges(after), [end])
    for part in components(after) if trapped else ():
        if part[0] in trapped and is_cycle(after, part):
            _report_round(step, part, number, context)


def _report_round(step: Step, part: list[int], number: dict[str, int], context: Context) -> None:
    """Reports at the first jump that goes back."""
    back = [
        then
        for position in part
        for then in step.tasks[position].thens
        if isinstance(then.do, Jump) and part[0] <= number.get(then.do.to, len(number)) <= position
    ]
    names = ", ".join(f"`{step.tasks[position].label}`" for position in part)
    context.report(
        "endless-jump",
        back[0].place,
        f"these jumps never end: no rule leaves {names}",
        "give the jump a `when`, and add an `else` with `do: break` or `do: continue`",
    )


def _targets(task: Task, position: int, number: dict[str, int], end: int) -> Iterator[int]:
    """Where the pipeline may go on. A way out that only an error takes does not count."""
    if task.policy is None:
        yield position + 1
        return
    for status in outcomes_of(task):
        for then in possible_thens(task.policy, status):
            match then.do if then is not None else Continue():
                case Jump(to=label):
                    yield number.get(label, end)
                case Continue() if then is not None or status == OK or task.policy.on_unmatched == "continue":
                    yield position + 1
                case Break():
                    yield end
                case Fail() | Retry() if status == OK:
                    yield end
                case _:
                    pass
