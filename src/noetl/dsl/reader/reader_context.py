"""What all parts of the reader share: how values, conditions, writes and names are read."""

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, PlaybookPart
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Guard, Position, Write
from noetl.dsl.document.shape_check import ShapeChecker, describe_node
from noetl.dsl.document.shapes import NAME, REFUSED_KEYS, SHAPE_NAMES
from noetl.dsl.document.source import Located, Mapping, Node, Scalar, Sequence
from noetl.expr.expression import Expression, parse
from noetl.expr.language.guard import guard_fault, is_template
from noetl.expr.runtime.scope import NAMESPACES
from noetl.expr.template import Constant, ListTemplate, MappingTemplate, Template
from noetl.model.errors import ExpressionError
from noetl.model.reference import escape_key

_NAME = re.compile(NAME)


class NestedPlaybook(NamedTuple):
    """A playbook inside a task, and the workload that the task's `args` give it."""

    root: Mapping
    workload_keys: frozenset[str]


class ReaderContext(DocumentContext):
    """What the parts of the reader share while a document is read.

    `used_tasks` are the workbook tasks that steps refer to, `read_rules` the lists of rules that some
    task has, `step_names` the names of all steps, known before the first is read.
    """

    def __init__(
        self, file: str, text: str, kinds: Kinds, workload_keys: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(file, text, kinds, workload_keys)
        self.nested: list[NestedPlaybook] = []
        self.used_tasks: set[str] = set()
        # By id, because equal lists of two scopes are two. Held, because a list that is gone would
        # leave its id to the rules of a later step, and those would pass as read.
        self.read_rules: dict[int, Sequence] = {}
        self.step_names: frozenset[str] = frozenset()
        self.shape_checker = ShapeChecker(self.report, REFUSED_KEYS, SHAPE_NAMES)

    @contextmanager
    def mark_unreadable(self, part: PlaybookPart) -> Iterator[None]:
        """Marks the part as unreadable if a problem is found in it."""
        before = len(self.problems)
        yield
        if len(self.problems) > before:
            self.unreadable.add(part)

    def read_expression(
        self, scalar: Scalar, part: PlaybookPart, *, guard: bool = False
    ) -> Expression | None:
        """The parsed expression, its occurrence noted; None if it is wrong."""
        try:
            expression = parse(str(scalar.value))
        except ExpressionError as error:
            self.report_inside("expression-syntax", scalar, error.offset or 0, error.message, error.hint)
            return None
        self.occurrences.append(ExpressionOccurrence(expression, scalar, part, guard))
        return expression

    def read_guard(self, node: Node, part: PlaybookPart) -> Guard:
        """A condition. One that is wrong is reported and counts as true."""
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            self.report(
                "guard-form",
                node,
                f"a guard is one expression or a boolean, not {describe_node(node)}",
                'write `true`, `false` or `"{{ … }}"`',
            )
            return True
        expression = self.read_expression(node, part, guard=True) if is_template(node.value) else None
        if expression is None or not expression.single:
            if (fault := guard_fault(node.value)) is not None:
                self.report("guard-form", node, *fault)
            return True
        return expression

    def read_template(self, node: Node, part: PlaybookPart) -> Template:
        """A value with its expressions parsed; a wrong one is reported and stands as None."""
        if isinstance(node, Scalar):
            if isinstance(node.value, str) and is_template(node.value):
                return self.read_expression(node, part) or Constant(None)
            return Constant(node.value)
        if isinstance(node, Sequence):
            items = tuple(self.read_template(item, part) for item in node.items)
            # One constant where there is no expression inside: it renders as its parts would, without a copy.
            constants = [item.value for item in items if isinstance(item, Constant)]
            return Constant(constants) if len(constants) == len(items) else ListTemplate(items)
        return _mapping_template(
            {escape_key(key): value for key, value in self.read_values(node, part).items()}
        )

    def read_values(self, node: Mapping | None, part: PlaybookPart) -> dict[str, Template]:
        """The entries of a mapping, each with its expressions parsed."""
        if node is None:
            return {}
        return {entry.key: self.read_template(entry.value, part) for entry in node}

    def read_writes(self, node: Node | None, scope: str, part: PlaybookPart) -> tuple[Write, ...]:
        """The assignments of a `set_ctx`, `set_iter` or `set_run`; its keys are dotted paths."""
        if not isinstance(node, Mapping):
            return ()
        return tuple(self._read_write(scope, entry.key, entry.value, entry, part) for entry in node)

    def read_prefixed_writes(
        self, node: Node | None, part: PlaybookPart, *, bare: str = ""
    ) -> tuple[Write, ...]:
        """The assignments of a `set`: each key begins with its scope; `bare` takes those that do not."""
        if not isinstance(node, Mapping):
            return ()
        writes = []
        for entry in node:
            scope, dot, path = entry.key.partition(".")
            if scope in ("ctx", "iter", "run") and dot:
                writes.append(self._read_write(scope, path, entry.value, entry, part))
            elif bare:
                writes.append(
                    self._read_write(bare, entry.key.removeprefix("args."), entry.value, entry, part)
                )
            else:
                hint = f"write `ctx.{entry.key}`, `iter.{entry.key}` or `run.{entry.key}`"
                self.report("bad-write", entry, f"`{entry.key}` does not say where to write", hint)
        return tuple(writes)

    def _read_write(self, scope: str, path: str, value: Node, at: Located, part: PlaybookPart) -> Write:
        keys = tuple(path.split("."))
        if not all(keys):
            self.report(
                "bad-write", at, f"`{path}` is no path", "keys are joined by single dots, as in `a.b`"
            )
        position = Position(at.line, at.column)
        return Write(scope, keys, self.read_template(value, part._replace(write=position)), position)  # type: ignore[arg-type]  # callers pass scopes

    def read_name(
        self, node: Node | None, subject: str, *, reserved: Iterable[str] = (), allowed: Container[str] = ()
    ) -> str | None:
        """A name people chose; None if there is none or it is wrong. `allowed` are namespaces it may be."""
        if not isinstance(node, Scalar):
            return None
        text = node.value
        if not isinstance(text, str) or not _NAME.fullmatch(text):
            hint = "letters, digits, `_` and `-`, and no digit or `-` first"
            self.report("bad-name", node, f"{subject} cannot be {describe_node(node)}", hint)
            return None
        if (text in NAMESPACES and text not in allowed) or text in reserved:
            self.report(
                "reserved-name",
                node,
                f"{subject} cannot be `{text}`: that name has a meaning of its own",
                "choose another name",
            )
            return None
        return text


def position_of(at: Located) -> Position:
    return Position(at.line, at.column)


def scalar_text(node: Node | None) -> str:
    """The text of an optional scalar."""
    return str(node.value) if isinstance(node, Scalar) and node.value is not None else ""


def as_mapping(node: Node | None) -> Mapping | None:
    return node if isinstance(node, Mapping) else None


def _mapping_template(entries: dict[str, Template]) -> Template:
    constants = {key: item.value for key, item in entries.items() if isinstance(item, Constant)}
    return Constant(constants) if len(constants) == len(entries) else MappingTemplate(entries)
