"""What a playbook needs that is not here, found before its first event."""

from collections.abc import Iterator
from pathlib import Path

from noetl.dsl.kinds import Kinds
from noetl.dsl.playbook import Place, Playbook, Task
from noetl.dsl.problem import PlaybookInvalid, Problem
from noetl.expr import Constant
from noetl.model import NoetlError
from noetl.server.playbooks import Document, PlaybookMissing, Playbooks
from noetl.tools.hosting import unrunnable

CODE = "cannot-run"


class CannotRun(NoetlError):
    """A valid playbook needs something that is not here: a tool, a playbook."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"the playbook cannot run here: {first.message}{more}")
        self.hint = first.hint
        self.problems = problems


def check(
    document: Document, playbooks: Playbooks, kinds: Kinds, stores: frozenset[str] = frozenset()
) -> None:
    """Looks at the playbook and at all that its tasks name by a constant path. Raises CannotRun.

    `stores` are the names of the result stores there are.
    """
    problems: list[Problem] = []
    seen: set[str] = set()
    todo = [document]
    while todo:
        one = todo.pop()
        if one.playbook.hash in seen:
            continue
        seen.add(one.playbook.hash)
        name = one.source.file or one.source.name
        problems += _lacking(one.playbook, kinds, name)
        problems += _unknown_stores(one, name, stores)
        for task, path, version in _children(one.playbook):
            try:
                todo.append(playbooks.named(path, version, Path(one.source.file or "x").absolute().parent))
            except PlaybookMissing as missing:
                problems.append(_problem(name, task.place, str(missing), missing.hint))
            except PlaybookInvalid as invalid:
                message = f"the playbook `{path}` is not valid: {invalid}"
                problems.append(_problem(name, task.place, message, "`noetl validate` shows all of it"))
    if problems:
        raise CannotRun(tuple(problems))


def _lacking(playbook: Playbook, kinds: Kinds, name: str) -> Iterator[Problem]:
    for one in unrunnable(playbook, kinds):
        yield _problem(name, one.place, f"task `{one.task}` of step `{one.step}`: {one.reason}", one.hint)


def _unknown_stores(document: Document, name: str, stores: frozenset[str]) -> Iterator[Problem]:
    """Result stores that a task, a step or the executor names and nobody set."""
    hint = f"there are {', '.join(sorted(stores))}" if stores else "name it in `result_stores`: NAME=URL"
    told: set[str] = set()
    for plan in document.plan.by_number:
        for label, rules in [*plan.task_rules.items(), ("", plan.rules)]:
            if rules.store and rules.store not in stores and rules.store not in told:
                told.add(rules.store)
                at = plan.step.tasks[plan.label_at[label]].place if label else plan.step.place
                yield _problem(name, at, f"there is no result store `{rules.store}`", hint)


def _children(playbook: Playbook) -> Iterator[tuple[Task, str, object]]:
    for step in playbook.workflow:
        for task in step.tasks:
            path = task.inputs.get("path")
            if task.kind == "playbook" and isinstance(path, Constant) and isinstance(path.value, str):
                version = task.inputs.get("version")
                yield task, path.value, version.value if isinstance(version, Constant) else None


def _problem(name: str, place: Place, message: str, hint: str) -> Problem:
    return Problem(name, place.line, place.column, CODE, "error", message, hint)
