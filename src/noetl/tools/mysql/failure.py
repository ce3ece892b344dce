"""What errors of MySQL mean to a task."""

import re

from asyncmy.errors import DataError, MySQLError, ProgrammingError

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, failed
from noetl.ports.tool import Call
from noetl.tools.sql.sql_task import BoundStatement

OK: dict[str, Json] = {"code": 0, "sqlstate": "00000", "message": None}
"""`outcome.mysql` of a success."""

_CONNECTION = {1040, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1927, 2002, 2003, 2006, 2013, 2055}
"""Too many connections, a server that ends, or a network that breaks."""
_KINDS: dict[int, ErrorKind] = {
    1044: "permission",
    1045: "credential",
    1049: "not_found",
    1142: "permission",
    1143: "permission",
    1153: "limit",
    1227: "permission",
    1251: "credential",
    1317: "timeout",
    1370: "permission",
    1410: "permission",
    1698: "credential",
    1820: "credential",
    1862: "credential",
    1969: "timeout",
    2059: "credential",
    2061: "credential",
    3024: "timeout",
    **dict.fromkeys(_CONNECTION, "connection"),
}
_LOCKED = {1205, 1213}
"""A lock that was waited for too long, and a deadlock."""
_LINE = re.compile(r" at line (\d+)$")


def mysql_failure(error: MySQLError, bound: BoundStatement | None) -> Outcome:
    """The outcome of an error, which came while the statement `bound` ran."""
    code, words = _code_and_message(error)
    message = " ".join(words.split())
    if bound is not None:
        line = _LINE.search(message)
        position = bound.position(int(line[1]) if line else 1)
        message = f"{position}: {_LINE.sub('', message)}"
    if code:
        kind: ErrorKind = _KINDS.get(code, "sql")
    else:  # the driver's own words, for what it cannot send or for a connection that is out of step
        kind = "input" if isinstance(error, ProgrammingError | DataError) else "connection"
    state: Json = getattr(error, "sqlstate", None) or ("08S01" if kind == "connection" else None)
    retryable = kind in ("connection", "timeout") or code in _LOCKED
    return failed(
        ErrorInfo(kind=kind, message=message, retryable=retryable, details={"code": code, "sqlstate": state}),
        mysql={"code": code, "sqlstate": state, "message": words},
    )


def mysql_timeout(call: Call, bound: BoundStatement | None) -> Outcome:
    """The outcome of a task whose time was over while the statement `bound` ran, or before any did."""
    message = f"not done within {call.timeout:g} s"
    if bound is None:
        return failed(ErrorInfo(kind="timeout", message=message, retryable=True))
    info = ErrorInfo(kind="timeout", message=f"{bound.position()}: {message}", retryable=True)
    return failed(info, mysql={"code": 1317, "sqlstate": "70100", "message": message})


def _code_and_message(error: MySQLError) -> tuple[int, str]:
    match error.args:
        case (int(code), message):
            return code, str(message)
        case (str(message), *_):
            return 0, message
    return 0, str(error)
