"""From v1 tasks to canonical pipelines: composites flattened, conditions as guards, loops as documents.

What a task gets as `with` becomes its `args`. Where `args` are not there to answer (in conditions,
in `in`, and in the `with` of nested tasks) the values themselves stand in the expression.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from noetl.dsl.dialects.expression_text import as_conjunct, as_expression, as_template, member_expression
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text
from noetl.dsl.dialects.v1.name_scope import Closure, NameBinding, V1NameScope, bind_inputs, bind_values
from noetl.dsl.dialects.v1.pipeline_builder import GuardTask, PipelineBuilder, PipelineTask, error_rules
from noetl.dsl.dialects.v1.v1_workbook import TaskDefinition, code_with_main_result
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, node_of
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, NAMESPACES
from noetl.model.errors import NoetlError

# A value is copied into every expression that reads it, and a task into every step that runs it: a document
# of a few lines can grow exponentially. Parts are tasks and inputs, copied are characters.
MAX_PARTS = 50_000
MAX_COPIED = 5_000_000


class UpgradeTooLarge(NoetlError):
    """Written out, the tasks of a document take more room than any document may."""


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """What the step's token brings: keys that are always there, and keys that may be."""

    certain: frozenset[str] = frozenset()
    possible: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Where a task stands.

    `scope` holds the names of its block, `inputs` those it inherits, `python_inputs` what python's
    `input` holds beside them (key to expression), `path` that of a document nested here,
    `label_prefix` the front of its label.
    """

    pipeline: PipelineBuilder
    scope: V1NameScope
    inputs: dict[str, MappingEntry]
    python_inputs: dict[str, str]
    path: str
    label_prefix: str = ""


class V1TaskUpgrade:
    """Writes tasks into pipelines, within a limit on how much one document may grow."""

    def __init__(self, report: ProblemReporter) -> None:
        self._report = report
        self._parts = 0
        self._copied = 0

    def add_invocation(
        self, task: TaskDefinition, call: Mapping, context: TaskContext, incoming: TokenKeys
    ) -> None:
        """One entry of a step's `run`. Raises UpgradeTooLarge."""
        inputs = self.effective_inputs(task, call, context.scope, incoming)
        self._add_task(task, context, inputs, set(inputs))
        last_task = context.pipeline.tasks[-1] if context.pipeline.tasks else None
        if isinstance(last_task, PipelineTask):
            last_task.result_name = task.name

    def effective_inputs(
        self, task: TaskDefinition, call: Mapping, scope: V1NameScope, incoming: TokenKeys
    ) -> dict[str, MappingEntry]:
        """The inputs of a workbook task: definition < step < token args < invocation.

        The step's `with` are defaults under the token's args, and `args` of a task lie over both. So
        a key of the definition is left out where the step always has it, and where a token may bring
        it the token is asked first.
        """
        called = {entry.key: new_entry(entry.key, scope.rewrite_value(entry.value), entry) for entry in call}
        inside = V1NameScope(self._bind_values(called), scope)
        inputs: dict[str, MappingEntry] = {}
        for entry in task.inputs:
            if entry.key in called or entry.key in incoming.certain:
                continue
            value = inside.rewrite_value(entry.value)
            if entry.key in incoming.possible:
                value = self._token_value_or(entry.key, value)
            inputs[entry.key] = new_entry(entry.key, value, entry)
        return inputs | called

    def add_loop(
        self, task: TaskDefinition, inputs: dict[str, MappingEntry], context: TaskContext
    ) -> Mapping:
        """The canonical `loop` for a loop task; its tasks go into the pipeline. Raises UpgradeTooLarge."""
        outside = V1NameScope(self._bind_values(inputs), context.scope)
        return self._add_loop_tasks(task, outside, replace(context, inputs=inputs))

    def _add_task(
        self, task: TaskDefinition, context: TaskContext, inputs: dict[str, MappingEntry], own: set[str]
    ) -> NameBinding | None:
        """Write one task; what its name stands for afterwards."""
        self._parts += 1 + len(inputs) + len(context.python_inputs)
        if self._parts > MAX_PARTS:
            raise UpgradeTooLarge
        pipeline = context.pipeline
        label = pipeline.new_label(context.label_prefix + task.name)
        guard = self._add_guard(task, label, context, inputs)
        match task.kind:
            case "http":
                self._add_http(task, label, context, inputs, own)
                binding: NameBinding | None = NameBinding(label, is_result=True)
            case "python":
                self._add_python(task, label, context, inputs)
                binding = NameBinding(label, is_result=True)
            case "task":
                binding = self._add_composite(task, label, context, inputs)
            case "loop":
                self._add_nested_loop(task, label, context, inputs)
                binding = NameBinding(label, is_result=True)
        if guard is not None:
            guard.end = len(pipeline.tasks)
        if binding is not None:
            self._bind(task.name, binding, context)
        return binding

    def _bind(self, name: str, binding: NameBinding, context: TaskContext) -> None:
        """Inputs and iterators hide results, so there only `NAME.result` is the result."""
        if not context.label_prefix and name not in NAMESPACES and context.pipeline.is_reserved(name):
            _, hiding = context.scope.resolve((name,), optional=True) or (1, name)
            binding = NameBinding(hiding, parts={"result": binding})
        context.scope.names[name] = binding

    def _add_guard(
        self, task: TaskDefinition, label: str, context: TaskContext, inputs: dict[str, MappingEntry]
    ) -> GuardTask | None:
        when = task.node.entries.get("when")
        if when is None:
            return None
        condition = V1NameScope(self._bind_values(inputs), context.scope).rewrite_guard(when.value)
        desc = task.node.entries.get("desc") if task.kind == "task" else None
        guard = GuardTask(context.pipeline.new_label(f"{label}__when"), when, condition, desc)
        context.pipeline.tasks.append(guard)
        return guard

    def _add_http(
        self,
        task: TaskDefinition,
        label: str,
        context: TaskContext,
        inputs: dict[str, MappingEntry],
        own: set[str],
    ) -> None:
        read_keys = set(own)
        scope = V1NameScope(bind_inputs(inputs, read_keys.add), context.scope)
        fields: list[MappingEntry] = []
        for entry in task.node:
            match entry.key:
                case "desc":
                    fields.append(entry)
                case "method":
                    fields.append(new_entry("method", _upper_case(entry.value), entry))
                case "endpoint":
                    fields.append(new_entry("url", scope.rewrite_value(entry.value), entry))
                case "payload":
                    # `body` sends text as it is, and the mapping an expression gives as JSON.
                    is_text = isinstance(entry.value, Scalar) and isinstance(entry.value.value, str)
                    key = "body" if is_text else "json"
                    fields.append(new_entry(key, scope.rewrite_value(entry.value), entry))
                case "params" | "headers" | "auth":
                    fields.append(new_entry(entry.key, scope.rewrite_value(entry.value), entry))
                case _:
                    pass
        args = {key: entry for key, entry in inputs.items() if key in read_keys}
        http_task = PipelineTask(
            label, "http", task.node, [*_args_entry(args, task.node), *fields], error_rules(task.node)
        )
        context.pipeline.tasks.append(http_task)

    def _add_python(
        self, task: TaskDefinition, label: str, context: TaskContext, inputs: dict[str, MappingEntry]
    ) -> None:
        # `main(input)` gets everything in one mapping, so everything is named.
        args = {
            key: new_entry(key, new_text(as_template(value), task.node))
            for key, value in context.python_inputs.items()
        }
        fields = [entry for entry in task.node if entry.key == "desc"]
        code = task.node.entries["code"]
        fields.append(new_entry("code", _code_node(code.value), code))
        python_task = PipelineTask(
            label, "python", task.node, [*_args_entry(args | inputs, task.node), *fields]
        )
        context.pipeline.tasks.append(python_task)

    def _add_composite(
        self, task: TaskDefinition, label: str, context: TaskContext, inputs: dict[str, MappingEntry]
    ) -> NameBinding | None:
        block = V1NameScope({}, context.scope)
        inside = replace(context, scope=block, inputs=inputs, label_prefix=f"{label}__")
        last = self._add_run(task.run, inside)
        if last is None:
            return None
        if task.run[-1].when is not None:
            # The last task may be skipped; the composite still has the result of the one before.
            context.pipeline.tasks.append(PipelineTask(label, "noop", task.node))
            last = NameBinding(label, is_result=True)
        return NameBinding(last.expression, is_result=True, parts=dict(block.names))

    def _add_run(self, tasks: Iterable[TaskDefinition], context: TaskContext) -> NameBinding | None:
        """Nested tasks, each with its own `with` over what it inherits."""
        last: NameBinding | None = None
        for task in tasks:
            scope = V1NameScope(self._bind_values(context.inputs), context.scope)
            own = {
                entry.key: new_entry(entry.key, scope.rewrite_value(entry.value), entry)
                for entry in task.inputs
            }
            last = self._add_task(task, context, context.inputs | own, set(own)) or last
        return last

    def _add_nested_loop(
        self, task: TaskDefinition, label: str, context: TaskContext, inputs: dict[str, MappingEntry]
    ) -> None:
        read_keys: set[str] = set()
        own = {
            key: NameBinding(member_expression("workload", key), on_read=partial(read_keys.add, key))
            for key in inputs
        }
        closure = Closure(own, context.scope, {nested.name for nested in task.run})
        python_inputs: dict[str, str] = {}
        if task.has_python:
            read_keys |= set(inputs)
            hidden = {task.iterator, *inputs}
            python_inputs = {
                key: closure.capture(key, value)
                for key, value in context.python_inputs.items()
                if key not in hidden
            }
            python_inputs |= {key: member_expression("workload", key) for key in inputs}
        pipeline = PipelineBuilder(
            (NAMESPACES | {task.iterator, canonical_iterator_of(task), *inputs}).__contains__
        )
        inside = TaskContext(pipeline, closure, {}, python_inputs, f"{context.path}/{label}")
        loop = self._add_loop_tasks(task, closure, inside)
        document = _loop_document(task, inside.path, label, loop, pipeline)
        args = {key: entry for key, entry in inputs.items() if key in read_keys}
        args |= {
            key: new_entry(key, new_text(value, task.node)) for key, value in closure.captured_arguments()
        }
        playbook_task = PipelineTask(label, "playbook", task.node, [*_args_entry(args, task.node), document])
        context.pipeline.tasks.append(playbook_task)

    def _add_loop_tasks(self, task: TaskDefinition, outside: V1NameScope, context: TaskContext) -> Mapping:
        """The `loop` of a canonical step; the tasks go into the pipeline of `context`."""
        name = canonical_iterator_of(task)
        loop_scope = V1NameScope({task.iterator: NameBinding(member_expression("iter", name))}, context.scope)
        inputs = {key: entry for key, entry in context.inputs.items() if key != task.iterator}
        python_inputs = context.python_inputs | {task.iterator: member_expression("iter", name)}
        self._add_run(
            task.run,
            replace(context, scope=V1NameScope({}, loop_scope), inputs=inputs, python_inputs=python_inputs),
        )
        items, iterator = task.node.entries["in"], task.node.entries["iterator"]
        return new_mapping(
            [
                *(entry for entry in task.node if entry.key == "desc"),
                new_entry("in", outside.rewrite_value(items.value), items),
                new_entry(
                    "iterator",
                    iterator.value if name == task.iterator else new_text(name, iterator),
                    iterator,
                ),
            ],
            task.node,
        )

    def _token_value_or(self, key: str, value: Node) -> Node:
        """The token's value of that key, and this one where it brings none."""
        expression = as_expression(value)
        if expression is None:
            self._report_inexpressible(value)
            return value
        owner = member_expression("args", key)
        return new_text(as_template(f"{owner} if {owner} is defined else {as_conjunct(expression)}"), value)

    def _bind_values(self, inputs: dict[str, MappingEntry]) -> dict[str, NameBinding]:
        values = ((key, entry.value) for key, entry in inputs.items())
        return bind_values(values, self._count_copied, self._report_inexpressible)

    def _report_inexpressible(self, node: Node) -> None:
        self._report(
            "v1-inexpressible",
            node,
            "this value has statements (`{% … %}`), so other expressions cannot build on it",
            "write it as one `{{ … }}`",
        )

    def _count_copied(self, expression: str) -> None:
        self._copied += len(expression)
        if self._copied > MAX_COPIED:
            raise UpgradeTooLarge


