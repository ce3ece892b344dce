"""The task library of a v1 document (004 §3), read and checked once, where it is written."""

import ast
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from noetl.dsl.dialects.nodes import NodeReader, new_mapping, without_nulls
from noetl.dsl.document.shape_check import did_you_mean
from noetl.dsl.document.source import Mapping, Node, Scalar
from noetl.guest.code import parse_code

V1TaskKind: TypeAlias = Literal["http", "python", "loop", "task"]

MAX_NESTING = 40

_KINDS: tuple[V1TaskKind, ...] = get_args(V1TaskKind)

_COMMON_KEYS = ["task", "type", "desc", "with", "when", "run"]
# 004 lists no headers and no credentials, but requests need them and playbooks have them.
_HTTP_KEYS = [
    "method",
    "endpoint",
    "params",
    "payload",
    "retry",
    "retry_delay",
    "on_error",
    "headers",
    "auth",
]
_KNOWN_KEYS: dict[V1TaskKind, list[str]] = {
    "http": [*_COMMON_KEYS, *_HTTP_KEYS],
    "python": [*_COMMON_KEYS, "code"],
    "loop": [*_COMMON_KEYS, "in", "iterator"],
    "task": _COMMON_KEYS,
}
_REQUIRED_KEYS: dict[V1TaskKind, tuple[str, ...]] = {
    "http": ("method", "endpoint"),
    "python": ("code",),
    "loop": ("in", "iterator", "run"),
    "task": ("run",),
}
_METHODS = ("GET", "POST", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A task as it is defined. `run` is empty where the type does not run nested tasks."""

    name: str
    kind: V1TaskKind
    node: Mapping
    inputs: Mapping
    run: tuple["TaskDefinition", ...]
    iterator: str
    bound_names: frozenset[str]
    """Every name it brings into a pipeline: tasks, inputs, iterators."""
    has_python: bool

    @property
    def when(self) -> Node | None:
        return self.node.get("when")


class V1Workbook:
    """The top-level tasks by name. `nested` are names that exist only inside others.

    `broken` are names whose definition was reported: what refers to them needs no second report.
    """

    def __init__(self, node: Node | None, reader: NodeReader) -> None:
        self._reader = reader
        self.tasks: dict[str, TaskDefinition] = {}
        self.nested: set[str] = set()
        self.broken: set[str] = set()
        for item in reader.sequence(node, "`workbook`") or ():
            self._add(item)

    def _add(self, item: Node) -> None:
        name = self._name(item)
        if name is None:
            return
        if name in self.tasks or name in self.broken:
            self._reader.report("duplicate-task", item, f"the workbook defines the task `{name}` twice")
            return
        definition = self._definition(item, 0)
        if definition is None:
            self.broken.add(name)
        else:
            self.tasks[name] = definition

    def _name(self, item: Node) -> str | None:
        node = self._reader.mapping(item, "a task")
        if node is None:
            return None
        return self._reader.text(self._reader.required(node, "task", "a task"), "the name of a task")

    def _definition(self, item: Node, depth: int) -> TaskDefinition | None:
        reader, name = self._reader, self._name(item)
        if name is None or not isinstance(item, Mapping):
            return None
        item = without_nulls(item)
        kind = self._kind(item, name)
        if kind is None:
            return None
        subject = f"the {kind} task `{name}`" if kind != "task" else f"the task `{name}`"
        reader.check_keys(item, _KNOWN_KEYS[kind], subject)
        required_values = [reader.required(item, key, subject) for key in _REQUIRED_KEYS[kind]]
        with_node = item.get("with")
        inputs = reader.mapping(with_node, f"`with` of `{name}`") if with_node else None
        run: tuple[TaskDefinition, ...] = ()
        if kind in ("loop", "task"):
            run = self._nested_definitions(item, name, depth)
        elif (ignored := item.entries.get("run")) is not None:
            reader.report(
                "v1-ignored-run",
                ignored,
                f"{subject} is executed by its type: its `run` never is",
                "use `type: task`",
            )
        if not all(required_values) or not self._is_sound(item, kind, subject):
            return None
        return _new_definition(name, kind, item, inputs or new_mapping([], item), run)

    def _kind(self, item: Mapping, name: str) -> V1TaskKind | None:
        node = item.get("type")
        if node is None:
            if name in self.tasks and len(item.entries) <= 2:
                self._reader.report(
                    "v1-nested-reference",
                    item,
                    f"`{name}` is defined in the workbook, and only a step may refer to it",
                    "define the nested task where it stands",
                )
            else:
                self._reader.report("missing-key", item, f"the task `{name}` needs `type`")
            return None
        text = self._reader.text(node, "`type`")
        for kind in _KINDS:
            if text and text.lower() == kind:
                return kind
        if text:
            hint = (
                did_you_mean(text.lower(), _KINDS)
                or f"the types are {', '.join(f'`{kind}`' for kind in _KINDS)}"
            )
            self._reader.report("bad-value", node, f"there is no task type `{text}`", hint)
        return None

    def _nested_definitions(self, item: Mapping, parent: str, depth: int) -> tuple[TaskDefinition, ...]:
        node = item.get("run")
        items = self._reader.sequence(node, f"`run` of `{parent}`") or []
        if node is not None and not items:
            self._reader.report("bad-value", node, f"`run` of `{parent}` holds no task")
        if depth >= MAX_NESTING:
            self._reader.report("upgrade-limit", item, f"tasks are nested deeper than {MAX_NESTING} levels")
            return ()
        definitions: dict[str, TaskDefinition] = {}
        for nested in items:
            definition = self._definition(nested, depth + 1)
            if definition is None:
                continue
            if definition.name in definitions:
                self._reader.report(
                    "duplicate-task", nested, f"`run` of `{parent}` has two tasks `{definition.name}`"
                )
                continue
            self.nested.add(definition.name)
            definitions[definition.name] = definition
        return tuple(definitions.values())

    def _is_sound(self, item: Mapping, kind: V1TaskKind, subject: str) -> bool:
        match kind:
            case "http":
                return self._check_http(item, subject)
            case "python":
                return self._check_python(item, subject)
            case "loop":
                return self._reader.text(item.get("iterator"), "`iterator`") is not None
            case "task":
                return True

    def _check_http(self, item: Mapping, subject: str) -> bool:
        reader, problems = self._reader, 0
        method = item.get("method")
        text = reader.text(method, "`method`")
        if method and text and text.upper() not in _METHODS:
            reader.report(
                "bad-value", method, f"`{text}` is no method of {subject}", f"use {', '.join(_METHODS)}"
            )
            problems += 1
        for key in ("retry", "retry_delay"):
            node = item.get(key)
            problems += node is not None and reader.whole_number(node, f"`{key}`") is None
        on_error = item.get("on_error")
        on_error_text = reader.text(on_error, "`on_error`")
        if on_error is not None and on_error_text not in ("continue", "fail"):
            problems += 1
            if on_error_text is not None:
                reader.report("bad-value", on_error, "`on_error` is `continue` or `fail`")
        return text is not None and not problems

    def _check_python(self, item: Mapping, subject: str) -> bool:
        node = item.get("code")
        code = self._reader.text(node, "`code`")
        if node and code and main_function_of(code) is None:
            self._reader.report(
                "v1-python-main",
                node,
                f"{subject} must define `main(input)`",
                "one function `main` with one parameter `input`",
            )
        return code is not None


def _new_definition(
    name: str, kind: V1TaskKind, node: Mapping, inputs: Mapping, run: tuple[TaskDefinition, ...]
) -> TaskDefinition:
    iterator = node.get("iterator") if kind == "loop" else None
    iterator_name = str(iterator.value) if isinstance(iterator, Scalar) else ""
    names = frozenset({name, iterator_name, *inputs.entries}).union(*(nested.bound_names for nested in run))
    has_python = kind == "python" or any(nested.has_python for nested in run)
    return TaskDefinition(name, kind, node, inputs, run, iterator_name, names, has_python)


def main_function_of(code: str) -> ast.FunctionDef | ast.AsyncFunctionDef | Literal["unreadable"] | None:
    """The function `main(input)` of the code; code that is no Python is for others to report."""
    tree = parse_code(code)
    if tree is None:
        return "unreadable"
    # The last definition is the one that Python keeps.
    for statement in reversed(tree.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == "main":
            return statement if _takes_input(statement.args) else None
    return None


def code_with_main_result(code: str) -> str:
    """The code, so that its result is what `main` gives even if the module sets a global `result`."""
    main = main_function_of(code)
    if main is None or main == "unreadable" or not _sets_result(code):
        return code
    call = "main(args)" if isinstance(main, ast.FunctionDef) else "__import__('asyncio').run(main(args))"
    return f"{code.rstrip()}\n\nresult = {call}\n"


def _sets_result(code: str) -> bool:
    tree = parse_code(code)
    open_nodes: list[ast.AST] = list(tree.body) if tree else []
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.Name) and node.id == "result" and isinstance(node.ctx, ast.Store):
            return True
        # What these assign is theirs, not the module's.
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            open_nodes.extend(ast.iter_child_nodes(node))
    return False


def _takes_input(args: ast.arguments) -> bool:
    positional = [*args.posonlyargs, *args.args]
    return [arg.arg for arg in positional] == ["input"] and not (args.kwonlyargs or args.vararg or args.kwarg)
