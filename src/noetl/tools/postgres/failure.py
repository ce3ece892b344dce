"""What errors of PostgreSQL mean to a task."""

from typing import NamedTuple

import psycopg

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, failed
from noetl.ports.tool import Call
from noetl.tools.sql.sql_task import BoundStatement

OK: dict[str, Json] = {
    "code": "00000",
    "sqlstate": "00000",
    "message": None,
    "constraint": None,
    "detail": None,
}
"""`outcome.pg` of a success."""

_RETRYABLE = {"40001", "40P01", "53300", "57014"}
_KINDS: dict[str, ErrorKind] = {
    "08": "connection",
    "28": "credential",
    "3D000": "not_found",
    "42501": "permission",
    "53300": "connection",
    "57014": "timeout",
    "57P": "connection",
}


class _Refusal(NamedTuple):
    """How a server words why it lets nobody in; libpq hides the SQLSTATE of that."""

    words: str
    sqlstate: str


_REFUSALS = (
    _Refusal("the database system is", "57P03"),
    _Refusal("too many clients", "53300"),
    _Refusal("too many connections", "53300"),
    _Refusal("remaining connection slots", "53300"),
    _Refusal("password authentication failed", "28P01"),
    _Refusal("no password supplied", "28P01"),
    _Refusal("authentication failed", "28000"),
    _Refusal("pg_hba.conf", "28000"),
    _Refusal("permission denied for database", "42501"),
    _Refusal("not currently accepting connections", "55000"),
    _Refusal("role ", "28000"),
    _Refusal("database ", "3D000"),
)
"""Those with many words come first: some of them name a role or a database, too."""


def postgres_failure(error: psycopg.Error, bound: BoundStatement | None, *, connected: bool) -> Outcome:
    """The outcome of an error, which came while the statement `bound` ran.

    `connected` says that the connection was there and is fine.
    """
    state = error.sqlstate or _refusal(error)
    diagnosis = error.diag
    primary = diagnosis.message_primary or str(error) or type(error).__name__
    refused = state is None and not isinstance(error, psycopg.OperationalError)
    if refused and bound is not None and bound.statement.words[0] == "COPY":
        primary = "COPY from or to the client cannot be run: use `rows` with `into`, or a query"
    message = " ".join(primary.split())
    if diagnosis.message_detail:
        message = f"{message}: {diagnosis.message_detail}"
    if (context := diagnosis.context) and context.startswith("COPY "):
        message = f"{message} ({context.splitlines()[0]})"
    if bound is not None:
        message = f"{bound.position(_line(diagnosis.statement_position, bound))}: {message}"
    if diagnosis.message_hint:
        message = f"{message}. {diagnosis.message_hint}"
    kind, retryable = _kind(error, state, connected=connected)
    return failed(
        ErrorInfo(kind=kind, message=message, retryable=retryable, details={"sqlstate": state}),
        pg={
            "code": state,
            "sqlstate": state,
            "message": diagnosis.message_primary or primary,
            "constraint": diagnosis.constraint_name,
            "detail": diagnosis.message_detail,
        },
    )


def postgres_timeout(call: Call, bound: BoundStatement | None) -> Outcome:
    """The outcome of a task whose time was over while the statement `bound` ran, or before any did."""
    message = f"not done within {call.timeout:g} s"
    if bound is None:
        return failed(ErrorInfo(kind="timeout", message=message, retryable=True))
    info = ErrorInfo(kind="timeout", message=f"{bound.position()}: {message}", retryable=True)
    return failed(info, pg={**OK, "code": "57014", "sqlstate": "57014", "message": message})


def _kind(error: psycopg.Error, state: str | None, *, connected: bool) -> tuple[ErrorKind, bool]:
    if state is not None:
        kind: ErrorKind = next((kind for start, kind in _KINDS.items() if state.startswith(start)), "sql")
        return kind, state in _RETRYABLE or state.startswith(("08", "57P0"))
    if isinstance(error, psycopg.OperationalError) and not connected:
        return "connection", True
    return "input", False  # the driver refused it before the server saw it


def _refusal(error: psycopg.Error) -> str | None:
    """The SQLSTATE of a refused connection."""
    if not isinstance(error, psycopg.OperationalError):
        return None
    _, fatal, reason = str(error).partition("FATAL:  ")
    if not fatal:
        reason = str(error) if "no password supplied" in str(error) else ""
    return next((refusal.sqlstate for refusal in _REFUSALS if refusal.words in reason), None)


def _line(position: str | None, bound: BoundStatement) -> int:
    """The line of the statement that the server points to, from 1."""
    return bound.text.count("\n", 0, int(position) - 1) + 1 if position else 1
