"""From v1 tasks to canonical pipelines: composites flattened, conditions as guards, loops as documents.

What a task gets as `with` becomes its `args`. Where `args` are not there to answer (in conditions,
in `in`, and in the `with` of nested tasks) the values themselves stand in the expression.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from noetl.dsl.dialects.expression_text import as_expression, conjunct, member, template
from noetl.dsl.dialects.nodes import entry, mapping, sequence, text
from noetl.dsl.dialects.v1.name_scope import Binding, Closure, Scope, inputs, substituted
from noetl.dsl.dialects.v1.pipeline_builder import Guard, Pipeline, Task, error_rules
from noetl.dsl.dialects.v1.v1_workbook import Definition, giving_main
from noetl.dsl.document.shape_check import Report
from noetl.dsl.document.source import Entry, Located, Mapping, Node, Scalar, node_of
from noetl.expr import BUILTIN_ITER, NAMESPACES
from noetl.model import NoetlError

MAX_PARTS = 50_000
MAX_COPIED = 5_000_000


class TooLarge(NoetlError):
    """Written out, the tasks of a document take more room than any document may."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """What the step's token brings: keys that are always there, and keys that may be."""

    certain: frozenset[str] = frozenset()
    possible: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task stands.

    `scope` holds the names of its block, `given` the inputs it inherits, `ambient` what python's
    `input` holds beside them (key to expression), `path` that of a document nested here, `prefix`
    the front of its label.
    """

    pipeline: Pipeline
    scope: Scope
    given: dict[str, Entry]
    ambient: dict[str, str]
    path: str
    prefix: str = ""


class Lowering:
    """Writes tasks into pipelines, within a limit on how much one document may grow."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._parts = 0
        self._copied = 0

    def invocation(self, task: Definition, call: Mapping, place: Place, incoming: Incoming) -> None:
        """One entry of a step's `run`. Raises TooLarge."""
        given = self.effective(task, call, place.scope, incoming)
        self._task(task, place, given, set(given))
        closing = place.pipeline.tasks[-1] if place.pipeline.tasks else None
        if isinstance(closing, Task):
            closing.name = task.name

    def effective(
        self, task: Definition, call: Mapping, scope: Scope, incoming: Incoming
    ) -> dict[str, Entry]:
        """The inputs of a workbook task: definition < step < token args < invocation.

        The step's `with` are defaults under the token's args, and `args` of a task lie over both. So
        a key of the definition is left out where the step always has it, and where a token may bring
        it the token is asked first.
        """
        called = {item.key: entry(item.key, scope.value(item.value), item) for item in call}
        inside = Scope(self._substituted(called), scope)
        found: dict[str, Entry] = {}
        for item in task.given:
            if item.key in called or item.key in incoming.certain:
                continue
            value = inside.value(item.value)
            if item.key in incoming.possible:
                value = self._unless_given(item.key, value)
            found[item.key] = entry(item.key, value, item)
        return found | called

    def looped(self, task: Definition, given: dict[str, Entry], place: Place) -> Mapping:
        """The canonical `loop` for a loop task; its tasks go into the pipeline. Raises TooLarge."""
        outside = Scope(self._substituted(given), place.scope)
        return self._loop(task, outside, replace(place, given=given))

    def _task(self, task: Definition, place: Place, given: dict[str, Entry], own: set[str]) -> Binding | None:
        """Write one task; what its name stands for afterwards."""
        self._parts += 1 + len(given) + len(place.ambient)
        if self._parts > MAX_PARTS:
            raise TooLarge
        pipeline = place.pipeline
        label = pipeline.label(place.prefix + task.name)
        guard = self._guard(task, label, place, given)
        match task.kind:
            case "http":
                self._http(task, label, place, given, own)
                binding: Binding | None = Binding(label, is_result=True)
            case "python":
                self._python(task, label, place, given)
                binding = Binding(label, is_result=True)
            case "task":
                binding = self._composite(task, label, place, given)
            case "loop":
                self._nested_loop(task, label, place, given)
                binding = Binding(label, is_result=True)
        if guard is not None:
            guard.past = len(pipeline.tasks)
        if binding is not None:
            self._bind(task.name, binding, place)
        return binding

    def _bind(self, name: str, binding: Binding, place: Place) -> None:
        """Inputs and iterators hide results, so there only `NAME.result` is the result."""
        if not place.prefix and name not in NAMESPACES and place.pipeline.is_reserved(name):
            _, hiding = place.scope.resolve((name,), optional=True) or (1, name)
            binding = Binding(hiding, parts={"result": binding})
        place.scope.names[name] = binding

    def _guard(self, task: Definition, label: str, place: Place, given: dict[str, Entry]) -> Guard | None:
        when = task.node.entries.get("when")
        if when is None:
            return None
        condition = Scope(self._substituted(given), place.scope).guard(when.value)
        desc = task.node.entries.get("desc") if task.kind == "task" else None
        guard = Guard(place.pipeline.label(f"{label}__when"), when, condition, desc)
        place.pipeline.tasks.append(guard)
        return guard

    def _http(
        self, task: Definition, label: str, place: Place, given: dict[str, Entry], own: set[str]
    ) -> None:
        used = set(own)
        scope = Scope(inputs(given, used.add), place.scope)
        fields: list[Entry] = []
        for item in task.node:
            match item.key:
                case "desc":
                    fields.append(item)
                case "method":
                    fields.append(entry("method", _upper(item.value), item))
                case "endpoint":
                    fields.append(entry("url", scope.value(item.value), item))
                case "payload":
                    # `body` sends text as it is, and the mapping an expression gives as JSON.
                    is_text = isinstance(item.value, Scalar) and isinstance(item.value.value, str)
                    key = "body" if is_text else "json"
                    fields.append(entry(key, scope.value(item.value), item))
                case "params" | "headers" | "auth":
                    fields.append(entry(item.key, scope.value(item.value), item))
                case _:
                    pass
        args = {key: item for key, item in given.items() if key in used}
        found = Task(label, "http", task.node, [*_args(args, task.node), *fields], error_rules(task.node))
        place.pipeline.tasks.append(found)

    def _python(self, task: Definition, label: str, place: Place, given: dict[str, Entry]) -> None:
        # `main(input)` gets everything in one mapping, so everything is named.
        args = {key: entry(key, text(template(value), task.node)) for key, value in place.ambient.items()}
        fields = [item for item in task.node if item.key == "desc"]
        code = task.node.entries["code"]
        fields.append(entry("code", _code(code.value), code))
        found = Task(label, "python", task.node, [*_args(args | given, task.node), *fields])
        place.pipeline.tasks.append(found)

    def _composite(
        self, task: Definition, label: str, place: Place, given: dict[str, Entry]
    ) -> Binding | None:
        block = Scope({}, place.scope)
        inside = replace(place, scope=block, given=given, prefix=f"{label}__")
        last = self._run(task.run, inside)
        if last is None:
            return None
        if task.run[-1].when is not None:
            # The last task may be skipped; the composite still has the result of the one before.
            place.pipeline.tasks.append(Task(label, "noop", task.node))
            last = Binding(label, is_result=True)
        return Binding(last.text, is_result=True, parts=dict(block.names))

    def _run(self, tasks: Iterable[Definition], place: Place) -> Binding | None:
        """Nested tasks, each with its own `with` over what it inherits."""
        last: Binding | None = None
        for task in tasks:
            scope = Scope(self._substituted(place.given), place.scope)
            own = {item.key: entry(item.key, scope.value(item.value), item) for item in task.given}
            last = self._task(task, place, place.given | own, set(own)) or last
        return last

    def _nested_loop(self, task: Definition, label: str, place: Place, given: dict[str, Entry]) -> None:
        used: set[str] = set()
        own = {key: Binding(member("workload", key), used=partial(used.add, key)) for key in given}
        closure = Closure(own, place.scope, {nested.name for nested in task.run})
        ambient: dict[str, str] = {}
        if task.has_python:
            used |= set(given)
            hidden = {task.iterator, *given}
            ambient = {
                key: closure.carry(key, value) for key, value in place.ambient.items() if key not in hidden
            }
            ambient |= {key: member("workload", key) for key in given}
        pipeline = Pipeline((NAMESPACES | {task.iterator, iterator_of(task), *given}).__contains__)
        inside = Place(pipeline, closure, {}, ambient, f"{place.path}/{label}")
        loop = self._loop(task, closure, inside)
        document = _document(task, inside.path, label, loop, pipeline)
        args = {key: item for key, item in given.items() if key in used}
        args |= {key: entry(key, text(value, task.node)) for key, value in closure.arguments()}
        found = Task(label, "playbook", task.node, [*_args(args, task.node), document])
        place.pipeline.tasks.append(found)

    def _loop(self, task: Definition, outside: Scope, place: Place) -> Mapping:
        """The `loop` of a canonical step; the tasks go into the pipeline of `place`."""
        name = iterator_of(task)
        around = Scope({task.iterator: Binding(member("iter", name))}, place.scope)
        given = {key: item for key, item in place.given.items() if key != task.iterator}
        ambient = place.ambient | {task.iterator: member("iter", name)}
        self._run(task.run, replace(place, scope=Scope({}, around), given=given, ambient=ambient))
        items, iterator = task.node.entries["in"], task.node.entries["iterator"]
        return mapping(
            [
                *(item for item in task.node if item.key == "desc"),
                entry("in", outside.value(items.value), items),
                entry(
                    "iterator", iterator.value if name == task.iterator else text(name, iterator), iterator
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
        owner = member("args", key)
        return text(template(f"{owner} if {owner} is defined else {conjunct(expression)}"), value)

    def _substituted(self, given: dict[str, Entry]) -> dict[str, Binding]:
        values = ((key, item.value) for key, item in given.items())
        return substituted(values, self._copy, self._inexpressible)

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
            raise TooLarge


def _document(task: Definition, path: str, label: str, loop: Mapping, pipeline: Pipeline) -> Entry:
    """A playbook of one step, the loop."""
    at = task.node
    step = mapping(
        [entry("step", text(label, at)), entry("loop", loop), entry("tool", pipeline.node(at, set()))], at
    )
    root = [
        entry("apiVersion", text("noetl.io/v2", at)),
        entry("kind", text("Playbook", at)),
        entry("metadata", node_of({"name": label, "path": path}, at)),
        entry("workflow", sequence([step], at)),
    ]
    return entry("document", mapping(root, at))


def iterator_of(task: Definition) -> str:
    """The iterator's canonical name: some names are taken there."""
    return f"{task.iterator}_item" if task.iterator in NAMESPACES | BUILTIN_ITER else task.iterator


def _args(args: dict[str, Entry], at: Located) -> list[Entry]:
    return [entry("args", mapping(args.values(), at))] if args else []


def _upper(node: Node) -> Node:
    if isinstance(node, Scalar) and isinstance(node.value, str) and not node.value.isupper():
        return text(node.value.upper(), node)
    return node


def _code(node: Node) -> Node:
    """The code itself, unless its own global `result` would hide what `main` gives."""
    code = node.value if isinstance(node, Scalar) else None
    if not isinstance(code, str) or (giving := giving_main(code)) == code:
        return node
    return text(giving, node)
