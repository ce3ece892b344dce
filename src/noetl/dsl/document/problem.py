"""What is wrong with a document, and where."""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from noetl.dsl.document.source import SourceLines
from noetl.model.errors import NoetlError

Severity: TypeAlias = Literal["error", "warning"]


class Problem(Struct, frozen=True, order=True):
    """One finding. Line and column count from 1; `code` is stable and has a page in docs/checks."""

    file: str
    line: int
    column: int
    code: str
    severity: Severity
    message: str
    hint: str = ""


class PlaybookInvalid(NoetlError):
    """A document has errors. `problems` holds all findings, warnings too, in document order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        errors = [problem for problem in problems if problem.severity == "error"]
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{first.file}:{first.line}:{first.column} {first.code} {first.message}{more}")
        self.problems = problems


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
