"""What follows from a playbook alone, computed once and shared by all its executions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from noetl.dsl.document.playbook import Playbook, Step, Task
from noetl.dsl.document.step_graph import ancestor_masks, nodes_on_cycles, step_graph_of
from noetl.expr.expression import Expression
from noetl.expr.runtime.scope import NAMESPACES
from noetl.expr.template import Constant, Template, template_uses
from noetl.kernel.expression_reads import expressions_in
from noetl.kernel.result_rules import execution_rules, step_rules, task_rules
from noetl.kernel.server_reads import Needs, StepExpressions, playbook_expressions
from noetl.model.errors import ExpressionError
from noetl.model.json import Json
from noetl.model.reference import may_hold_marker
from noetl.model.run_rows import DEFAULT_POOL, SERVER_POOL
from noetl.model.timestamp import seconds_of

WAITING_KINDS = frozenset({"playbook", "wait"})
"""Kinds of tasks that wait without a worker."""

TASK_TIMEOUT = 300.0
"""Seconds an attempt may take if the playbook says nothing."""


class Watch(NamedTuple):
    """Something a parked token's rules read: a key of `ctx`, one key below it if named, or a step."""

    space: str
    key: str = ""
    below: str = ""


def pool_of_step(playbook: Playbook, step: Step) -> str:
    """The pool whose workers run this step (semantics §3).

    Of a hybrid playbook the server does itself what only hands values on. Where that looks a secret up it
    does not: workers may see others than the server.
    """
    executor = playbook.executor
    handing_on = all(task.kind == "noop" and not reads_keychain(task) for task in step.tasks)
    if executor.kind == "local" or (executor.kind == "hybrid" and handing_on):
        return SERVER_POOL
    return str(step.spec.get("pool") or executor.spec.get("pool") or DEFAULT_POOL)


def reads_keychain(task: Task) -> bool:
    """Whether inputs or arguments of a task name secrets."""
    data = (*task.inputs.values(), *(task.args or {}).values())
    return any(use.path[0] == "keychain" for value in data for use in template_uses(value))


class StepPlan:
    """A step and what the engine asks about it all the time."""

    __slots__ = (
        "above",
        "arcs",
        "bit",
        "constant_inputs",
        "fresh_keys",
        "handles",
        "keeps_result",
        "kinds",
        "label_at",
        "name",
        "number",
        "only_task",
        "passes",
        "pool",
        "reads_extracted",
        "reads_steps",
        "routes_only",
        "rules",
        "selections",
        "step",
        "task_rules",
        "unconditional",
        "watches",
        "worker_ctx",
    )

    def __init__(
        self, step: Step, number: int, above: int, playbook: Playbook, expressions: StepExpressions
    ) -> None:
        self.step = step
        self.name = step.name
        self.number = number
        self.bit = 1 << number
        self.above = above
        """The steps from which a token can come here, as bits; itself only if it is on a cycle."""
        self.routes_only = not step.tasks and step.loop is None
        self.passes = step.loop is None and all(
            task.kind == "noop" and task.args is None for task in step.tasks
        )
        """Whether its result is that of the step whose arc brought its token (semantics §3)."""
        self.pool = pool_of_step(playbook, step)
        self.kinds = tuple(sorted({task.kind for task in step.tasks}))
        self.arcs = step.arcs
        self.unconditional = tuple(arc.when is True and not arc.args and not arc.writes for arc in step.arcs)
        """Of each arc, whether it is taken always, and its token brings nothing along."""
        self.fresh_keys = frozenset(
            task.label for task in step.tasks if task.spec.get("idempotency") == Constant("per_attempt")
        )
        """Tasks whose every attempt has a key of its own."""
        self.label_at = {task.label: position for position, task in enumerate(step.tasks)}
        self.handles = tuple(arc.handles_failure for arc in step.arcs)
        self.watches = tuple(dict.fromkeys(_watches(step, playbook.steps)))
        self.reads_steps = _steps_that_are_read(
            (*expressions.of_server, *expressions.of_worker), playbook.steps
        )
        read = _keys_read("ctx", expressions.of_worker)
        self.worker_ctx = read | _written_ctx(step) if read is not None else None
        """The keys of `ctx` that its pipeline reads or writes; None if that may be any."""
        self.keeps_result = False
        self.reads_extracted = expressions.reads_extracted
        self.rules = step_rules(playbook, step)
        self.task_rules = {task.label: task_rules(task) for task in step.tasks}
        rules = (self.rules, *self.task_rules.values())
        self.selections = tuple(
            {selection.name: selection for rule_set in rules for selection in rule_set.select}.values()
        )
        """What of a result is kept at hand, whichever task gave it."""
        self.constant_inputs = {
            task.label: inputs for task in step.tasks if (inputs := _constant_inputs(task)) is not None
        }
        """What tasks get in which nothing is to be evaluated."""
        self.only_task = _only_task(step, self.constant_inputs)
        """The task that is all of the pipeline, if nothing about it is to be evaluated."""

    def selected(self, result: Json) -> dict[str, Json]:
        """What `spec.result.select` finds in a result that is not stored elsewhere."""
        return {name: part for selection in self.selections for name, part in selection.find(result).items()}


