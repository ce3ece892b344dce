"""Where in its document what failed stands, found by what the failure says."""

import re
from collections.abc import Iterator
from collections.abc import Mapping as AbstractMapping
from typing import Any

from noetl.dsl.dialects import dialect_of, lower_document
from noetl.dsl.document.composer import compose
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, TaskNodes
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Playbook, Position, Step, Task
from noetl.dsl.document.source import (
    Mapping,
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    SourceError,
)
from noetl.dsl.reader.playbook_reader import read_playbook
from noetl.expr.evaluator import quote_source
from noetl.expr.expression import Expression
from noetl.model.outcome import ErrorInfo

CODE_KEYS = ("code", "script")
SQL_KEYS = ("command", "query", "commands")

_UNDEFINED = re.compile(r"`([^`]+)` is undefined in `")
_QUOTED = re.compile(r"`([^`\s]+)`")
_EXPRESSION_MARK = re.compile(r"\{\{|\{%")
_SQL_LINE = re.compile(r"(?:statement (\d+) of \d+, )?line (\d+): ")

_KEYS_BY_KIND: dict[str, tuple[str, ...]] = {
    "credential": ("auth",),
    "not_found": ("script",),
    "python": CODE_KEYS,
    "sql": SQL_KEYS,
    "timeout": ("timeout",),
}
"""What a failure of a kind is about, where its message names no key."""

_KINDS_NAMING_KEYS = ("expression", "input", "limit", "not_found", "timeout")
"""Kinds whose messages may name a key of the document."""

_JUDGED = ("policy", "jump_limit", "retry_exhausted")
"""Kinds of failures that a rule made of an outcome."""


class Failure:
    """A failure as far as it says where it happened. Of an iteration, what failed inside."""

    def __init__(self, error: ErrorInfo, rule: int | None, inputs: AbstractMapping[str, Any]) -> None:
        cause = error.details.get("cause")
        inside = cause if error.kind == "iteration_failed" and isinstance(cause, dict) else {}
        self.step = str(error.details.get("step") or "")
        self.task = str(error.details.get("task") or "")
        self.kind: str = inside.get("kind", error.kind)
        self.message: str = inside.get("message", error.message)
        self.details: AbstractMapping[str, Any] = inside or error.details
        self.rule = rule
        """Of the policy, as `TaskProcessed` has it."""
        self.inputs = inputs
        """What the tool got, rendered."""


class FailurePositions:
    """The positions of one document, which older dialects have in the text that their author wrote."""

    def __init__(self, context: DocumentContext, playbook: Playbook) -> None:
        self._context = context
        self._playbook = playbook

    def position(self, failure: Failure) -> Position | None:
        """The expression, the line of SQL, the rule or the key that failed; else the task or the step."""
        step = self._playbook.steps.get(failure.step)
        index, task = _task_of(step, failure.task)
        nodes = self._context.task_nodes.get((failure.step, index))
        rule = _rule_position(failure, task)
        position = (
            self._expression_position(failure, index)
            or (self._sql_position(failure, nodes) if nodes is not None else None)
            or (_judge_position(failure, step, rule))
            or self._key_position(failure, nodes, rule)
        )
        if position is not None:
            return position
        if task is not None:
            return task.position
        return step.position if step is not None else None

    def code_position(self, failure: Failure, line: int, column: int) -> Position | None:
        """Where a line of a task's own code stands; `column` counts from 1, behind the line's indentation."""
        step = self._playbook.steps.get(failure.step)
        nodes = self._context.task_nodes.get((failure.step, _task_of(step, failure.task)[0]))
        scalar = _code_scalar(nodes.inputs) if nodes is not None else None
        return self._line_position(scalar, line, column) if scalar is not None else None

    def _expression_position(self, failure: Failure, index: int) -> Position | None:
        same_step = [each for each in self._context.occurrences if each.part.step == failure.step]
        same_task = [each for each in same_step if each.part.task == index]
        undefined = _UNDEFINED.search(failure.message)
        for occurrences in (same_task, same_step):
            quoting = [each for each in occurrences if _quotes(failure.message, each.expression)]
            # The same text may stand twice; what a condition does not know is no failure of it.
            quoting.sort(key=lambda each: each.guard and undefined is not None)
            if quoting:
                return self._occurrence_position(quoting[0], undefined[1] if undefined else "")
        return None

    def _occurrence_position(self, occurrence: ExpressionOccurrence, name: str) -> Position:
        return self._context.position_inside(occurrence.scalar, _offset_of(occurrence.expression, name))

    def _sql_position(self, failure: Failure, nodes: TaskNodes) -> Position | None:
        statement, line = _sql_line(failure)
        key = next((key for key in SQL_KEYS if key in nodes.inputs), None)
        if not line or key is None:
            return None
        node, rendered = nodes.inputs.entries[key].value, failure.inputs.get(key)
        if isinstance(node, Sequence):
            # Which of several texts it is can be told where each of them is one statement.
            texts = rendered if isinstance(rendered, list) else []
            if not all(isinstance(text, str) and ";" not in text.strip()[:-1] for text in texts):
                return None
            if not statement < len(node.items) == len(texts):
                return None
            node, rendered = node.items[statement], texts[statement]
        if not isinstance(node, Scalar) or not isinstance(rendered, str):
            return None
        if str(node.value).count("\n") != rendered.count("\n"):
            return None  # what was put into it has lines of its own
        return self._line_position(node, line, 1)

    def _line_position(self, scalar: Scalar, line: int, column: int) -> Position | None:
        # Code may count lines by more characters than a document does.
        lines = str(scalar.value).split("\n")[:line]
        if len(lines) < line:
            return None
        indent = len(lines[-1]) - len(lines[-1].lstrip())
        offset = sum(len(text) + 1 for text in lines[:-1]) + indent + column - 1
        return self._context.position_inside(scalar, offset)

    def _key_position(
        self, failure: Failure, nodes: TaskNodes | None, rule: Position | None
    ) -> Position | None:
        """The key that the message names, or that a failure of this kind is about."""
        names = _QUOTED.findall(failure.message) if failure.kind in _KINDS_NAMING_KEYS else []
        if failure.message.startswith("a loop runs over"):
            names = ["in"]
        names += _KEYS_BY_KIND.get(failure.kind, ())
        for scalar in self._context.credentials:
            if failure.kind == "credential" and f"`{scalar.value}`" in failure.message:
                return Position(scalar.line, scalar.column)
        entries = list(self._entries(failure, nodes))
        if rule is not None:
            # Several rules may have such a key: those of the one that was followed come first.
            entries.sort(key=lambda entry: (entry.line, entry.column) < (rule.line, rule.column))
        for name in names:
            for entry in entries:
                if entry.key in (name, name.removeprefix("ctx.")):
                    return _entry_position(entry)
        return None

    def _entries(self, failure: Failure, nodes: TaskNodes | None) -> Iterator[MappingEntry]:
        """What may be meant by a key: of the task if there is one, else around the tasks of the step."""
        if nodes is not None:
            yield from _entries_below(nodes.spec)
            yield from nodes.inputs
            return
        root = self._context.root
        if root is None:
            return
        if not failure.step:
            yield from _entries_below(root.get("executor"))
            return
        workflow = root.get("workflow")
        for step in workflow.items if isinstance(workflow, Sequence) else ():
            name = step.get("step") if isinstance(step, Mapping) else None
            if isinstance(step, Mapping) and isinstance(name, Scalar) and name.value == failure.step:
                for entry in step:
                    if entry.key != "tool":
                        yield entry
                        yield from _entries_below(entry.value)


