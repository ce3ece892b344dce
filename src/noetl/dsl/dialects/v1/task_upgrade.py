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
from noetl.expr import BUILTIN_ITER_KEYS, NAMESPACES
from noetl.model import NoetlError

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

    `scope` holds the names of its block, `given` the inputs it inherits, `ambient` what python's
    `input` holds beside them (key to expression), `path` that of a document nested here, `prefix`
    the front of its label.
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
        self, task: TaskDefinition, call: Mapping, place: TaskContext, incoming: TokenKeys
    ) -> None:
        """One entry of a step's `run`. Raises TooLarge."""
        given = self.effective_inputs(task, call, place.scope, incoming)
        self._task(task, place, given, set(given))
        closing = place.pipeline.tasks[-1] if place.pipeline.tasks else None
        if isinstance(closing, PipelineTask):
            closing.result_name = task.name

    def effective_inputs(
        self, task: TaskDefinition, call: Mapping, scope: V1NameScope, incoming: TokenKeys
    ) -> dict[str, MappingEntry]:
        """The inputs of a workbook task: definition < step < token args < invocation.

        The step's `with` are defaults under the token's args, and `args` of a task lie over both. So
        a key of the definition is left out where the step always has it, and where a token may bring
        it the token is asked first.
        """
        called = {item.key: new_entry(item.key, scope.rewrite_value(item.value), item) for item in call}
        inside = V1NameScope(self._substituted(called), scope)
        found: dict[str, MappingEntry] = {}
        for item in task.inputs:
            if item.key in called or item.key in incoming.certain:
                continue
            value = inside.rewrite_value(item.value)
            if item.key in incoming.possible:
                value = self._unless_given(item.key, value)
            found[item.key] = new_entry(item.key, value, item)
        return found | called

    def add_loop(self, task: TaskDefinition, given: dict[str, MappingEntry], place: TaskContext) -> Mapping:
        """The canonical `loop` for a loop task; its tasks go into the pipeline. Raises TooLarge."""
        outside = V1NameScope(self._substituted(given), place.scope)
        return self._loop(task, outside, replace(place, inputs=given))

    def _task(
        self, task: TaskDefinition, place: TaskContext, given: dict[str, MappingEntry], own: set[str]
    ) -> NameBinding | None:
        """Write one task; what its name stands for afterwards."""
        self._parts += 1 + len(given) + len(place.python_inputs)
        if self._parts > MAX_PARTS:
            raise UpgradeTooLarge
        pipeline = place.pipeline
        label = pipeline.new_label(place.label_prefix + task.name)
        guard = self._guard(task, label, place, given)
        match task.kind:
            case "http":
                self._http(task, label, place, given, own)
                binding: NameBinding | None = NameBinding(label, is_result=True)
            case "python":
                self._python(task, label, place, given)
                binding = NameBinding(label, is_result=True)
            case "task":
                binding = self._composite(task, label, place, given)
            case "loop":
                self._nested_loop(task, label, place, given)
                binding = NameBinding(label, is_result=True)
        if guard is not None:
            guard.end = len(pipeline.tasks)
        if binding is not None:
            self._bind(task.name, binding, place)
        return binding

    def _bind(self, name: str, binding: NameBinding, place: TaskContext) -> None:
        """Inputs and iterators hide results, so there only `NAME.result` is the result."""
        if not place.label_prefix and name not in NAMESPACES and place.pipeline.is_reserved(name):
            _, hiding = place.scope.resolve((name,), optional=True) or (1, name)
            binding = NameBinding(hiding, parts={"result": binding})
        place.scope.names[name] = binding

    def _guard(
        self, task: TaskDefinition, label: str, place: TaskContext, given: dict[str, MappingEntry]
    ) -> GuardTask | None:
        when = task.node.entries.get("when")
        if when is None:
            return None
        condition = V1NameScope(self._substituted(given), place.scope).rewrite_guard(when.value)
        desc = task.node.entries.get("desc") if task.kind == "task" else None
        guard = GuardTask(place.pipeline.new_label(f"{label}__when"), when, condition, desc)
        place.pipeline.tasks.append(guard)
        return guard

    def _http(
        self,
        task: TaskDefinition,
        label: str,
        place: TaskContext,
        given: dict[str, MappingEntry],
        own: set[str],
    ) -> None:
        used = set(own)
        scope = V1NameScope(bind_inputs(given, used.add), place.scope)
        fields: list[MappingEntry] = []
        for item in task.node:
            match item.key:
                case "desc":
                    fields.append(item)
                case "method":
                    fields.append(new_entry("method", _upper(item.value), item))
                case "endpoint":
                    fields.append(new_entry("url", scope.rewrite_value(item.value), item))
                case "payload":
                    # `body` sends text as it is, and the mapping an expression gives as JSON.
                    is_text = isinstance(item.value, Scalar) and isinstance(item.value.value, str)
                    key = "body" if is_text else "json"
                    fields.append(new_entry(key, scope.rewrite_value(item.value), item))
                case "params" | "headers" | "auth":
                    fields.append(new_entry(item.key, scope.rewrite_value(item.value), item))
                case _:
                    pass
        args = {key: item for key, item in given.items() if key in used}
        found = PipelineTask(
            label, "http", task.node, [*_args(args, task.node), *fields], error_rules(task.node)
        )
        place.pipeline.tasks.append(found)

    def _python(
        self, task: TaskDefinition, label: str, place: TaskContext, given: dict[str, MappingEntry]
    ) -> None:
        # `main(input)` gets everything in one mapping, so everything is named.
        args = {
            key: new_entry(key, new_text(as_template(value), task.node))
            for key, value in place.python_inputs.items()
        }
        fields = [item for item in task.node if item.key == "desc"]
        code = task.node.entries["code"]
        fields.append(new_entry("code", _code(code.value), code))
        found = PipelineTask(label, "python", task.node, [*_args(args | given, task.node), *fields])
        place.pipeline.tasks.append(found)

    def _composite(
        self, task: TaskDefinition, label: str, place: TaskContext, given: dict[str, MappingEntry]
    ) -> NameBinding | None:
        block = V1NameScope({}, place.scope)
        inside = replace(place, scope=block, inputs=given, label_prefix=f"{label}__")
        last = self._run(task.run, inside)
        if last is None:
            return None
        if task.run[-1].when is not None:
            # The last task may be skipped; the composite still has the result of the one before.
            place.pipeline.tasks.append(PipelineTask(label, "noop", task.node))
            last = NameBinding(label, is_result=True)
        return NameBinding(last.expression, is_result=True, parts=dict(block.names))

    def _run(self, tasks: Iterable[TaskDefinition], place: TaskContext) -> NameBinding | None:
        """Nested tasks, each with its own `with` over what it inherits."""
        last: NameBinding | None = None
        for task in tasks:
            scope = V1NameScope(self._substituted(place.inputs), place.scope)
            own = {
                item.key: new_entry(item.key, scope.rewrite_value(item.value), item) for item in task.inputs
            }
            last = self._task(task, place, place.inputs | own, set(own)) or last
        return last

    def _nested_loop(
        self, task: TaskDefinition, label: str, place: TaskContext, given: dict[str, MappingEntry]
    ) -> None:
        used: set[str] = set()
        own = {
            key: NameBinding(member_expression("workload", key), on_read=partial(used.add, key))
            for key in given
        }
        closure = Closure(own, place.scope, {nested.name for nested in task.run})
        ambient: dict[str, str] = {}
        if task.has_python:
            used |= set(given)
            hidden = {task.iterator, *given}
            ambient = {
                key: closure.capture(key, value)
                for key, value in place.python_inputs.items()
                if key not in hidden
            }
            ambient |= {key: member_expression("workload", key) for key in given}
        pipeline = PipelineBuilder(
            (NAMESPACES | {task.iterator, canonical_iterator_of(task), *given}).__contains__
        )
        inside = TaskContext(pipeline, closure, {}, ambient, f"{place.path}/{label}")
        loop = self._loop(task, closure, inside)
        document = _document(task, inside.path, label, loop, pipeline)
        args = {key: item for key, item in given.items() if key in used}
        args |= {
            key: new_entry(key, new_text(value, task.node)) for key, value in closure.captured_arguments()
        }
        found = PipelineTask(label, "playbook", task.node, [*_args(args, task.node), document])
        place.pipeline.tasks.append(found)

    def _loop(self, task: TaskDefinition, outside: V1NameScope, place: TaskContext) -> Mapping:
        """The `loop` of a canonical step; the tasks go into the pipeline of `place`."""
        name = canonical_iterator_of(task)
        around = V1NameScope({task.iterator: NameBinding(member_expression("iter", name))}, place.scope)
        given = {key: item for key, item in place.inputs.items() if key != task.iterator}
        ambient = place.python_inputs | {task.iterator: member_expression("iter", name)}
        self._run(
            task.run, replace(place, scope=V1NameScope({}, around), inputs=given, python_inputs=ambient)
        )
        items, iterator = task.node.entries["in"], task.node.entries["iterator"]
        return new_mapping(
            [
                *(item for item in task.node if item.key == "desc"),
                new_entry("in", outside.rewrite_value(items.value), items),
                new_entry(
                    "iterator",
                    iterator.value if name == task.iterator else new_text(name, iterator),
                    iterator,
                ),
            ],
            task.node,
        )

    def _unless_given(self, key: str, value: Node) -> Node:
        """The token's value of that key, and this one where it brings none."""
        expression = as_expression(value)
        if expression is None:
            self._inexpressible(value)
            return value
        owner = member_expression("args", key)
        return new_text(as_template(f"{owner} if {owner} is defined else {as_conjunct(expression)}"), value)

    def _substituted(self, given: dict[str, MappingEntry]) -> dict[str, NameBinding]:
        values = ((key, item.value) for key, item in given.items())
        return bind_values(values, self._copy, self._inexpressible)

    def _inexpressible(self, node: Node) -> None:
        self._report(
            "v1-inexpressible",
            node,
            "this value has statements (`{% … %}`), so other expressions cannot build on it",
            "write it as one `{{ … }}`",
        )

    def _copy(self, expression: str) -> None:
        self._copied += len(expression)
        if self._copied > MAX_COPIED:
            raise UpgradeTooLarge


def _document(
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


def _args(args: dict[str, MappingEntry], at: Located) -> list[MappingEntry]:
    return [new_entry("args", new_mapping(args.values(), at))] if args else []


def _upper(node: Node) -> Node:
    if isinstance(node, Scalar) and isinstance(node.value, str) and not node.value.isupper():
        return new_text(node.value.upper(), node)
    return node


def _code(node: Node) -> Node:
    """The code itself, unless its own global `result` would hide what `main` gives."""
    code = node.value if isinstance(node, Scalar) else None
    if not isinstance(code, str) or (giving := code_with_main_result(code)) == code:
        return node
    return new_text(giving, node)
