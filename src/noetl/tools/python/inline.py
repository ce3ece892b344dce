"""Users' Python in the worker's own process: fast, and without any isolation."""

import asyncio
import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from types import ModuleType
from typing import Any

from msgspec import structs

from noetl.guest.frame import CodeAnswer, CodeRequest
from noetl.guest.process_state import MODULE
from noetl.guest.task import answer_request
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import private_copy
from noetl.tools.process.log_lines import LogLines


class InlineRunner:
    """Runs code in threads of this process. All of them have one environment and one folder."""

    def __init__(self) -> None:
        self._env_lock = asyncio.Lock()
        """Held by the one task that adds to the environment."""

    async def run(self, request: CodeRequest, call: Call) -> CodeAnswer:
        """The answer to the request. If the waiting is cut short, the code goes on to its end unheard."""
        request = structs.replace(request, args=private_copy(request.args))
        loop = asyncio.get_running_loop()
        pending: asyncio.Future[CodeAnswer] = loop.create_future()
        if request.env:
            await self._env_lock.acquire()

        def hand_over(line: str) -> None:
            loop.call_soon_threadsafe(call.log, line)

        def settle(answer: CodeAnswer) -> None:
            if request.env:
                self._env_lock.release()
            if not pending.done():
                pending.set_result(answer)

        def work() -> None:
            lines = LogLines(hand_over, call.mask)
            module = ModuleType(MODULE)
            module.__dict__["print"] = _printer(lines)
            with suppress(RuntimeError):  # the loop may be closed by now, and nobody waits
                with _environment(request.env):
                    answer = answer_request(request, module)
                lines.finish()
                loop.call_soon_threadsafe(settle, answer)

        # A daemon: code that never ends must not keep the worker from ending.
        Thread(target=work, name="noetl-inline", daemon=True).start()
        return await pending


@contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _printer(lines: LogLines) -> Callable[..., None]:
    """A `print` for this code alone; the stream that the worker prints to is not its log."""

    def log_print(*values: object, file: Any = None, flush: bool = False, **style: Any) -> None:
        if file is not None:
            print(*values, file=file, flush=flush, **style)
            return
        text = io.StringIO()
        print(*values, file=text, **style)
        lines.feed(text.getvalue().encode(errors="backslashreplace"))

    return log_print
