"""What is wrong before the first event: what a playbook needs is not here, or nothing reads what it gets."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Playbook, Position, Task
from noetl.dsl.document.problem import PlaybookInvalid, Problem
from noetl.engine.catalog.playbooks import (
    LOCAL_HINT,
    LOCAL_REFUSED,
    PlaybookDocument,
    PlaybookMissing,
    Playbooks,
)
from noetl.expr.template import Constant
from noetl.model.errors import NoetlError
from noetl.model.json import Json
from noetl.tools.host.worker_tools import UnrunnableTask, unrunnable_tasks
from noetl.tools.python.lib_modules import tasks_without_modules

CODE = "cannot-run"
REQUEST = "<request>"
"""What problems call the values that came with a request."""
_UNREAD = "unread-workload"
_WHOLE = re.compile(r"\bworkload\b(?!\s*[.\[:'\"])")
"""The workload in one piece: who gets it may look for any key."""


class CannotRun(NoetlError):
    """A valid playbook needs something that is not here: a tool, a playbook."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"the playbook cannot run here: {first.message}{more}")
        self.hint = first.hint
        self.problems = problems


class Preflight:
    """Whether playbooks can run here. `stores` are the names of the result stores there are.

    What `serves` runs no task itself: whether modules are there its workers say.
    """

    def __init__(
        self,
        playbooks: Playbooks,
        kinds: Kinds,
        stores: frozenset[str] = frozenset(),
        *,
        serves: bool = False,
    ) -> None:
        self._playbooks = playbooks
        self._kinds = kinds
        self._stores = stores
        self._serves = serves
        self._known: dict[tuple[str, str], _Needs] = {}

    def check(self, document: PlaybookDocument) -> None:
        """Looks at the playbook and at all that its tasks name by a constant path. Raises CannotRun."""
        problems: list[Problem] = []
        seen: set[str] = set()
        todo = [document]
        while todo:
            current = todo.pop()
            if current.playbook.hash in seen:
                continue
            seen.add(current.playbook.hash)
            name = current.source.file or current.source.name
            needs = self._needs(current, name)
            problems += needs.problems
            folder = Path(current.source.file or "x").absolute().parent
            if not self._serves:
                # Each time: what is missing may have been installed since.
                tasks = tasks_without_modules(current.playbook.workflow, str(folder))
                problems += [_task_problem(name, task) for task in tasks]
            for task, path, version in needs.children:
                try:
                    todo.append(self._playbooks.find(path, version, folder))
                except PlaybookMissing as missing:
                    problems.append(_problem(name, task.position, str(missing), missing.hint))
                except PlaybookInvalid as invalid:
                    message = f"the playbook `{path}` is not valid: {invalid}"
                    problems.append(
                        _problem(name, task.position, message, "`noetl validate` shows all of it")
                    )
        if problems:
            raise CannotRun(tuple(problems))

    def _needs(self, document: PlaybookDocument, name: str) -> "_Needs":
        """What follows from the document alone: it is looked at once, however often it is run."""
        key = document.playbook.hash, name
        needs = self._known.get(key)
        if needs is None:
            lacking = [*_lacking(document.playbook, self._kinds, name)]
            if document.playbook.executor.kind == "local" and not self._playbooks.allow_local:
                lacking.append(Problem(name, 1, 1, CODE, "error", LOCAL_REFUSED, LOCAL_HINT))
            unknown = _unknown_stores(document, name, self._stores)
            children = tuple(named_children(document.playbook))
            needs = self._known[key] = _Needs((*lacking, *unknown), children)
        return needs


class _Needs(NamedTuple):
    """What a document lacks, and the playbooks that it names."""

    problems: tuple[Problem, ...]
    children: tuple[tuple[Task, str, object], ...]


def _lacking(playbook: Playbook, kinds: Kinds, name: str) -> Iterator[Problem]:
    return (_task_problem(name, task) for task in unrunnable_tasks(playbook, kinds))


def _task_problem(name: str, task: UnrunnableTask) -> Problem:
    message = f"task `{task.task}` of step `{task.step}`: {task.reason}"
    return _problem(name, task.position, message, task.hint)


def _unknown_stores(document: PlaybookDocument, name: str, stores: frozenset[str]) -> Iterator[Problem]:
    """Result stores that a task, a step or the executor names and nobody set."""
    hint = f"there are {', '.join(sorted(stores))}" if stores else "name it in `result_stores`: NAME=URL"
    reported: set[str] = set()
    for plan in document.plan.by_number:
        for label, rules in [*plan.task_rules.items(), ("", plan.rules)]:
            if rules.store and rules.store not in stores and rules.store not in reported:
                reported.add(rules.store)
                at = plan.step.tasks[plan.label_at[label]].position if label else plan.step.position
                yield _problem(name, at, f"there is no result store `{rules.store}`", hint)


def named_children(playbook: Playbook) -> Iterator[tuple[Task, str, object]]:
    """The tasks that name a playbook by a constant path: that, and the version if it is a constant."""
    for step in playbook.workflow:
        for task in step.tasks:
            path = task.inputs.get("path")
            if task.kind == "playbook" and isinstance(path, Constant) and isinstance(path.value, str):
                version = task.inputs.get("version")
                yield task, path.value, version.value if isinstance(version, Constant) else None


def _problem(name: str, position: Position, message: str, hint: str) -> Problem:
    return Problem(name, position.line, position.column, CODE, "error", message, hint)


def unread_keys(playbook: Playbook, text: str, workload: Mapping[str, Any]) -> list[Problem]:
    """A warning about each key that the playbook neither declares nor mentions, and that looks misspelt.

    At the top a key is reported whatever it looks like, unless the workload is handed on in one piece.
    """
    document = playbook.document
    declared = document.get("workload") if isinstance(document, dict) else None
    is_open = _WHOLE.search(text) is not None
    problems = []
    for path, near in _undeclared(workload, declared if isinstance(declared, dict) else {}, ()):
        is_mentioned = re.search(rf"\b{re.escape(path[-1])}\b", text) is not None
        if is_mentioned or not (near or (len(path) == 1 and not is_open)):
            continue
        name = ".".join(("workload", *path))
        hint = near or f"`{playbook.metadata.path}` has no use for it"
        problems.append(Problem(REQUEST, 1, 1, _UNREAD, "warning", f"nothing reads `{name}`", hint))
    return problems


def _undeclared(
    values: Mapping[str, Any], declared: Mapping[str, Json], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Keys that are not declared, each with the hint at the declared one that it looks like."""
    for key, value in values.items():
        if key not in declared:
            from noetl.dsl.document.shape_check import did_you_mean  # noqa: PLC0415 - brings the reader's Jinja2

            yield (*path, key), did_you_mean(key, declared)
        elif isinstance(value, dict) and isinstance(below := declared[key], dict):
            yield from _undeclared(value, below, (*path, key))
