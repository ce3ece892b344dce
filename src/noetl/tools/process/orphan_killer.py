"""Sees to it that no program outlives the worker that started it."""

import os
import subprocess
import sys

from noetl.tools.process import process_tree


class OrphanKiller:
    """A small process that kills the programs it was told of when this one is gone, however it ends.

    The end of its standard input tells it. It is started when it is first needed.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: set[int] = set()

    def expect(self, pipe: int | None) -> None:
        """A program is about to start that writes to this pipe, or now none is.

        Until `watch` names it, it is known by the pipe, which no process but it and this one has.
        """
        line = f"?{0 if pipe is None else os.fstat(pipe).st_ino}\n"
        if not self._tell(line) and pipe is not None:
            self._start()
            self._tell(line)

    def watch(self, leader: int) -> None:
        """From now on the process group of this leader ends with the worker."""
        self._watched.add(leader)
        if not self._tell(f"+{leader}\n"):
            self._start()

    def forget(self, leader: int) -> None:
        """To be called before the leader is reaped: then its number may be another's."""
        self._watched.discard(leader)
        self._tell(f"-{leader}\n")

    def close(self) -> None:
        """Ends the process and leaves the programs alone. A second call does nothing."""
        self._watched.clear()
        self._end()

    def _tell(self, line: str) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        try:
            os.write(self._process.stdin.fileno(), line.encode())
        except OSError:  # somebody killed or stopped it
            return False
        return True

    def _start(self) -> None:
        self._end()
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            # Without `site` and our packages it starts in less than half the time.
            [sys.executable, "-I", "-S", process_tree.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what kills the worker's group leaves it alone
            bufsize=0,
        )
        if self._process.stdin is not None:
            # If it is stopped its pipe fills up: then another takes its place, and the worker does not wait.
            os.set_blocking(self._process.stdin.fileno(), False)
        self._tell("".join(f"+{leader}\n" for leader in self._watched))

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None
