"""What is known of a document beside its playbook: its problems, and where its expressions stand."""

import enum
from functools import cached_property
from typing import NamedTuple

from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Position
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.problem_codes import CODES
from noetl.dsl.document.source import Located, Mapping, Scalar, SourceLines
from noetl.dsl.document.text_position import position_in_text
from noetl.expr.expression import Expression

_LONGEST = 500


class ExpressionRole(enum.Enum):
    """What an expression is for; it decides which names it sees and when it is evaluated."""

    WORKLOAD = "a workload default"
    KEYCHAIN = "a keychain entry"
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
    """The part of the playbook that is being read. `task`, `arc` and `rule` are indexes of their lists.

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
    """One occurrence of an expression: equal expressions are shared, their occurrences are not."""

    expression: Expression
    scalar: Scalar
    part: PlaybookPart
    guard: bool


class TaskNodes(NamedTuple):
    """What a task is in its document: its keys, those of its workbook definition too, and the merged spec."""

    inputs: Mapping
    spec: Mapping | None


class DocumentContext:
    """Collects the problems of a document, and holds what its reader noted for the checks.

    `workload_keys` are those that whoever starts the playbook is known to pass. `credentials` are the
    names given to `auth`, `reducers` the positions of reducers by step and key, `unreadable` the routers
    and policies in which something is wrong: what they do is not known. `root` is the canonical document,
    `task_nodes` are its tasks by step and index.
    """

    def __init__(
        self, file: str, text: str, kinds: Kinds, workload_keys: frozenset[str] = frozenset()
    ) -> None:
        self.file = file
        self.text = text
        self.kinds = kinds
        self.workload_keys = workload_keys
        self.problems: list[Problem] = []
        self.occurrences: list[ExpressionOccurrence] = []
        self.credentials: list[Scalar] = []
        self.reducers: dict[tuple[str, str], Position] = {}
        self.unreadable: set[PlaybookPart] = set()
        self.root: Mapping | None = None
        self.task_nodes: dict[tuple[str, int], TaskNodes] = {}

    def report(self, code: str, at: Located | Position, message: str, hint: str = "") -> None:
        severity = CODES[code].severity
        problem = Problem(self.file, at.line, at.column, code, severity, _one_line(message), _one_line(hint))
        self.problems.append(problem)

    def report_inside(self, code: str, scalar: Scalar, offset: int, message: str, hint: str = "") -> None:
        """Reports at a character of the scalar's text."""
        self.report(code, self.position_inside(scalar, offset), message, hint)

    def position_inside(self, scalar: Scalar, offset: int) -> Position:
        """Where a character of the scalar's text stands in the document."""
        return Position(*position_in_text(self._lines, scalar, offset))

    @cached_property
    def _lines(self) -> SourceLines:
        # Made for the first problem inside a text: most documents have none, and finding every line costs.
        return SourceLines(self.text)


def _one_line(message: str) -> str:
    """Names and values that a message quotes may be long, or of several lines."""
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