class ConstantInputs(NamedTuple):
    """Inputs and spec of a task that are the same for every attempt."""

    inputs: dict[str, Json]
    spec: dict[str, Json]
    timeout: float


def _constant_inputs(task: Task) -> ConstantInputs | None:
    if task.args is not None or any(not isinstance(data, Constant) for data in _parts(task)):
        return None
    inputs = {name: data.value for name, data in task.inputs.items() if isinstance(data, Constant)}
    spec = {name: data.value for name, data in task.spec.items() if isinstance(data, Constant)}
    try:
        return None if may_hold_marker([inputs, spec]) else ConstantInputs(inputs, spec, timeout_of(spec))
    except ExpressionError:
        return None  # it is reported when the task is run


def _only_task(step: Step, plain: Mapping[str, ConstantInputs]) -> Task | None:
    if len(step.tasks) != 1:
        return None
    task = step.tasks[0]
    return task if task.label in plain and task.policy is None and not task.writes else None


def timeout_of(spec: Mapping[str, Any]) -> float:
    """The seconds that an attempt may take. Raises ExpressionError."""
    return next(
        (seconds for name in ("timeout", "task_timeout") if (seconds := seconds_in(spec, name))), TASK_TIMEOUT
    )


def seconds_in(spec: Mapping[str, Any], name: str) -> float | None:
    """The seconds that a knob says; None if it is not given, or is about something else than all of them.

    Raises ExpressionError.
    """
    value = spec.get(name)
    if value is None or isinstance(value, dict):
        return None
    try:
        return seconds_of(value)
    except (TypeError, ValueError):
        raise ExpressionError(f"`{name}` is a number of seconds, not {value!r}") from None


def _parts(task: Task) -> Iterator[Template]:
    yield from task.inputs.values()
    yield from task.spec.values()


class Plan:
    """The steps of a playbook by name and by number."""

    __slots__ = ("by_name", "by_number", "needs", "playbook", "rules", "smallest_limit", "worker_workload")

    def __init__(self, playbook: Playbook) -> None:
        net = step_graph_of(playbook)
        above = ancestor_masks(net.successors)
        cyclic = nodes_on_cycles(net.successors)
        outside = playbook_expressions(playbook)
        inside = [StepExpressions(step) for step in playbook.workflow]
        self.playbook = playbook
        self.by_number = [
            # The search counts a step among its own ancestors; its runs reach it again only on a cycle.
            StepPlan(step, number, above[number] & ~(0 if number in cyclic else 1 << number), playbook, own)
            for number, (step, own) in enumerate(zip(playbook.workflow, inside, strict=True))
        ]
        self.by_name = {plan.name: plan for plan in self.by_number}
        read = _steps_that_are_read(outside, playbook.steps)
        for name in read.union(*(plan.reads_steps for plan in self.by_number)):
            self.by_name[name].keeps_result = True
        by_server = (expression for own in inside for expression in own.of_server)
        self.needs = Needs((*outside, *by_server), playbook.steps)
        self.worker_workload = _keys_read("workload", (e for own in inside for e in own.of_worker))
        """The keys of `workload` that pipelines read; None if that may be any."""
        self.rules = execution_rules(playbook)
        rules = [self.rules]
        for plan in self.by_number:
            rules += [plan.rules, *plan.task_rules.values()]
        self.smallest_limit = min(rule.limit for rule in rules)
        """No value in an event of so few bytes can be too large."""

    @property
    def entry(self) -> StepPlan:
        return self.by_name[self.playbook.entry]


def _keys_read(space: str, expressions: Iterable[Expression]) -> frozenset[str] | None:
    """The keys of a namespace that expressions may read, by bare names too; None if that cannot be told."""
    keys: set[str] = set()
    for expression in expressions:
        for use in expression.uses:
            name, *below = use.path
            if name == space:
                if not below:
                    return None
                keys.add(below[0])
            elif name not in NAMESPACES:
                keys.add(name)
    return frozenset(keys)


def _written_ctx(step: Step) -> frozenset[str]:
    """The keys of `ctx` that the tasks of a step write."""
    return frozenset(
        write.path[0]
        for task in step.tasks
        for writes in (task.writes, *(then.writes for then in task.thens))
        for write in writes
        if write.scope == "ctx"
    )


def _steps_that_are_read(expressions: Iterable[Expression], names: Mapping[str, Step]) -> frozenset[str]:
    """The steps whose outcomes expressions may read; all of them if that cannot be told."""
    steps: set[str] = set()
    for expression in expressions:
        for use in expression.uses:
            name, *keys = use.path
            if name == "steps":
                steps.update([keys[0]] if keys else names)
            else:
                steps.add(name)
    return frozenset(names.keys() & steps)


def _watches(step: Step, names: Mapping[str, Step]) -> Iterator[Watch]:
    if step.admit is None:
        return
    for expression in expressions_in(step.admit.rules):
        for use in expression.uses:
            name, *keys = use.path
            if name == "ctx":
                yield Watch("ctx", *keys[:2])
            elif name == "steps":
                yield Watch("steps", *keys[:1])
            elif name not in NAMESPACES:
                yield Watch("ctx", *use.path[:2])
                if name in names:
                    yield Watch("steps", name)
