"""What DuckDB's errors mean."""

import errno
import re
from collections.abc import Mapping
from typing import NamedTuple

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, failed

_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_MISSING_TABLE = re.compile(r"Table with name (.+?) does not exist")
_NEAR = re.compile(r'syntax error at or near "(\w+)"')
_MISSING_FILE = ("No files found that match", "No such file or directory", "database does not exist")
_EXTENSION = re.compile(
    r"(?s)Extension \"[^\"]*\" not found|extension.*INSTALL |Failed to download extension"
    r"|exists in the \w+ extension"
)
_KINDS: dict[str, ErrorKind] = {
    "Out of Memory": "limit",
    "Permission": "permission",
    "HTTP": "connection",
    "Connection": "connection",
}
_IN_USE = ("Could not set lock", "Unique file handle conflict")
"""What is said of a database file that another process has, or another execution."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class StatementPosition(NamedTuple):
    """Where in a task's SQL a statement stands: which it is, and the lines of its text before it."""

    number: int = 0
    lines: int = 0


def duckdb_failure(
    error: Exception, position: StatementPosition, labels: Mapping[str, str], unfit: Mapping[str, str]
) -> Outcome:
    """The outcome that an error of DuckDB is, or of a file that rows were written to.

    `labels` are those of tasks and steps that the SQL mentions, by their lower-case form; `unfit` says
    why what one of them gave is no table.
    """
    text = str(error).strip()
    lines = [int(line) + position.lines for line in _LINE.findall(text)]
    text = _LINE.sub(lambda match: f"LINE {int(match[1]) + position.lines}:", text)
    name = _type(error, text)
    details: dict[str, Json] = {
        "type": name,
        "statement": position.number,
        "line": lines[0] if lines else None,
    }
    if hint := _hint(name, text, labels, unfit):
        text = f"{text}\n{hint}"
    conflict = name == "TransactionContext" and "onflict" in text
    info = ErrorInfo(
        kind=_kind(error, name, text),
        message=text,
        retryable=conflict or _in_use(text),
        details=details,
    )
    return failed(info, duckdb={**details, "message": text})


def _type(error: Exception, text: str) -> str:
    """What DuckDB calls it, for example `Binder` or `Constraint`: its errors may come through Arrow."""
    name, separator, _ = text.partition(" Error: ")
    return name if separator and "\n" not in name else type(error).__name__.removesuffix("Exception")


def _kind(error: Exception, name: str, text: str) -> ErrorKind:
    if isinstance(error, OSError) and error.errno in _FULL:
        return "limit"
    if "Permission denied" in text:
        return "permission"
    if _EXTENSION.search(text) or any(words in text for words in _MISSING_FILE):
        return "not_found"
    return "connection" if _in_use(text) else _KINDS.get(name, "sql")


def _in_use(text: str) -> bool:
    return any(words in text for words in _IN_USE)


def _hint(name: str, text: str, labels: Mapping[str, str], unfit: Mapping[str, str]) -> str:
    if (match := _MISSING_TABLE.search(text)) and (reason := unfit.get(match[1])):
        return f"`{match[1]}` is not a table here: {reason}"
    if (match := _NEAR.search(text)) and (label := labels.get(match[1].lower())):
        return f'`{label}` is a word of SQL: write "{label}" for the result of that name'
    if name == "TransactionContext" and "onflict" not in text:
        return "`spec: { transaction: false }` runs each statement by itself"
    if _EXTENSION.search(text):
        return "install it on the worker's machine, with `INSTALL` in DuckDB, while that is online"
    return ""
