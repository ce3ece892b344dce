"""What errors of Snowflake mean to a task."""

import re

from snowflake.connector.errors import Error, OperationalError, ProgrammingError

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, failed
from noetl.ports.tool import Call
from noetl.tools.sql.sql_task import BoundStatement

_CONNECTION = {250001, 250002, 250003, 390110, 390111, 390112, 390114, 390195}
"""No session: the account cannot be reached, or the session or its token is over."""
_LOCKED = {625, 628}
"""A lock that too many wait for, or that was waited for too long."""
_TIMEOUTS = {604, 630}
"""The statement was cancelled, or took longer than the account allows."""
_PREFIX = re.compile(r"^\d{6} \(\w{5}\): ")
_LINE = re.compile(r" line (\d+)(?= at position)")


def snowflake_success(query_id: str | None) -> dict[str, Json]:
    """`outcome.snowflake` of a success."""
    return {"code": 0, "sqlstate": "00000", "query_id": query_id, "message": None}


def snowflake_failure(error: Error, bound: BoundStatement | None, *, connected: bool) -> Outcome:
    """The outcome of an error, which came while the statement `bound` ran, or before there was a session."""
    words = _PREFIX.sub("", error.raw_msg or type(error).__name__)
    message = " ".join(words.split())
    if bound is not None:
        line = _LINE.search(message)
        message = f"{bound.position(int(line[1]) if line else 1)}: {_LINE.sub('', message)}"
    kind, retryable = _kind(error, connected=connected)
    code = error.errno if error.errno >= 0 else None
    ids: dict[str, Json] = {"code": code, "sqlstate": error.sqlstate, "query_id": error.sfqid}
    return failed(
        ErrorInfo(kind=kind, message=message, retryable=retryable, details=ids),
        snowflake={**ids, "message": words},
    )


def snowflake_timeout(call: Call, bound: BoundStatement | None) -> Outcome:
    """The outcome of a task whose time was over while the statement `bound` ran, or before any did."""
    message = f"not done within {call.timeout:g} s"
    if bound is None:
        return failed(ErrorInfo(kind="timeout", message=message, retryable=True))
    info = ErrorInfo(kind="timeout", message=f"{bound.position()}: {message}", retryable=True)
    return failed(info, snowflake={"code": 604, "sqlstate": "57014", "query_id": None, "message": message})


def _kind(error: Error, *, connected: bool) -> tuple[ErrorKind, bool]:
    code, state = error.errno, error.sqlstate or ""
    if code in _TIMEOUTS or state == "57014":
        return "timeout", True
    if 390100 <= code < 390400 and code not in _CONNECTION:
        return "credential", False
    if code in _CONNECTION or state.startswith("08"):
        return "connection", True
    if state == "42501":
        return "permission", False
    if isinstance(error, ProgrammingError):
        # Before there is a session it is the driver that refuses what it was told to connect with.
        return ("sql" if connected else "credential"), code in _LOCKED
    return ("connection", True) if isinstance(error, OperationalError) and not state else ("sql", False)
