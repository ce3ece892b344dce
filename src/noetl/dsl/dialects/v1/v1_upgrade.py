"""004, the first version, as a canonical document: its root, and its steps as canonical steps."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from noetl.dsl.dialects.expression_text import member_expression
from noetl.dsl.dialects.nodes import NodeReader, new_entry, new_mapping, new_sequence, new_text, without_nulls
from noetl.dsl.dialects.v1.name_scope import NameBinding, V1NameScope, bind_inputs
from noetl.dsl.dialects.v1.pipeline_builder import RESULTS_KEY, PipelineBuilder
from noetl.dsl.dialects.v1.task_upgrade import (
    TaskContext,
    TokenKeys,
    UpgradeTooLarge,
    V1TaskUpgrade,
    canonical_iterator_of,
)
from noetl.dsl.dialects.v1.transition_arcs import upgrade_transitions
from noetl.dsl.dialects.v1.v1_steps import ERROR_HANDLER, V1Step, V1StepReader
from noetl.dsl.dialects.v1.v1_workbook import V1Workbook
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, node_of
from noetl.expr.runtime.scope import NAMESPACES

_ROOT_KEYS = ["apiVersion", "kind", "name", "path", "workload", "workbook", "workflow"]
_KEY_HINTS = {"metadata": "v1 has `name` and `path` at the root", "vars": "use `workload`"}


def upgrade_v1(root: Mapping, report: ProblemReporter) -> Mapping:
    """The canonical document. What was reported has a harmless value there, so nobody hears of it twice."""
    reader = NodeReader(report)
    root = without_nulls(root)
    reader.check_keys(root, _ROOT_KEYS, "a v1 playbook", _KEY_HINTS)
    metadata = _metadata(root, reader)
    path = metadata.get("path")
    workbook = V1Workbook(root.get("workbook"), reader)
    steps = _steps(root, workbook, reader)
    workload = root.get("workload")
    keys = frozenset(workload.entries) if isinstance(workload, Mapping) else frozenset()
    workflow = WorkflowUpgrade(steps, keys, str(getattr(path, "value", "")), report).step_nodes()
    _report_unused(workbook, steps, report)
    entries: list[MappingEntry] = []
    for entry in root:
        if entry.key == "apiVersion":
            entries.append(new_entry("apiVersion", new_text("noetl.io/v2", entry.value), entry))
        elif entry.key in ("kind", "workload"):
            entries.append(entry)
    at = root.entries.get("workflow") or root
    entries.append(new_entry("metadata", metadata))
    entries.append(new_entry("workflow", new_sequence(workflow or [_empty_start(at)], at), at))
    return new_mapping(entries, root)


def _metadata(root: Mapping, reader: NodeReader) -> Mapping:
    entries: list[MappingEntry] = []
    for key in ("name", "path"):
        node = reader.required(root, key, "a v1 playbook")
        if reader.text(node, f"`{key}`") is None:
            entries.append(new_entry(key, new_text("unknown", root)))
        else:
            entries.append(root.entries[key])
    return new_mapping(entries, root.entries.get("name") or root)


def _steps(root: Mapping, workbook: V1Workbook, reader: NodeReader) -> list[V1Step]:
    node = reader.required(root, "workflow", "a v1 playbook")
    items = reader.sequence(node, "`workflow`")
    if node is None or items is None:
        return []
    step_reader = V1StepReader(workbook, reader)
    steps = [step for item in items if (step := step_reader.read(item)) is not None]
    if not any(step.name == "start" for step in steps):
        reader.report(
            "missing-start", node, "the workflow has no step `start`", "v1 playbooks begin at `start`"
        )
    return steps


def _report_unused(workbook: V1Workbook, steps: list[V1Step], report: ProblemReporter) -> None:
    run = {call.task.name for step in steps for call in step.invocations}
    for name, task in workbook.tasks.items():
        if name not in run:
            report("v1-unused-task", task.node, f"no step runs the task `{name}`: it is left out", "")


def _empty_start(at: Mapping | MappingEntry) -> Node:
    return node_of({"step": "start", "tool": [{"name": "done", "kind": "noop"}]}, at)


@dataclass(slots=True)
class _OpenStep:
    """A step whose pipeline is still open: what others read of it is not yet known."""

    source: V1Step
    pipeline: PipelineBuilder
    args: MappingEntry | None
    loop: Mapping | None
    next: Mapping | None


class WorkflowUpgrade:
    """All steps together: what a name means depends on who runs what, and on what tokens bring."""

    def __init__(
        self, steps: list[V1Step], workload: frozenset[str], path: str, report: ProblemReporter
    ) -> None:
        self._steps = steps
        self._workload = workload
        self._path = path
        self._task_upgrade = V1TaskUpgrade(report)
        self._report = report
        self._names = {step.name for step in steps}
        self._runners = _runners(steps)
        self._incoming = _incoming(steps)
        self._handled_step_names = self._handled_steps()
        self._published: set[str] = set()

    def step_nodes(self) -> list[Mapping]:
        """The canonical steps, in order."""
        open_steps: list[_OpenStep] = []
        for step in self._steps:
            try:
                open_steps.append(self._open_step(step))
            except UpgradeTooLarge:
                self._report(
                    "upgrade-limit", step.node, "written out, the tasks take more room than a document may"
                )
                break
        # Only now is known which results others read: a later step may read that of an earlier one.
        return [self._step_node(open_step) for open_step in open_steps]

    def _open_step(self, step: V1Step) -> _OpenStep:
        arriving = self._incoming.get(step.name, TokenKeys())
        token_keys = TokenKeys(
            arriving.certain | set(step.inputs.entries), arriving.possible - set(step.inputs.entries)
        )
        outside = V1NameScope(bind_inputs(arriving.certain | arriving.possible), _DocumentScope(self, step))
        scope = V1NameScope(bind_inputs(token_keys.certain | token_keys.possible), _DocumentScope(self, step))
        reserved = NAMESPACES | self._workload | set(scope.names)
        if step.loop is not None:
            reserved |= {step.loop.iterator, canonical_iterator_of(step.loop)}
        pipeline = PipelineBuilder(reserved.__contains__)
        context = TaskContext(
            pipeline, V1NameScope({}, scope), {}, _python_inputs(token_keys), f"{self._path}/{step.name}"
        )
        loop: Mapping | None = None
        if step.loop is not None:
            inputs = self._task_upgrade.effective_inputs(
                step.loop, step.invocations[0].inputs, context.scope, token_keys
            )
            loop = self._task_upgrade.add_loop(step.loop, inputs, context)
        else:
            for call in step.invocations:
                self._task_upgrade.add_invocation(call.task, call.inputs, context, token_keys)
        inputs_entry = step.node.entries.get("with")
        args = (
            new_entry("args", outside.rewrite_value(step.inputs), inputs_entry)
            if step.inputs.entries
            else None
        )
        routing_scope = V1NameScope(self._routing_names(step, pipeline), scope)
        handled = step.name in self._handled_step_names
        return _OpenStep(
            step,
            pipeline,
            args,
            loop,
            upgrade_transitions(step, routing_scope, handled=handled, report=self._report),
        )

    def _step_node(self, open_step: _OpenStep) -> Mapping:
        node = open_step.source.node
        entries = [entry for entry in node if entry.key in ("step", "desc")]
        if open_step.args is not None:
            entries.append(open_step.args)
        if open_step.loop is not None:
            entries.append(new_entry("loop", open_step.loop))
        if open_step.source.has_run or open_step.next is None:
            at = node.entries.get("run") or node
            entries.append(new_entry("tool", open_step.pipeline.build(at, self._published), at))
        if open_step.next is not None:
            entries.append(new_entry("next", open_step.next))
        return new_mapping(entries, node)

    def _routing_names(self, step: V1Step, pipeline: PipelineBuilder) -> dict[str, NameBinding]:
        """In `next`, the step's own result is the event's; results inside its pipeline come through `run`.

        Not through ctx: another run of the step, earlier or at the same time, writes there as well.
        """
        own = NameBinding("event.result", is_result=True)
        names: dict[str, NameBinding] = {}
        for call in step.invocations:
            name = call.task.name
            in_run = NameBinding(
                member_expression("run", name),
                is_result=True,
                on_read=partial(pipeline.run_results.add, name),
            )
            names[name] = own if step.gives_result_of(call) else in_run
        return names | {step.name: own, "result": NameBinding("event.result")}

    def document_binding(self, name: str, step: V1Step) -> NameBinding | None:
        """What a name means that the step itself does not know: workload, results of steps and tasks."""
        result = self._result(name, step)
        if name not in self._workload:
            return result
        own = NameBinding(member_expression("workload", name) if name in NAMESPACES else name)
        return NameBinding(own.expression, parts={"result": result}) if result else own

    def _result(self, name: str, step: V1Step) -> NameBinding | None:
        if name in self._names:
            return NameBinding(self._result_of_step(name, step), is_result=True)
        runners = self._runners.get(name)
        if runners is None:
            return None
        if len(runners) == 1 and runners[0][1]:
            return NameBinding(self._result_of_step(runners[0][0], step), is_result=True)
        return self._through_ctx(name)

    def _result_of_step(self, name: str, reader: V1Step) -> str:
        """The bare name, unless something nearer has it where it is read."""
        token = self._incoming.get(reader.name, TokenKeys())
        hidden = (
            name in self._workload
            or name in NAMESPACES
            or name in token.certain | token.possible
            or name in reader.inputs
            or not name.isidentifier()
            or any(name in call.task.bound_names or name in call.inputs for call in reader.invocations)
        )
        return member_expression(member_expression("steps", name), "result") if hidden else name

    def _through_ctx(self, name: str) -> NameBinding:
        text = member_expression(f"ctx.{RESULTS_KEY}", name)
        return NameBinding(text, is_result=True, on_read=partial(self._published.add, name))

    def _handled_steps(self) -> set[str]:
        """Steps whose failure goes to the error handler.

        Not those that only the handler leads to: their failure would start the handler again and again.
        """
        if ERROR_HANDLER not in self._names:
            return set()
        reached = _reachable(self._steps)
        return {
            step.name
            for step in self._steps
            if step.name != ERROR_HANDLER and step.can_fail and step.name in reached
        }


class _DocumentScope(V1NameScope):
    """The names that belong to no step: the outermost scope of each."""

    def __init__(self, workflow: WorkflowUpgrade, step: V1Step) -> None:
        super().__init__({"workload": NameBinding("workload"), "context": NameBinding("ctx")})
        self._workflow = workflow
        self._step = step

    def resolve(self, path: tuple[str, ...], *, optional: bool) -> tuple[int, str] | None:  # noqa: ARG002 - every scope is asked; here nothing depends on it
        binding = self.names.get(path[0]) or self._workflow.document_binding(path[0], self._step)
        return binding.resolve(path) if binding else None


def _python_inputs(token_keys: TokenKeys) -> dict[str, str]:
    certain = {key: member_expression("args", key) for key in sorted(token_keys.certain)}
    return certain | {
        key: f"{member_expression('args', key)} | default(none)" for key in sorted(token_keys.possible)
    }


def _runners(steps: Iterable[V1Step]) -> dict[str, list[tuple[str, bool]]]:
    """By task: the steps that run it, and whether its result is always the step's."""
    runners: dict[str, list[tuple[str, bool]]] = {}
    for step in steps:
        for call in step.invocations:
            runners.setdefault(call.task.name, []).append((step.name, step.gives_result_of(call)))
    return runners


