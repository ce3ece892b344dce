"""Why users' code failed, in the lines of that code."""

import linecache
import traceback
from types import TracebackType

from noetl.guest.frame import CodeFailure, CodeRequest

MAX_TEXT = 8_192
"""Characters of a message."""
MAX_TRACEBACK = 32_768


def code_failure(error: BaseException, request: CodeRequest) -> CodeFailure:
    """The failure that an exception of the code is. Its traceback begins in the code."""
    name = type(error).__name__
    text = _cut(_text(error), MAX_TEXT)
    return CodeFailure(
        kind="limit" if isinstance(error, MemoryError) else "python",
        message=f"{name}: {text}" if text else name,
        exception_type=name,
        text=text,
        traceback=_cut(_traceback(error, request), MAX_TRACEBACK),
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # users' `__str__` may raise anything
        return "(its text cannot be shown)"


def _traceback(error: BaseException, request: CodeRequest) -> str:
    lines = request.code.splitlines(keepends=True)
    linecache.cache[request.name] = (len(request.code), None, lines, request.name)  # None: not from disk
    error.__traceback__ = _own(error.__traceback__, request.name)
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001  # as above
        return "".join(traceback.format_tb(error.__traceback__))
    finally:
        linecache.cache.pop(request.name, None)


def _own(trace: TracebackType | None, name: str) -> TracebackType | None:
    """The traceback from the first frame of the code on; None if the code never ran."""
    while trace and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    return trace


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters: the beginning and the end, as UTF-8 can hold them."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
    return text.encode(errors="backslashreplace").decode()
