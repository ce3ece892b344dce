"""Pipelines: jumps that never end, errors that pass unseen, parallel writes without a reducer."""

from collections.abc import Iterator

from noetl.dsl.checks.flow.guard_verdicts import ERROR, OK, possible_statuses, possible_thens
from noetl.dsl.checks.flow.name_sources import task_writes
from noetl.dsl.document.context import DocumentContext, ExpressionRole, PlaybookPart
from noetl.dsl.document.playbook import (
    Break,
    Continue,
    Fail,
    Jump,
    Loop,
    Playbook,
    Position,
    RetryTask,
    Step,
    Task,
)
from noetl.dsl.document.step_graph import is_cycle, reachable_nodes, reverse_edges, strong_components


def check_jumps(playbook: Playbook, context: DocumentContext) -> None:
    """Every round of jumps has a rule that leaves it other than by an error."""
    for step in playbook.workflow:
        jumps = any(isinstance(then.do, Jump) for task in step.tasks for then in task.thens)
        if jumps and not any(_is_unreadable(context, step, index) for index in range(len(step.tasks))):
            _check_jump_cycles(step, context)


def check_unmatched_errors(playbook: Playbook, context: DocumentContext) -> None:
    """No error goes on because no rule of the policy matched it (000 §6.3)."""
    reported: set[Position] = set()
    for step in playbook.workflow:
        for index, task in enumerate(step.tasks):
            policy = task.policy
            if policy is None or policy.on_unmatched == "fail" or ERROR not in possible_statuses(task):
                continue
            if policy.position in reported or _is_unreadable(context, step, index):
                continue
            if None in possible_thens(policy, ERROR):
                reported.add(policy.position)
                context.report(
                    "error-falls-through",
                    policy.position,
                    f"an error of `{task.label}` that no rule matches goes on as if it were a success",
                    "add a rule for `outcome.status == 'error'`, an `else`, or `on_unmatched: fail`",
                )


def check_parallel_writes(playbook: Playbook, context: DocumentContext) -> None:
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
                    write.position,
                    f"parallel iterations of `{step.name}` write `{key}`, and no reducer combines them",
                    f"name a reducer: `loop.spec.reduce: {{ {key}: last }}`, or write `iter` instead",
                )
        _check_reducers(step, step.loop, written, context)


def _check_reducers(step: Step, loop: Loop, written: set[str], context: DocumentContext) -> None:
    for key in loop.reduce:
        if key not in written:
            context.report(
                "unused-reducer",
                context.reducers.get((step.name, key), loop.position),
                f"nothing in the loop of `{step.name}` writes `{key}`",
                "write it with `set_ctx` or `set_run`, or remove the reducer",
            )


def _is_unreadable(context: DocumentContext, step: Step, index: int) -> bool:
    return PlaybookPart(ExpressionRole.POLICY, step.name, index) in context.unreadable


def _check_jump_cycles(step: Step, context: DocumentContext) -> None:
    """Tasks as nodes; one more node is the end of the pipeline."""
    number = {task.label: index for index, task in enumerate(step.tasks)}
    end = len(step.tasks)
    successors = [sorted(set(_targets(task, index, number, end))) for index, task in enumerate(step.tasks)]
    successors.append([])
    trapped = reachable_nodes(successors, [0]) - reachable_nodes(reverse_edges(successors), [end])
    for component in strong_components(successors) if trapped else ():
        if component[0] in trapped and is_cycle(successors, component):
            _report_jump_cycle(step, component, number, context)


def _report_jump_cycle(
    step: Step, component: list[int], number: dict[str, int], context: DocumentContext
) -> None:
    """Reports at the first jump that goes back."""
    back = [
        then
        for index in component
        for then in step.tasks[index].thens
        if isinstance(then.do, Jump) and component[0] <= number.get(then.do.to, len(number)) <= index
    ]
    names = ", ".join(f"`{step.tasks[index].label}`" for index in component)
    context.report(
        "endless-jump",
        back[0].position,
        f"these jumps never end: no rule leaves {names}",
        "give the jump a `when`, and add an `else` with `do: break` or `do: continue`",
    )


def _targets(task: Task, index: int, number: dict[str, int], end: int) -> Iterator[int]:
    """Where the pipeline may go on. A way out that only an error takes does not count."""
    if task.policy is None:
        yield index + 1
        return
    for status in possible_statuses(task):
        for then in possible_thens(task.policy, status):
            match then.do if then is not None else Continue():
                case Jump(to=label):
                    yield number.get(label, end)
                case Continue() if then is not None or status == OK or task.policy.on_unmatched == "continue":
                    yield index + 1
                case Break():
                    yield end
                case Fail() | RetryTask() if status == OK:
                    yield end
                case _:
                    pass