def _incoming(steps: Iterable[V1Step]) -> dict[str, TokenKeys]:
    """By step: the keys that its tokens bring, always or sometimes."""
    brought: dict[str, list[frozenset[str]]] = {"start": [frozenset()], ERROR_HANDLER: [frozenset()]}
    for step in steps:
        for transition in step.transitions:
            for target in transition.targets:
                inputs = target.inputs.value if target.inputs else None
                keys = frozenset(inputs.entries) if isinstance(inputs, Mapping) else frozenset()
                brought.setdefault(target.name, []).append(keys)
    incoming: dict[str, TokenKeys] = {}
    for name, keys_list in brought.items():
        certain = frozenset.intersection(*keys_list)
        incoming[name] = TokenKeys(certain, frozenset().union(*keys_list) - certain)
    return incoming


def _reachable(steps: list[V1Step]) -> set[str]:
    """The steps that lie on a way from `start` without the error handler; all, if there is no `start`."""
    by_name = {step.name: step for step in steps}
    if "start" not in by_name:
        return set(by_name)
    reached: set[str] = set()
    open_names = ["start"]
    while open_names:
        name = open_names.pop()
        if name in reached or name == ERROR_HANDLER or name not in by_name:
            continue
        reached.add(name)
        open_names += [
            target.name for transition in by_name[name].transitions for target in transition.targets
        ]
    return reached
