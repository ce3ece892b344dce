"""What is wrong with a document, and where."""

from typing import Literal, TypeAlias

from msgspec import Struct

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
