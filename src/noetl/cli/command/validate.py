"""`noetl validate`."""

from typing import TYPE_CHECKING, NamedTuple

import click

from noetl.cli import console, file_access, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import pluralize
from noetl.cli.problem_text import UNREADABLE, problems_json, problems_text
from noetl.dsl.document.problem import Problem
from noetl.settings import Settings, read_settings

if TYPE_CHECKING:
    from noetl.dsl.compiler import CompiledPlaybook

_MARKS = 20
"""Of a long document not every mark is listed."""


class CheckedFile(NamedTuple):
    """What was found in one file."""

    text: str
    problems: tuple[Problem, ...]
    reason: str = ""
    """Its dialect, and what told it."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=options.FileName())
@click.option("--strict", is_flag=True, help="Let warnings count as errors.")
@options.dialect
@options.allow_kind
@options.tools
@click.option("-v", "--verbose", is_flag=True, help="Say which dialect each file is in, and what tells.")
@options.output
def validate(
    *,
    files: tuple[str, ...],
    strict: bool,
    dialect: str | None,
    allow_kinds: tuple[str, ...],
    verbose: bool,
    output: str | None,
) -> int:
    """Check playbooks and report every problem.

    FILE is a playbook, a directory (every playbook below it is checked; other YAML files are left
    aside) or `-` for standard input. Exits with 2 if there are errors.
    """
    settings = read_settings({"output": output, "allow_kinds": allow_kinds}).settings
    inputs = file_access.find_files(files)
    checked = [
        CheckedFile("", (_unreadable(error.filename, f"cannot be read: {error.strerror}"),))
        for error in inputs.unreadable
    ]
    checked += [_check(file, dialect, settings) for file in inputs.files]
    for file_check in checked if verbose else ():
        if file_check.reason:
            console.say(file_check.reason)
    if inputs.skipped:
        console.say(
            f"left aside: {pluralize(len(inputs.skipped), 'YAML file')} without `apiVersion: noetl.io/…`"
        )
    if not checked:
        raise CommandFailure("no-playbook", f"no playbook below {', '.join(files)}")
    problems = [problem for file_check in checked for problem in file_check.problems]
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    ok = not errors and not (strict and warnings)
    summary = ", ".join(
        pluralize(number, noun)
        for number, noun in ((len(checked), "file"), (errors, "error"), (warnings, "warning"))
    )
    if settings.output == "json":
        _print_json(problems, summary, ok=ok)
    else:
        _print_text(checked, summary, settings)
    return 0 if ok else 2


def _check(file: str, dialect: str | None, settings: Settings) -> CheckedFile:
    from noetl.loader import examine

    try:
        name, text = file_access.read_input(file)
    except CommandFailure as failure:
        return CheckedFile("", (_unreadable(file_access.input_name(file), str(failure)),))
    compiled = examine(text, name, dialect=dialect, allow_kinds=settings.allow_kinds)
    return CheckedFile(text, compiled.problems, f"{console.visible(name)}: {_reason(compiled)}")


def _reason(compiled: "CompiledPlaybook") -> str:
    """The dialect and what told it: marks with their lines."""
    recognition = compiled.recognition
    if recognition is None:
        return f"{compiled.dialect}, as it says or you say"
    found_marks = recognition.marks if compiled.dialect == "in_use" else recognition.counter_marks
    marks = ", ".join(map(str, found_marks[:_MARKS]))
    more = f" and {len(found_marks) - _MARKS} more" if len(found_marks) > _MARKS else ""
    return f"{compiled.dialect}: {marks}{more}" if marks else f"{compiled.dialect}: nothing tells otherwise"


def _unreadable(file: str, message: str) -> Problem:
    return Problem(file, 1, 1, UNREADABLE, "error", message)


def _print_json(problems: list[Problem], summary: str, *, ok: bool) -> None:
    document: dict[str, object] = {"ok": ok, "problems": problems_json(problems)}
    if not ok:
        document["error"] = {"code": "playbook-invalid", "message": summary, "hint": ""}
    console.write_json(document)


def _print_text(checked: list[CheckedFile], summary: str, settings: Settings) -> None:
    paint = console.stdout_paint(color=settings.color)
    for file_check in checked:
        if file_check.problems:
            console.write_text(problems_text(file_check.problems, file_check.text, paint=paint) + "\n\n")
    console.write_text(summary + "\n")
