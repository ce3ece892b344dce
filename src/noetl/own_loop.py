"""The edges where programs that do not await call what is async inside."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """What the work gives, also where an event loop runs already."""
    # Not inside of `except`: the tracebacks of all that fails in there would begin with this error.
    if not _loop_is_running():
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    ended = threading.Event()

    async def end() -> None:
        await asyncio.wait([task])

    def run_loop() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(end())
        finally:
            ended.set()

    thread = threading.Thread(target=run_loop, name="noetl-run")
    thread.start()
    try:
        ended.wait()  # a `join` that is interrupted may take the thread for ended
    except BaseException:
        with suppress(RuntimeError):  # its loop is closed: it ends just now
            loop.call_soon_threadsafe(task.cancel)
        ended.wait()
        thread.join()
        raise
    thread.join()
    return task.result()


def run_on_uvloop(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, for a process that does little else: on uvloop, where that is installed."""
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - what runs a playbook and ends is not faster on it
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
