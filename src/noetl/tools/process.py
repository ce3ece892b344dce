"""The processes under one of ours: what they hold, and their end."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> Iterator[int]:
    """The process and all that descend from it. Only itself where the system has no `/proc`."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        # A process or a thread may end while it is looked at.
        with contextlib.suppress(OSError):
            for thread in (_PROC / str(one) / "task").iterdir():
                waiting += map(int, (thread / "children").read_text("ascii").split())


def resident(pid: int) -> int:
    """Bytes of memory that the process and its descendants hold; 0 where the system has no `/proc`."""
    total = 0
    for one in family(pid):
        with contextlib.suppress(OSError):
            total += int((_PROC / str(one) / "statm").read_text("ascii").split()[1]) * _PAGE
    return total


def kill_family(leader: int) -> None:
    """Kills a process group by its leader, and descendants that have left the group.

    The leader must not have been reaped, or its number may be another's by now.
    """
    members = list(family(leader))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in members[1:]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
