"""What servers and workers tell their operator: a line for each thing that happened to the process.

Never a line for each event of an execution: the event log has those.
"""

import json
import logging
import traceback
from enum import Enum
from typing import IO

from noetl.model.errors import NoetlError
from noetl.model.timestamp import iso_time
from noetl.settings import LogFormat, LogLevel

_LOGGER = logging.getLogger("noetl")
# A program that uses the package, and asked for no logs, gets none on its standard error.
_LOGGER.addHandler(logging.NullHandler())
_PLAIN_TEXT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@,+%")
LONGEST_VALUE = 500
"""Characters of a value; what is longer is cut."""


class LogEvent(Enum):
    """All that is said: its words, its level, and what it means. The page about logs is made of this."""

    SERVER_STARTING = ("server starting", "info", "The process is there, and opens its store.")
    SERVER_READY = ("server ready", "info", "It answers requests at `url`.")
    SERVER_DRAINING = (
        "server draining",
        "info",
        "It was told to end: nothing new begins, tasks in flight may end.",
    )
    SERVER_STOPPED = ("server stopped", "info", "Everything that happened is recorded.")
    SERVER_FAILED = (
        "server failed",
        "error",
        "It ends because it cannot go on, mostly because of its store.",
    )
    NOT_TRACED = (
        "traces not sent",
        "warning",
        "The variables of OpenTelemetry ask for traces, and `noetl[otel]` is not installed.",
    )
    STORE_FAILING = (
        "store failing",
        "error",
        "Nothing can be written, as on a full disk: reports wait, and it is tried until it can be.",
    )
    STORE_RECOVERED = ("store recovered", "info", "What waited is written.")
    FEED_FAILING = (
        "feed failing",
        "warning",
        "Events cannot be published to the stream of the feed: they wait, and it is tried until they can be.",
    )
    FEED_RECOVERED = ("feed recovered", "info", "What waited is published.")
    LOGS_FAILING = (
        "task logs failing",
        "warning",
        "What tasks print cannot be stored with the results: it waits, up to 32 MiB, and is tried again.",
    )
    LOGS_RECOVERED = ("task logs recovered", "info", "What waited is stored.")
    AUDIT_LOST = (
        "audit entries lost",
        "error",
        "The store took them neither while the server ran nor at its end, or there were too many.",
    )
    LOSS_NOT_KEPT = (
        "lost worker not kept",
        "warning",
        "The store did not take it: the overview will not have it.",
    )
    SLOW_COMMIT = ("slow commit", "warning", "The disk took more than a second for one commit.")
    EXECUTION_FAILED = (
        "execution failed",
        "warning",
        "With the kind of the error and the step; the execution itself has more.",
    )
    LEASE_EXPIRED = ("lease expired", "warning", "A run was lost with its worker, and goes on elsewhere.")
    REPORT_BROKEN = (
        "report broken",
        "error",
        "A bug of ours: what a worker reports of a run cannot be decided. It loses the run.",
    )
    WORKER_CONNECTED = ("worker connected", "info", "A worker process registered, or came back.")
    WORKER_REJECTED = (
        "worker rejected",
        "warning",
        "A worker speaks another version of the protocol; it is told which release to use.",
    )
    WORKER_LEFT = ("worker left", "info", "A worker that had given back all of its runs is gone.")
    WORKER_LOST = ("worker lost", "warning", "A worker stopped beating, or sent what is no message.")
    REGISTERED = ("registered with the server", "info", "Said by a worker: it takes runs from here on.")
    CONNECTED_AGAIN = (
        "connected again",
        "info",
        "Said by a worker: the connection was broken, and its runs are still its own.",
    )
    SERVER_UNREACHABLE = (
        "server unreachable",
        "warning",
        "Said by a worker, once a minute: it cannot connect, and tries again.",
    )
    STREAM_REFUSED = (
        "stream refused",
        "warning",
        "Said by a worker: no WebSocket comes through, so it asks by requests and waits for answers.",
    )
    RESULTS_THROUGH_SERVER = (
        "results go through the server",
        "warning",
        "Said by a worker: it cannot reach the bucket of results itself, and sends bodies to its server.",
    )
    RUN_REFUSED = (
        "run cannot begin",
        "warning",
        "Said by a worker: it cannot fetch what a run needs, and gives it back.",
    )
    LEASES_GIVEN_UP = (
        "leases given up",
        "warning",
        "Said by a worker: no heartbeat was answered in time, so its runs may be elsewhere.",
    )
    WORKER_DRAINING = (
        "worker draining",
        "info",
        "Said by a worker: attempts in flight end, the rest is given back.",
    )
    WORKER_STOPPED = ("worker stopped", "info", "Said by a worker: it holds nothing any more.")

    @property
    def words(self) -> str:
        return self.value[0]

    @property
    def level(self) -> str:
        return self.value[1]

    @property
    def meaning(self) -> str:
        return self.value[2]


def log_event(event: LogEvent, /, **fields: object) -> None:
    """One line, if somebody configured logs. A field that is None is left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    level = logging.getLevelNamesMapping()[event.level.upper()]
    # What the world did is said in a line; a traceback is for what is our fault.
    error = known.get("error")
    trace = error if isinstance(error, Exception) and not isinstance(error, NoetlError | OSError) else None
    _LOGGER.log(level, event.words, exc_info=trace, extra={"fields": known})


def configure_logs(stream: IO[str], log_format: LogFormat, log_level: LogLevel) -> None:
    """Has everything written to `stream` that this process logs, the libraries' lines, too.

    A second call replaces the first.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines() if log_format == "json" else _TextLines())
    logging.raiseExceptions = False  # nobody who reads the log is no reason to fail
    root = logging.getLogger()
    root.handlers = [handler]
    level = logging.getLevelNamesMapping()[log_level.upper()]
    _LOGGER.setLevel(level)
    # What libraries say of themselves helps an operator when something is wrong, or is looked for.
    root.setLevel(logging.INFO if log_level == "debug" else max(level, logging.WARNING))


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _json(_document(record))


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        document = _document(record)
        time, level, event = document.pop("time"), document.pop("level"), document.pop("event")
        cause = document.pop("traceback", "")
        parts = [f"{time} {level:<7} {_printable(str(event))}"]
        parts += [f"{name}={_text_of(value)}" for name, value in document.items()]
        return " ".join(parts) + (f"\n{str(cause).rstrip()}" if cause else "")


def _document(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, "fields", {})
    document: dict[str, object] = {
        "time": iso_time(int(record.created * 1e6)),
        "level": record.levelname.lower(),
        "event": record.getMessage(),
    }
    if record.name != _LOGGER.name:
        document["logger"] = record.name
    for name, value in fields.items():
        document[name] = _cut(str(value) or type(value).__name__) if _is_text(value) else value
    if record.exc_info and record.exc_info[0] is not None:
        document["traceback"] = "".join(traceback.format_exception(*record.exc_info))
    return document


def _is_text(value: object) -> bool:
    return isinstance(value, str | BaseException)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _text_of(value: object) -> str:
    """A value that is one word as it is, else as JSON."""
    if isinstance(value, str) and value and _PLAIN_TEXT.issuperset(value):
        return value
    return _json(value)


def _json(value: object) -> str:
    """In one line, also for those who count U+2028 as its end."""
    return _printable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _printable(text: str) -> str:
    """Without what could steer a terminal: written as JSON escapes it."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)
