"""`noetl graph`."""

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from noetl.cli import console, file_access, options
from noetl.cli.command_failure import CommandFailure, invalid_playbook
from noetl.cli.file_access import write_file
from noetl.settings import Configuration, Settings, read_settings

if TYPE_CHECKING:
    from noetl.dsl.document.playbook import Playbook
    from noetl.engine.history.read import History
    from noetl.graph import ExecutionFacts

FORMATS = ("svg", "mermaid", "dot", "png")
"""Those of `noetl.graph`, here for `--help` and completion, which shall not import it."""

BINARY = "png"


@click.command()
@click.argument("file", required=False, type=options.FileName())
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="[default: what OUT ends with, else svg]"
)
@options.out
@click.option(
    "--execution",
    metavar="ID",
    help="Colour the steps by what happened in this execution; FILE may be left out.",
)
@options.dialect
@options.allow_kind
@options.tools
@options.home
@options.store
@options.output
def graph(
    *,
    file: str | None,
    format_: str | None,
    out: str | None,
    execution: str | None,
    dialect: str | None,
    **flags: object,
) -> None:
    """Draw a playbook as a picture.

    FILE is a playbook, or `-` for standard input. Steps are boxes, arcs are arrows with their
    conditions; the picture goes to standard output unless `-f` names a file.
    """
    configuration = read_settings(flags)
    settings = configuration.settings
    picture_format = format_ or _format_of(out)
    if picture_format == BINARY and out is None and (settings.output == "json" or sys.stdout.isatty()):
        where = "JSON" if settings.output == "json" else "a terminal"
        raise CommandFailure(
            "binary", f"{where} cannot hold a {BINARY} picture", hint=f"-f picture.{BINARY} writes a file"
        )
    from noetl.graph import GraphError, draw

    playbook, facts = _read_subject(file, execution, dialect, configuration)
    try:
        picture = draw(playbook, picture_format, facts=facts)
    except GraphError as error:
        raise CommandFailure("graph", str(error), hint=getattr(error, "hint", ""), exit_code=3) from None
    if out is not None:
        write_file(out, picture)
    if settings.output == "json":
        document = {"content": picture.decode()} if out is None else {"file": out}
        console.write_json({"format": picture_format, **document})
    elif out is None:
        console.write_bytes(picture)
    else:
        console.say(f"wrote {console.visible(out)}")


def _read_subject(
    file: str | None, execution: str | None, dialect: str | None, configuration: Configuration
) -> "tuple[Playbook, ExecutionFacts | None]":
    """What is drawn, and what happened if it is about an execution."""
    written = _read_playbook(file, dialect, configuration.settings) if file is not None else None
    if execution is None:
        if written is None:
            raise click.UsageError("Missing argument 'FILE'.", click.get_current_context())
        return written, None
    history = _read_execution(configuration, execution)
    return written or history.playbook, _facts_of(history, written or history.playbook)


def _facts_of(history: "History", playbook: "Playbook") -> "ExecutionFacts":
    """How the steps of an execution stand, what is worth a note about each, and how often arcs were taken."""
    from noetl.cli.format import duration_text, pluralize
    from noetl.events.bodies import NextEvaluated, StepScheduled, TaskProcessed, TaskStarted
    from noetl.events.identifiers import run_id
    from noetl.graph import ExecutionFacts

    state = history.state
    steps: dict[str, str] = {}
    attempts: Counter[tuple[str, str]] = Counter()
    retried: dict[tuple[str, str], None] = {}
    taken: Counter[tuple[str, int]] = Counter()
    for event in history.events:
        match event.body:
            case StepScheduled(step=step):
                steps[run_id(event.seq)] = step
            case TaskStarted(run=run, task=task, redelivery=0):
                attempts[steps[run], task] += 1
            case TaskProcessed(run=run, task=task, do="retry"):
                retried[steps[run], task] = None
            case NextEvaluated(run=run, selected=selected):
                taken.update((steps[run], number) for number in selected)
    notes: dict[str, str] = {}
    for step, time in state.step_times().items():
        summary = state.summaries[step]
        words = [pluralize(summary.runs, "run")] if summary.runs > 1 else []
        words += [f"{summary.failed} failed"] if summary.failed and summary.runs > 1 else []
        words += [f"{task}: {attempts[at, task]} attempts" for at, task in retried if at == step]
        if summary.runs and not state.plan.by_name[step].routes_only:
            words.append(duration_text(time))
        notes[step] = " \u00b7 ".join(words)
    if playbook is not history.playbook:
        taken = _same_arcs(taken, history.playbook, playbook)
    return ExecutionFacts(state.step_statuses(), notes, taken)


def _same_arcs(
    taken: "Counter[tuple[str, int]]", before: "Playbook", now: "Playbook"
) -> "Counter[tuple[str, int]]":
    """Arcs that lead to the same step in another document count there, whatever their number."""
    moved: Counter[tuple[str, int]] = Counter()
    for (name, number), times in taken.items():
        target = before.steps[name].arcs[number].step
        arcs = now.steps[name].arcs if name in now.steps else ()
        if number < len(arcs) and arcs[number].step == target:
            moved[name, number] += times
        elif (other := next((at for at, arc in enumerate(arcs) if arc.step == target), None)) is not None:
            moved[name, other] += times
    return moved


def _read_playbook(file: str, dialect: str | None, settings: Settings) -> "Playbook":
    from noetl.loader import examine

    name, text = file_access.read_input(file)
    examined = examine(text, name, dialect=dialect, allow_kinds=settings.allow_kinds)
    if examined.playbook is None:
        raise invalid_playbook(examined.problems, text)
    return examined.playbook


def _read_execution(configuration: Configuration, execution: str) -> "History":
    from noetl.cli.store_access import with_store
    from noetl.engine.history.read import read_history

    return with_store(
        configuration, lambda _home, store: read_history(store, execution, configuration.settings.allow_kinds)
    )


def _format_of(out: str | None) -> str:
    """The format that a file's name asks for."""
    if out is None:
        return "svg"
    suffix = os.path.splitext(out)[1].lstrip(".").lower()
    named = {"mmd": "mermaid", "gv": "dot"}.get(suffix, suffix)
    if named not in FORMATS:
        hint = f"--format is one of {', '.join(FORMATS)}"
        raise CommandFailure("format", f"{out}: the name does not tell the format", hint=hint)
    return named
