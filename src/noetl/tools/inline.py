"""Users' Python in the worker's own process: fast, and without any isolation."""

import asyncio
import io
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import ModuleType
from typing import Any

from noetl.guest.frame import Answer, Request
from noetl.guest.surroundings import MODULE
from noetl.guest.task import answer_to
from noetl.tools.output import Lines


async def run_inline(request: Request, log: Callable[[str], None]) -> Answer:
    """Runs the code in a thread. If the waiting is cut short, the code goes on to its end unheard."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def hand_over(line: str) -> None:
        loop.call_soon_threadsafe(log, line)

    def settle(found: Answer) -> None:
        if not answer.done():
            answer.set_result(found)

    def work() -> None:
        lines = Lines(hand_over)
        module = ModuleType(MODULE)
        module.__dict__["print"] = _printer(lines)
        with suppress(RuntimeError):  # the loop may be closed by now
            found = answer_to(request, module)
            lines.finish()
            loop.call_soon_threadsafe(settle, found)

    # A thread that never ends must not keep the worker from ending.
    Thread(target=work, name="noetl-inline", daemon=True).start()
    return await answer


def _printer(lines: Lines) -> Callable[..., None]:
    """A `print` for this code alone; the stream that the worker prints to is not its log."""

    def log_print(*values: object, file: Any = None, flush: bool = False, **style: Any) -> None:
        if file is not None:
            print(*values, file=file, flush=flush, **style)
            return
        text = io.StringIO()
        print(*values, file=text, **style)
        lines.feed(text.getvalue().encode(errors="backslashreplace"))

    return log_print
