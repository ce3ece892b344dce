"""What all parts of the reader share: where problems go, and how values and conditions are read."""

import enum
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Guard, Position, Write
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.problem_codes import CODES
from noetl.dsl.document.shape_check import ShapeChecker, describe_node
from noetl.dsl.document.shapes import NAME, REFUSED_KEYS, SHAPE_NAMES
from noetl.dsl.document.source import Located, Mapping, Node, Scalar, Sequence, SourceLines
from noetl.dsl.document.text_position import position_in_text
from noetl.expr import (
    NAMESPACES,
    Constant,
    Expression,
    ListTemplate,
    MappingTemplate,
    Template,
    guard_fault,
    is_template,
    parse,
)
from noetl.model import ExpressionError
from noetl.model.reference import escape_key

_NAME = re.compile(NAME)
_LONGEST = 500


class ExpressionRole(enum.Enum):
    """What an expression is for; it decides which names it sees and when it is evaluated."""

    WORKLOAD = "a workload default"
    OUTPUT = "the execution's output"
    ADMIT = "an admission rule"
    STEP_ARGS = "a step's args"
    LOOP = "a loop"
    TASK_ARGS = "a task's args"
    INPUT = "a tool input"
    SPEC = "a task's spec"
    POLICY = "a policy rule"
    POLICY_WRITE = "a write of a policy rule"
    TASK_WRITE = "a task's `set`"
    STEP_WRITE = "a step's `set`"
    ARC = "an arc's guard"
    ARC_ARGS = "an arc's args"
    ARC_WRITE = "an arc's `set`"


ELSE = -1


class PlaybookPart(NamedTuple):
    """The part of the playbook that is being read. `task`, `arc` and `rule` are positions in their lists.

    The `else` of a policy is the last of its rules, wherever it stands. `write` is where the write
    stands whose value is read.
    """

    role: ExpressionRole
    step: str = ""
    task: int = -1
    arc: int = -1
    key: str = ""
    rule: int = ELSE
    write: Position | None = None


class ExpressionOccurrence(NamedTuple):
    """One occurrence of an expression: equal expressions are shared, their sites are not."""

    expression: Expression
    scalar: Scalar
    where: PlaybookPart
    guard: bool


class NestedPlaybook(NamedTuple):
    """A playbook inside a task, and the workload that the task's `args` give it."""

    root: Mapping
    workload_keys: frozenset[str]


