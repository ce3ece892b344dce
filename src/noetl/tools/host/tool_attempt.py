"""What an attempt of a task comes to, whatever happens in it."""

import errno
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from noetl.dsl.document.kinds import Fault
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, ToolError, failed
from noetl.ports.results import ResultError
from noetl.ports.tool import Call

Inputs = TypeVar("Inputs", bound=Struct)

_MOST_FRAMES = 10
"""Of a traceback, the innermost."""
_PACKAGE = __file__.removesuffix("tools/host/tool_attempt.py")


def inputs_of(call: Call, model: type[Inputs]) -> Inputs:
    """The inputs of the call, typed. ToolError of kind `input` if they do not fit."""
    values: Mapping[str, Json] = call.inputs
    # Every task may have `args`; most kinds take them from `call.args`, and their inputs forbid them.
    if "args" in values and "args" not in model.__struct_encode_fields__:
        values = {name: value for name, value in values.items() if name != "args"}
    try:
        return msgspec.convert(values, model)
    except msgspec.ValidationError as error:
        raise ToolError("input", str(error)) from None


def refuse_faults(faults: Iterable[Fault]) -> None:
    """ToolError of kind `input` if there is a fault.

    Documents are checked by the same rules, but what an expression gives is known only when the task runs.
    """
    for fault in faults:
        raise ToolError("input", f"{fault.message}: {fault.hint}" if fault.hint else fault.message)


async def as_outcome(work: Awaitable[Outcome]) -> Outcome:
    """The outcome of the work. An exception of it is told as an error, `tool` if unnamed.

    A result store that fails is part of the world: what it misses is `not_found`, else it is `store`.
    """
    try:
        return await work
    except ToolError as error:
        return failed(error.info)
    except ResultError as error:
        return error_outcome(error.kind, _message_with_hint(error), retryable=error.retryable)
    except OSError as error:
        # No room or no descriptor: others may free some, so another attempt may end well.
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
        return exception_outcome(error, "limit" if full else "tool", retryable=full)
    except Exception as error:  # noqa: BLE001 - a tool never raises: this is a fault of its own, told as one
        return exception_outcome(error)


def exception_outcome(error: Exception, kind: ErrorKind = "tool", *, retryable: bool = False) -> Outcome:
    """The error outcome of an exception that nobody foresaw, with its traceback.

    That may be long, and holds what is to be masked before it is cut.
    """
    details: dict[str, Json] = {"exception": type(error).__name__, "traceback": _traceback_text(error)}
    return error_outcome(kind, describe_error(error), retryable=retryable, details=details)


def error_outcome(
    kind: ErrorKind, message: str, *, retryable: bool = False, details: dict[str, Json] | None = None
) -> Outcome:
    """An error outcome of this kind."""
    return failed(ErrorInfo(kind=kind, message=message, retryable=retryable, details=details or {}))


def _traceback_text(error: Exception) -> str:
    """The last frames, without ours that led to the first of another package."""
    from traceback import format_exception, format_tb  # noqa: PLC0415 - few attempts end so

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    error = error.with_traceback(trace or error.__traceback__)
    try:
        text = "".join(format_exception(error, limit=-_MOST_FRAMES))
    except Exception:  # noqa: BLE001 - formatting calls `__str__`, which is code of others
        text = "".join(format_tb(error.__traceback__, limit=-_MOST_FRAMES))
    return text.encode(errors="backslashreplace").decode()


def _message_with_hint(error: ResultError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)


def describe_error(error: Exception) -> str:
    """The exception in words that an event can hold, whatever its message is."""
    try:
        message = str(error).encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 - the message is made by code of others, too
        message = ""
    name = type(error).__name__
    return f"{name}: {message}" if message else name
