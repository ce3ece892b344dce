"""What an attempt of a task comes to, whatever happens in it."""

import errno
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from noetl.dsl.document.kinds import Fault
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, ToolError, failed
from noetl.ports.results import ResultError, ResultMissing
from noetl.ports.tool import Call

Inputs = TypeVar("Inputs", bound=Struct)


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

    A result store that fails is part of the world: what it misses is `not_found`, else it may be tried again.
    """
    try:
        return await work
    except ToolError as error:
        return failed(error.info)
    except ResultMissing as error:
        return error_outcome("not_found", _message_with_hint(error))
    except ResultError as error:
        return error_outcome("connection", _message_with_hint(error), retryable=True)
    except OSError as error:
        # No room or no descriptor: others may free some, so another attempt may end well.
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
        return error_outcome("limit" if full else "tool", describe_error(error), retryable=full)
    except Exception as error:  # noqa: BLE001 - a tool never raises: this is a fault of its own, told as one
        return error_outcome("tool", describe_error(error))


def error_outcome(
    kind: ErrorKind, message: str, *, retryable: bool = False, details: dict[str, Json] | None = None
) -> Outcome:
    """An error outcome of this kind."""
    return failed(ErrorInfo(kind=kind, message=message, retryable=retryable, details=details or {}))


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