class ReaderContext:
    """Collects problems and sites while a document is read.

    `given` are the workload keys that whoever starts the playbook is known to pass.
    `credentials` are the names given to `auth`, `reducers` the places of reducers by step and key,
    `unreadable` the routers and policies in which something is wrong: what they do is not known,
    `step_names` the names of all steps, known before the first is read.
    """

    def __init__(self, file: str, text: str, kinds: Kinds, given: frozenset[str] = frozenset()) -> None:
        self.file = file
        self.text = text
        self.kinds = kinds
        self.workload_keys = given
        self.problems: list[Problem] = []
        self.sites: list[ExpressionOccurrence] = []
        self.nested: list[NestedPlaybook] = []
        self.used_tasks: set[str] = set()
        self.read_rules: set[int] = set()
        self.credentials: list[Scalar] = []
        self.reducers: dict[tuple[str, str], Position] = {}
        self.unreadable: set[PlaybookPart] = set()
        self.step_names: frozenset[str] = frozenset()
        self.shape_checker = ShapeChecker(self.report, REFUSED_KEYS, SHAPE_NAMES)

    def report(self, code: str, at: Located | Position, message: str, hint: str = "") -> None:
        severity = CODES[code].severity
        found = Problem(self.file, at.line, at.column, code, severity, _one_line(message), _one_line(hint))
        self.problems.append(found)

    def report_inside(self, code: str, scalar: Scalar, offset: int, message: str, hint: str = "") -> None:
        """Reports at a character of the scalar's text."""
        line, column = position_in_text(self._lines, scalar, offset)
        self.report(code, Position(line, column), message, hint)

    @cached_property
    def _lines(self) -> SourceLines:
        return SourceLines(self.text)

    @contextmanager
    def mark_unreadable(self, where: PlaybookPart) -> Iterator[None]:
        """Marks the part as unreadable if a problem is found in it."""
        before = len(self.problems)
        yield
        if len(self.problems) > before:
            self.unreadable.add(where)

    def read_expression(
        self, scalar: Scalar, where: PlaybookPart, *, guard: bool = False
    ) -> Expression | None:
        """The parsed expression, noted as a site; None if it is wrong."""
        try:
            expression = parse(str(scalar.value))
        except ExpressionError as error:
            self.report_inside("expression-syntax", scalar, error.offset or 0, error.message, error.hint)
            return None
        self.sites.append(ExpressionOccurrence(expression, scalar, where, guard))
        return expression

    def read_guard(self, node: Node, where: PlaybookPart) -> Guard:
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
        expression = self.read_expression(node, where, guard=True) if is_template(node.value) else None
        if expression is None or not expression.single:
            if (fault := guard_fault(node.value)) is not None:
                self.report("guard-form", node, *fault)
            return True
        return expression

    def read_data(self, node: Node, where: PlaybookPart) -> Template:
        """A value with its expressions parsed; a wrong one is reported and stands as None."""
        if isinstance(node, Scalar):
            if isinstance(node.value, str) and is_template(node.value):
                return self.read_expression(node, where) or Constant(None)
            return Constant(node.value)
        if isinstance(node, Sequence):
            items = tuple(self.read_data(item, where) for item in node.items)
            constants = [item.value for item in items if isinstance(item, Constant)]
            return Constant(constants) if len(constants) == len(items) else ListTemplate(items)
        return _as_data({escape_key(key): value for key, value in self.read_values(node, where).items()})

    def read_values(self, node: Mapping | None, where: PlaybookPart) -> dict[str, Template]:
        """The entries of a mapping, each with its expressions parsed."""
        if node is None:
            return {}
        return {entry.key: self.read_data(entry.value, where) for entry in node}

    def read_writes(self, node: Node | None, scope: str, where: PlaybookPart) -> tuple[Write, ...]:
        """The assignments of a `set_ctx`, `set_iter` or `set_run`; its keys are dotted paths."""
        if not isinstance(node, Mapping):
            return ()
        return tuple(self._write(scope, entry.key, entry.value, entry, where) for entry in node)

    def read_prefixed_writes(
        self, node: Node | None, where: PlaybookPart, *, bare: str = ""
    ) -> tuple[Write, ...]:
        """The assignments of a `set`: each key begins with its scope; `bare` takes those that do not."""
        if not isinstance(node, Mapping):
            return ()
        writes = []
        for entry in node:
            scope, dot, path = entry.key.partition(".")
            if scope in ("ctx", "iter", "run") and dot:
                writes.append(self._write(scope, path, entry.value, entry, where))
            elif bare:
                writes.append(self._write(bare, entry.key.removeprefix("args."), entry.value, entry, where))
            else:
                hint = f"write `ctx.{entry.key}`, `iter.{entry.key}` or `run.{entry.key}`"
                self.report("bad-write", entry, f"`{entry.key}` does not say where to write", hint)
        return tuple(writes)

    def _write(self, scope: str, path: str, value: Node, at: Located, where: PlaybookPart) -> Write:
        keys = tuple(path.split("."))
        if not all(keys):
            self.report(
                "bad-write", at, f"`{path}` is no path", "keys are joined by single dots, as in `a.b`"
            )
        place = Position(at.line, at.column)
        return Write(scope, keys, self.read_data(value, where._replace(write=place)), place)  # type: ignore[arg-type]  # callers pass scopes

    def read_name(self, node: Node | None, what: str, *, reserved: Iterable[str] = ()) -> str | None:
        """A name people chose; None if there is none or it is wrong."""
        if not isinstance(node, Scalar):
            return None
        text = node.value
        if not isinstance(text, str) or not _NAME.fullmatch(text):
            hint = "letters, digits, `_` and `-`, and no digit or `-` first"
            self.report("bad-name", node, f"{what} cannot be {describe_node(node)}", hint)
            return None
        if text in NAMESPACES or text in reserved:
            self.report(
                "reserved-name",
                node,
                f"{what} cannot be `{text}`: that name has a meaning of its own",
                "choose another name",
            )
            return None
        return text


def _one_line(message: str) -> str:
    """Names and values that a message quotes may be long, or of several lines."""
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def position_of(at: Located) -> Position:
    return Position(at.line, at.column)


def scalar_text(node: Node | None) -> str:
    """The text of an optional scalar."""
    return str(node.value) if isinstance(node, Scalar) and node.value is not None else ""


def as_mapping(node: Node | None) -> Mapping | None:
    return node if isinstance(node, Mapping) else None


def _as_data(entries: dict[str, Template]) -> Template:
    constants = {key: item.value for key, item in entries.items() if isinstance(item, Constant)}
    return Constant(constants) if len(constants) == len(entries) else MappingTemplate(entries)