def _loop_document(
    task: TaskDefinition, path: str, label: str, loop: Mapping, pipeline: PipelineBuilder
) -> MappingEntry:
    """A playbook of one step, the loop."""
    at = task.node
    step = new_mapping(
        [
            new_entry("step", new_text(label, at)),
            new_entry("loop", loop),
            new_entry("tool", pipeline.build(at, set())),
        ],
        at,
    )
    root = [
        new_entry("apiVersion", new_text("noetl.io/v2", at)),
        new_entry("kind", new_text("Playbook", at)),
        new_entry("metadata", node_of({"name": label, "path": path}, at)),
        new_entry("workflow", new_sequence([step], at)),
    ]
    return new_entry("document", new_mapping(root, at))


def canonical_iterator_of(task: TaskDefinition) -> str:
    """The iterator's canonical name: some names are taken there."""
    return f"{task.iterator}_item" if task.iterator in NAMESPACES | BUILTIN_ITER_KEYS else task.iterator


def _args_entry(args: dict[str, MappingEntry], at: Located) -> list[MappingEntry]:
    return [new_entry("args", new_mapping(args.values(), at))] if args else []


def _upper_case(node: Node) -> Node:
    if isinstance(node, Scalar) and isinstance(node.value, str) and not node.value.isupper():
        return new_text(node.value.upper(), node)
    return node


def _code_node(node: Node) -> Node:
    """The code itself, unless its own global `result` would hide what `main` gives."""
    code = node.value if isinstance(node, Scalar) else None
    if not isinstance(code, str) or (upgraded := code_with_main_result(code)) == code:
        return node
    return new_text(upgraded, node)
