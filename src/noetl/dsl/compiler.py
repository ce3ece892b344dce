"""From text to a checked playbook: compose, upgrade, read, check, silence."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from noetl.dsl.checks import run_checks
from noetl.dsl.dialects import Dialect, dialect_of, lower_document
from noetl.dsl.dialects.in_use.recognition import Recognition
from noetl.dsl.dialects.in_use.spelling_hints import explain_spellings, note_mixture, suggest_spellings
from noetl.dsl.document.composer import compose
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.problem_codes import CODES
from noetl.dsl.document.shape_check import describe_node
from noetl.dsl.document.shapes import DRAFT_HINT
from noetl.dsl.document.source import Located, Mapping, SourceError, SourceLines, node_value
from noetl.dsl.reader.playbook_reader import read_playbook
from noetl.model.json import Json


class CompiledPlaybook(NamedTuple):
    """A document and what was found. `playbook` is None if there is an error among `problems`."""

    playbook: Playbook | None
    problems: tuple[Problem, ...]
    document: Json
    """The canonical document; None if the text holds none."""
    dialect: Dialect
    recognition: Recognition | None = None
    """What tells its dialect, if nobody said which it is."""


def compile_playbook(text: str, file: str, kinds: Kinds, dialect: str | None = None) -> CompiledPlaybook:
    """Reads and checks a document of any dialect. Never raises on what the text says."""
    problems: list[Problem] = []

    def report(code: str, at: Located, message: str, hint: str = "") -> None:
        problems.append(Problem(file, at.line, at.column, code, CODES[code].severity, message, hint))

    try:
        root = compose(text)
    except SourceError as error:
        fault = Problem(file, error.line, error.column, error.code, "error", error.message, error.hint)
        return CompiledPlaybook(None, (fault,), None, "canonical")
    if not isinstance(root, Mapping):
        message = (
            "the file is empty" if root is None else f"a playbook is a mapping, not {describe_node(root)}"
        )
        hint = "begin with `apiVersion: noetl.io/v2`"
        fault = Problem(file, 1, 1, "empty-document", "error", message, hint)
        return CompiledPlaybook(None, (fault,), None, "canonical")
    source = root
    source_dialect, recognition = dialect_of(root, dialect)
    root = lower_document(root, source_dialect, report)
    playbook: Playbook | None = None
    for read in read_playbook(root, file, text, kinds):
        if read.playbook is not None:
            run_checks(read.playbook, read.context)
        problems.extend(read.context.problems)
        playbook = playbook or read.playbook
    if source_dialect != "canonical":  # the others need not say it, and an upgrade may add the `spec`
        problems = [problem for problem in problems if problem.code != "executor-kind"]
    if source_dialect == "draft":
        problems = [_drop_draft_hint(problem) for problem in problems]
    if source_dialect == "canonical" and problems:
        problems = explain_spellings(source, problems)
    if source_dialect == "in_use":
        problems = suggest_spellings(problems)
    if recognition is not None and recognition.marks and recognition.counter_marks:
        problems = note_mixture(recognition, problems, file)
    settled = _settle(problems, text)
    document = playbook.document if playbook is not None else node_value(root)
    if playbook is not None:
        failed = any(problem.severity == "error" for problem in settled)
        playbook = None if failed else replace(playbook, warnings=settled)
    return CompiledPlaybook(playbook, settled, document, source_dialect, recognition)


def _drop_draft_hint(problem: Problem) -> Problem:
    """The problem without the advice to read the document as what it is read as already."""
    if not problem.hint.endswith(DRAFT_HINT):
        return problem
    return replace(problem, hint=problem.hint.removesuffix(DRAFT_HINT))


def _settle(problems: Iterable[Problem], text: str) -> tuple[Problem, ...]:
    """In document order, each once, without those that a comment on their line silences.

    The same may be found twice: a definition in the workbook is read with every task that uses it.
    """
    ignored = ignored_codes(text)
    unsilenced = {
        problem
        for problem in problems
        if problem.code not in ignored.get(problem.line, ()) or not CODES[problem.code].silenceable
    }
    return tuple(sorted(unsilenced))


_IGNORE = re.compile(r"#\s*noetl:\s*ignore\s+([a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")


def ignored_codes(text: str) -> dict[int, frozenset[str]]:
    """The codes that a `# noetl: ignore CODE, CODE` comment silences, by line."""
    # Nearly no document silences anything: one search saves the splitting into lines.
    if "noetl:" not in text:
        return {}
    codes_by_line = {}
    for number, line in enumerate(SourceLines(text), start=1):
        if "noetl:" in line and (match := _IGNORE.search(line)):
            codes_by_line[number] = frozenset(code.strip() for code in match[1].split(","))
    return codes_by_line
