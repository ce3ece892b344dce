"""What DuckDB's errors mean."""

import re
from collections.abc import Mapping
from typing import Any

import duckdb

from noetl.model import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, failed

_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_MISSING_TABLE = re.compile(r"Table with name (.+?) does not exist")
_NEAR = re.compile(r'syntax error at or near "(\w+)"')
_MISSING_FILE = ("No files found that match", "No such file or directory", "database does not exist")
_EXTENSION = re.compile(r"""[Ee]xtension ['"]?([\w./-]+?)['"]?(?: |\.|$)""")
_INSTALLING = (
    "Failed to download extension",
    "INSTALL ",
    "not found",
)
_HINT = "`spec: { transaction: false }` runs each statement by itself"


class Place:
    """Where in a task's SQL a statement stands: which it is, and the lines of its text before it."""

    def __init__(self, number: int = 0, lines: int = 0) -> None:
        self.number = number
        self.lines = lines


def failure_of(
    error: Exception, place: Place, labels: Mapping[str, str], unfit: Mapping[str, str]
) -> Outcome:
    """The outcome that an error of DuckDB is.

    `labels` are those of tasks and steps that the SQL mentions, by their lower-case form; `unfit` says
    why what one of them gave is no table.
    """
    text = str(error).strip()
    lines = [int(found) + place.lines for found in _LINE.findall(text)]
    text = _LINE.sub(lambda found: f"LINE {int(found[1]) + place.lines}:", text)
    if hint := _hint(error, text, labels, unfit):
        text = f"{text}\n{hint}"
    kind = _kind(error, text)
    about: dict[str, Json] = {
        "type": _type(error, text),
        "statement": place.number,
        "line": lines[0] if lines else None,
        "message": text,
    }
    details: dict[str, Any] = {key: about[key] for key in ("type", "statement", "line")}
    info = ErrorInfo(kind=kind, message=text, retryable=_may_pass(error, text), details=details)
    return failed(info, duckdb=about)


def _type(error: Exception, text: str) -> str:
    """What DuckDB calls it, for example `Binder` or `Constraint`."""
    head, found, _ = text.partition(" Error: ")
    return head if found and "\n" not in head else type(error).__name__.removesuffix("Exception")


def _kind(error: Exception, text: str) -> ErrorKind:
    if isinstance(error, duckdb.OutOfMemoryException):
        return "limit"
    if isinstance(error, duckdb.PermissionException) or "Permission denied" in text:
        return "permission"
    if _wants_extension(text) or any(words in text for words in _MISSING_FILE):
        return "not_found"
    if "Could not set lock" in text or isinstance(error, duckdb.HTTPException | duckdb.ConnectionException):
        return "connection"
    return "sql"


def _wants_extension(text: str) -> bool:
    return _EXTENSION.search(text) is not None and any(words in text for words in _INSTALLING)


def _hint(error: Exception, text: str, labels: Mapping[str, str], unfit: Mapping[str, str]) -> str:
    if (found := _MISSING_TABLE.search(text)) and (reason := unfit.get(found[1])):
        return f"`{found[1]}` is not a table here: {reason}"
    if (found := _NEAR.search(text)) and (label := labels.get(found[1].lower())):
        return f'`{label}` is a word of SQL: write "{label}" for the result of that name'
    if isinstance(error, duckdb.TransactionException) and "onflict" not in text:
        return _HINT
    if _wants_extension(text):
        return "install it on the worker's machine, with `INSTALL` in DuckDB, while that is online"
    return ""


def _may_pass(error: Exception, text: str) -> bool:
    """Whether another attempt may end well: others had the rows, or the file, at the same time."""
    conflict = isinstance(error, duckdb.TransactionException) and "onflict" in text
    return conflict or "Could not set lock" in text
