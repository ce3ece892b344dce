"""The death notice: the end of a pipe that nothing is ever written to is the end of this process."""

import fcntl
import os
import select
import signal
import sys
from threading import Thread


def heed(pipe: int) -> None:
    """From now on the whole process group is killed when the worker is gone, even in the middle of code.

    On Linux the kernel does it, so code that never gives up the interpreter cannot delay it, and no thread
    makes `fork` unsafe. Elsewhere a thread does.

    The pipe is one of its own: the kernel tells of what is written, too, and may do so after it was read.
    """
    if sys.platform != "linux":
        Thread(target=_wait, args=(pipe,), daemon=True).start()
        return
    fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if _ended(pipe, 0):  # before it was heeded
        os.killpg(0, signal.SIGKILL)


def _wait(pipe: int) -> None:
    if _ended(pipe, None):
        os.killpg(0, signal.SIGKILL)


def _ended(pipe: int, milliseconds: int | None) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)  # asks for the end alone
    return bool(poll.poll(milliseconds))