def read_failure_positions(
    text: str, file: str, kinds: Kinds, dialect: str | None = None
) -> FailurePositions | None:
    """None if the text is no playbook, to a release that is not the one that ran it."""
    try:
        root = compose(text)
    except SourceError:
        return None
    if not isinstance(root, Mapping):
        return None
    root = lower_document(root, dialect_of(root, dialect).dialect, lambda *_: None)
    read = next(read_playbook(root, file, text, kinds))
    return FailurePositions(read.context, read.playbook) if read.playbook is not None else None


def _task_of(step: Step | None, label: str) -> tuple[int, Task | None]:
    """A task and its index; -1 stands for what belongs to the step itself."""
    tasks = step.tasks if step is not None else ()
    return next(((index, task) for index, task in enumerate(tasks) if task.label == label), (-1, None))


def _quotes(message: str, expression: Expression) -> bool:
    return message.endswith(f" in {quote_source(expression.source)}")


def _offset_of(expression: Expression, name: str) -> int:
    """The character of an expression that a failure is about: the undefined name, if it says one."""
    uses = [use for use in expression.uses if _reads(use.path, name)]
    if uses:
        return min(uses, key=lambda use: use.optional).offset
    marks = [match.start() for match in _EXPRESSION_MARK.finditer(expression.source)]
    return marks[0] if len(marks) == 1 else 0


def _reads(path: tuple[Any, ...], name: str) -> bool:
    return any(".".join(map(str, path[:length])) == name for length in range(1, len(path) + 1))


def _sql_line(failure: Failure) -> tuple[int, int]:
    """Which statement, from 0, and the line in its text, from 1, where the database says it; else no line."""
    if isinstance(line := failure.details.get("line"), int):
        return int(failure.details.get("statement") or 0), line
    match = _SQL_LINE.match(failure.message)
    return (int(match[1] or 1) - 1, int(match[2])) if match else (0, 0)


def _rule_position(failure: Failure, task: Task | None) -> Position | None:
    """The rule of a policy that was followed."""
    policy = task.policy if task is not None else None
    if policy is None or failure.rule is None:
        return None
    if failure.rule >= 0:
        return policy.rules[failure.rule].position
    return policy.otherwise.position if policy.otherwise is not None else None


def _judge_position(failure: Failure, step: Step | None, rule: Position | None) -> Position | None:
    """What made a failure of something that had not failed."""
    if failure.kind == "admission" and step is not None and step.admit is not None:
        return step.admit.position
    if failure.kind not in _JUDGED:
        return None
    if not failure.task:
        return step.router.position if step is not None and step.router is not None else None
    return rule


def _entries_below(node: Node | None) -> Iterator[MappingEntry]:
    """The entries of a node: those of a mapping before what is inside of them."""
    if isinstance(node, Mapping):
        yield from node
        for entry in node:
            yield from _entries_below(entry.value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _entries_below(item)


def _entry_position(entry: MappingEntry) -> Position:
    """Of the value if that is one line, else of the key."""
    inline = isinstance(entry.value, Scalar) and entry.value.style not in ("|", ">")
    at = entry.value if inline else entry
    return Position(at.line, at.column)


def _code_scalar(inputs: Mapping) -> Scalar | None:
    """The text of Python code that stands in the document itself."""
    code = inputs.get("code")
    if code is None and isinstance(script := inputs.get("script"), Mapping):
        source = script.get("source")
        code = source.get("code") if isinstance(source, Mapping) else None
    return code if isinstance(code, Scalar) and isinstance(code.value, str) else None
