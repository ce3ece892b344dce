"""What errors of SQLite mean to a task."""

from pathlib import Path

import apsw

from noetl.model import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, failed
from noetl.tools.sql.sql_task import BoundStatement

OK: dict[str, Json] = {"code": "SQLITE_OK", "message": None}
"""`outcome.sqlite` of a success."""

_KINDS: dict[int, ErrorKind] = {
    apsw.SQLITE_AUTH: "permission",
    apsw.SQLITE_PERM: "permission",
    apsw.SQLITE_READONLY: "permission",
    apsw.SQLITE_CANTOPEN: "not_found",
    apsw.SQLITE_TOOBIG: "limit",
    apsw.SQLITE_FULL: "limit",
}
_RETRYABLE = {apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED}


def sqlite_failure(error: apsw.Error, at: BoundStatement | None, database: Path | None) -> Outcome:
    """The outcome of an error, which came while the statement `at` ran."""
    result = getattr(error, "result", 0)
    message = str(error)
    if result in (apsw.SQLITE_CANTOPEN, apsw.SQLITE_NOTADB) and database is not None:
        message = f"{message}: {database}"
    if at is not None:
        message = f"{at.position(_line(error, at))}: {message}"
    # What the driver refuses has no code: values that do not go with the statement.
    kind = _KINDS.get(result, "sql") if result else "input"
    code = _code(error)
    return failed(
        ErrorInfo(kind=kind, message=message, retryable=result in _RETRYABLE, details={"code": code}),
        sqlite={"code": code, "message": str(error)},
    )


def _code(error: apsw.Error) -> Json:
    """The name of the code, the extended one if there is."""
    extended = apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", 0))
    name: Json = extended or apsw.mapping_result_codes.get(getattr(error, "result", 0))
    return name


def _line(error: apsw.Error, at: BoundStatement) -> int:
    """The line of the statement that SQLite points to, from 1."""
    offset = getattr(error, "error_offset", -1)
    return at.text.encode()[:offset].count(b"\n") + 1 if offset >= 0 else 1
