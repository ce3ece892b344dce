"""What a fork, a retry or a redrive would do, said before it is done."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from noetl.cli import console
from noetl.cli.console import visible
from noetl.cli.format import pluralize
from noetl.cli.inspection import Inspector, inspect_execution
from noetl.cli.report.explanation import section_lines
from noetl.cli.server_executions import document_fields
from noetl.client.http_client import AsyncClient
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.ports.execution_views import ForkPreview, OpenRun, ReopenPreview, RepeatedTask
from noetl.settings import Configuration

if TYPE_CHECKING:
    from noetl.engine.catalog.playbook_record import PlaybookSource

_EFFECTS = {
    "write": "changes something",
    "unknown": "may change something",
    "none": "changes nothing",
}


def print_fork_preview(
    configuration: Configuration, name: str, at: int, source: "PlaybookSource | None"
) -> int:
    """Nothing is recorded. Raises CommandFailure, NoetlError."""

    def ask(inspector: Inspector, target: str) -> Awaitable[ForkPreview]:
        if isinstance(inspector, AsyncClient):
            return inspector.preview_fork(target, at, **document_fields(source))
        return inspector.preview_fork(target, at, _document(configuration, source))

    preview = inspect_execution(configuration, name, ask)
    _print(configuration, preview, lambda: _fork_lines(preview))
    return 0


def print_retry_preview(
    configuration: Configuration, name: str, source: "PlaybookSource | None", version: int | None
) -> int:
    """The same of a retry."""

    def ask(inspector: Inspector, target: str) -> Awaitable[ReopenPreview]:
        if isinstance(inspector, AsyncClient):
            return inspector.preview_retry(target, version=version, **document_fields(source))
        _refuse_version(version)
        return inspector.preview_retry(target, _document(configuration, source))

    return _print_reopening(configuration, name, ask)


def print_redrive_preview(
    configuration: Configuration,
    name: str,
    step: str,
    source: "PlaybookSource | None",
    version: int | None,
) -> int:
    """The same of a redrive."""

    def ask(inspector: Inspector, target: str) -> Awaitable[ReopenPreview]:
        if isinstance(inspector, AsyncClient):
            return inspector.preview_redrive(target, step, version=version, **document_fields(source))
        _refuse_version(version)
        return inspector.preview_redrive(target, step, _document(configuration, source))

    return _print_reopening(configuration, name, ask)


def _print_reopening(
    configuration: Configuration, name: str, ask: Callable[[Inspector, str], Awaitable[ReopenPreview]]
) -> int:
    preview = inspect_execution(configuration, name, ask)
    _print(configuration, preview, lambda: _reopen_lines(preview))
    return 0


def _refuse_version(version: int | None) -> None:
    if version is not None:
        raise click.UsageError("--dry-run takes --version for a server alone; name its file with --playbook")


def _document(configuration: Configuration, source: "PlaybookSource | None") -> PlaybookDocument | None:
    if source is None:
        return None
    return Playbooks(allow_kinds=configuration.settings.allow_kinds).read(source)


def _print(configuration: Configuration, preview: Any, lines: Callable[[], Any]) -> None:
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(preview))
    else:
        console.write_text("".join(f"{line}\n" for line in lines()))


def _fork_lines(preview: ForkPreview) -> Iterator[str]:
    """What is copied, where the copy stands, and which tasks run again."""
    copied = f"{preview.cut} of {pluralize(preview.events, 'event')}"
    yield f"a fork of {preview.execution_id} at event {preview.at} copies {copied}; nothing was recorded"
    yield from section_lines(
        "Kept", (f"{visible(step.step)}: {pluralize(step.runs, 'run')}" for step in preview.kept)
    )
    yield from section_lines("Goes on", map(_run_text, preview.open))
    yield from section_lines(
        "Tokens", (f"{visible(step)}: {number}" for step, number in preview.tokens.items())
    )
    yield from section_lines("Runs again", map(_task_text, preview.repeats))


def _reopen_lines(preview: ReopenPreview) -> Iterator[str]:
    """The runs that open again, what runs once more, and what counts no longer."""
    opened = pluralize(len(preview.runs), "run")
    of_loops = f" with {pluralize(preview.iterations, 'iteration')}" if preview.iterations else ""
    yield f"{preview.execution_id} would open {opened}{of_loops} again; nothing was recorded"
    yield from section_lines("Opens", map(_run_text, preview.runs))
    yield from section_lines("Steps that run again", map(visible, preview.steps))
    yield from section_lines("Counts no longer", map(visible, preview.superseded))
    yield from section_lines("Runs again", map(_task_text, preview.repeats))


def _run_text(run: OpenRun) -> str:
    task = f" at task {visible(run.task)}" if run.task else ""
    loop = f", {pluralize(run.iterations, 'iteration')}" if run.iterations else ""
    return f"{visible(run.step)} ({run.run}){task}{loop}"


def _task_text(task: RepeatedTask) -> str:
    begun = pluralize(task.begun, "time")
    return (
        f"{visible(task.step)}, {visible(task.task)} ({visible(task.kind)}, line {task.line}): "
        f"{_EFFECTS[task.effect]}, begun {begun} so far"
    )
