"""The workflow of a v1 document (004 §4), read and checked before anything is written."""

from dataclasses import dataclass

from noetl.dsl.dialects.nodes import NodeReader, new_mapping, without_nulls
from noetl.dsl.dialects.v1.v1_workbook import TaskDefinition, V1Workbook
from noetl.dsl.document.shape_check import did_you_mean
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar

ERROR_HANDLER = "error_handler"

_STEP_KEYS = ["step", "desc", "run", "with", "next"]


@dataclass(frozen=True, slots=True)
class Invocation:
    task: TaskDefinition
    inputs: Mapping


@dataclass(frozen=True, slots=True)
class TransitionTarget:
    """A step that a transition leads to, and what the token carries."""

    name: str
    node: Node
    inputs: MappingEntry | None


@dataclass(frozen=True, slots=True)
class Transition:
    node: Mapping
    when: Node | None
    targets: tuple[TransitionTarget, ...]


@dataclass(frozen=True, slots=True)
class V1Step:
    """A step as it is written. `has_run` tells whether it has a `run`, sound or not."""

    name: str
    node: Mapping
    inputs: Mapping
    has_run: bool
    invocations: tuple[Invocation, ...]
    transitions: tuple[Transition, ...]

    @property
    def can_fail(self) -> bool:
        """A step that runs nothing and renders nothing always succeeds."""
        return self.has_run or bool(self.inputs.entries)

    def gives_result_of(self, call: Invocation) -> bool:
        """Whether the result of this task is the step's: it is the last one, and never skipped."""
        return call is self.invocations[-1] and call.task.when is None

    @property
    def loop(self) -> TaskDefinition | None:
        """The loop that is all the step runs."""
        if len(self.invocations) == 1 and self.has_run:
            task = self.invocations[0].task
            return task if task.kind == "loop" and task.when is None else None
        return None


class V1StepReader:
    """Reads steps; what is wrong is reported and left out."""

    def __init__(self, workbook: V1Workbook, reader: NodeReader) -> None:
        self._workbook = workbook
        self._reader = reader

    def read(self, node: Node) -> V1Step | None:
        step = self._reader.mapping(node, "a step")
        if step is None:
            return None
        step = without_nulls(step)
        self._reader.check_keys(step, _STEP_KEYS, "a step", {"tool": "v1 steps `run` tasks of the workbook"})
        name = self._reader.text(self._reader.required(step, "step", "a step"), "the name of a step")
        if name is None:
            return None
        return V1Step(
            name,
            step,
            self._inputs(step, f"`with` of `{name}`"),
            "run" in step,
            self._invocations(step, name),
            self._transitions(step, name),
        )

    def _inputs(self, owner: Mapping, subject: str) -> Mapping:
        node = owner.get("with")
        inputs = self._reader.mapping(node, subject) if node is not None else None
        return inputs or new_mapping([], owner)

    def _invocations(self, step: Mapping, name: str) -> tuple[Invocation, ...]:
        items = self._reader.sequence(step.get("run"), f"`run` of `{name}`") or []
        invocations = [self._invocation(item) for item in items]
        return tuple(call for call in invocations if call is not None)

    def _invocation(self, item: Node) -> Invocation | None:
        if isinstance(item, Scalar) and isinstance(item.value, str):
            task = self._task(item)
            return Invocation(task, new_mapping([], item)) if task else None
        call = self._reader.mapping(item, "an entry of `run`")
        if call is None:
            return None
        call = without_nulls(call)
        hint = "tasks are defined in the workbook"
        self._reader.check_keys(
            call, ["task", "with"], "an entry of `run`", {"type": hint, "code": hint, "run": hint}
        )
        node = self._reader.required(call, "task", "an entry of `run`")
        task = self._task(node) if node is not None else None
        return Invocation(task, self._inputs(call, "`with` of a task")) if task else None

    def _task(self, node: Node) -> TaskDefinition | None:
        name = self._reader.text(node, "the name of a task")
        workbook = self._workbook
        if name is None or name in workbook.tasks:
            return workbook.tasks[name] if name is not None else None
        if name in workbook.nested:
            self._reader.report(
                "v1-nested-reference",
                node,
                f"`{name}` exists only inside another task",
                "only top-level tasks of the workbook can be run by a step",
            )
        elif name not in workbook.broken:
            hint = did_you_mean(name, workbook.tasks)
            self._reader.report("unknown-task", node, f"the workbook has no task `{name}`", hint)
        return None

    def _transitions(self, step: Mapping, name: str) -> tuple[Transition, ...]:
        next_entry = step.entries.get("next")
        if next_entry is None:
            return ()
        items = self._reader.sequence(next_entry.value, f"`next` of `{name}`") or []
        if name == "end" and items:
            self._reader.report("v1-end-next", next_entry, "execution ends at `end`: it may have no `next`")
            return ()
        transitions = [self._transition(node) for node in items]
        return tuple(transition for transition in transitions if transition is not None)

    def _transition(self, item: Node) -> Transition | None:
        node = self._reader.mapping(item, "a transition")
        if node is None:
            return None
        node = without_nulls(node)
        hints = {
            "else": "write `then` without `when`: that is the fallback",
            "step": "write `then: [{step: …}]`",
        }
        self._reader.check_keys(node, ["when", "then"], "a transition", hints)
        then = node.get("then")
        if then is None:
            if not set(hints) & set(node.entries):
                self._reader.required(node, "then", "a transition")
            return None
        items = then.items if not isinstance(then, Scalar | Mapping) else [then]
        targets = [target for item in items if (target := self._target(item)) is not None]
        return Transition(node, node.get("when"), tuple(targets))

    def _target(self, item: Node) -> TransitionTarget | None:
        if isinstance(item, Scalar) and isinstance(item.value, str):
            return TransitionTarget(item.value, item, None)
        node = self._reader.mapping(item, "a step in `then`")
        if node is None:
            return None
        node = without_nulls(node)
        self._reader.check_keys(node, ["step", "with"], "a step in `then`")
        name_node = self._reader.required(node, "step", "a step in `then`")
        name = self._reader.text(name_node, "the name of a step")
        if name is None or name_node is None:
            return None
        inputs = node.entries.get("with")
        sound = inputs is not None and self._reader.mapping(inputs.value, "`with` of a step") is not None
        return TransitionTarget(name, name_node, inputs if sound else None)
