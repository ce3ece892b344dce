"""The death notice: the end of the pipe that requests come through is the end of this process."""

import fcntl
import os
import select
import signal
import sys
from threading import Thread


class Notice:
    """Kills the whole process group when the worker is gone, even in the middle of users' code.

    On Linux the kernel does it, so code that never gives up the interpreter cannot delay it, and no
    thread makes `fork` unsafe. Elsewhere a thread does. While armed, nothing may be sent.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
        if sys.platform == "linux":
            fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
        else:
            Thread(target=self._wait, daemon=True).start()

    def arm(self) -> None:
        if sys.platform == "linux":
            fcntl.fcntl(self._pipe, fcntl.F_SETFL, self._flags | os.O_ASYNC)
            if self._ended(0):  # before it was armed
                os.killpg(0, signal.SIGKILL)

    def disarm(self) -> None:
        if sys.platform == "linux":
            fcntl.fcntl(self._pipe, fcntl.F_SETFL, self._flags)

    def _wait(self) -> None:
        if self._ended(None):
            os.killpg(0, signal.SIGKILL)

    def _ended(self, milliseconds: int | None) -> bool:
        poll = select.poll()
        poll.register(self._pipe, 0)  # asks for the end alone
        return bool(poll.poll(milliseconds))
