"""The processes under one of ours: what they hold, and their end.

Is a program, too, the one that `OrphanKiller` starts without `site`: it imports the standard library alone.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")

HAS_PROC = (_PROC / "self" / "statm").exists()
"""Whether the system tells about processes in files; elsewhere `ps` does, which takes far longer."""


def tree_pids(pid: int) -> list[int]:
    """The process and all that descend from it."""
    return _tree_in_proc(pid) if HAS_PROC else list(_tree_by_ps(pid))


def resident_bytes(pid: int) -> int:
    """Bytes of memory that the process and its descendants hold."""
    return _resident_in_proc(pid) if HAS_PROC else sum(_tree_by_ps(pid).values())


def kill_tree(leader: int) -> None:
    """Kills a process group by its leader, and descendants that have left the group.

    The leader must not have been reaped, or its number may be another's by now.
    """
    # Before the first is killed: the children of a process that is gone are somebody else's.
    members = tree_pids(leader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in members[1:]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def exit_handle(pid: int) -> int | None:
    """A descriptor that can be read once the process has ended; None if the system has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def kill_orphans() -> None:
    """Keeps a list of leaders, `+PID` or `-PID` a line of standard input; its end is the end of them all.

    `?INODE` announces the next leader: whoever holds this pipe, until a `+PID` follows.
    """
    leaders: dict[int, None] = {}
    expected = 0
    for line in sys.stdin.buffer:
        number = int(line[1:])
        match line[:1]:
            case b"?":
                expected = number
            case b"+":
                leaders[number], expected = None, 0
            case _:
                leaders.pop(number, None)
    for leader in leaders:
        kill_tree(leader)
    for pid in pipe_holders(expected):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def pipe_holders(pipe: int) -> list[int]:
    """The processes that have an end of the pipe with this inode; none where the system does not tell."""
    if not pipe or not HAS_PROC:
        return []
    return [
        int(folder.name) for folder in _PROC.glob("[0-9]*") if _holds_pipe(folder / "fd", f"pipe:[{pipe}]")
    ]


def _holds_pipe(descriptors: Path, name: str) -> bool:
    with contextlib.suppress(OSError):  # it has ended, or is another's
        for descriptor in os.listdir(descriptors):
            with contextlib.suppress(OSError):  # it was just closed
                if os.readlink(descriptors / descriptor) == name:
                    return True
    return False


def _tree_in_proc(pid: int) -> list[int]:
    """What `_tree_by_ps` gives, without starting a process: memory is looked at fifty times a second."""
    pids = [pid]
    for parent in pids:  # which grows meanwhile
        # A process or a thread may end while it is looked at.
        with contextlib.suppress(OSError):
            for thread in os.listdir(_PROC / str(parent) / "task"):
                pids += map(
                    int, (_PROC / str(parent) / "task" / thread / "children").read_text("ascii").split()
                )
    return pids


def _resident_in_proc(pid: int) -> int:
    total = 0
    for process in _tree_in_proc(pid):
        with contextlib.suppress(OSError):
            total += int((_PROC / str(process) / "statm").read_text("ascii").split()[1]) * _PAGE
    return total


def _tree_by_ps(pid: int) -> dict[int, int]:
    """The bytes that each process of the tree holds, the process itself first."""
    rows = {row[0]: row[1:] for row in _ps_rows()}
    bytes_by_pid = {pid: rows.get(pid, (0, 0))[1]}
    waiting = [pid]
    for ancestor in waiting:
        for child, (parent, held) in rows.items():
            if parent == ancestor and child not in bytes_by_pid:
                bytes_by_pid[child] = held
                waiting.append(child)
    return bytes_by_pid


def _ps_rows() -> Iterator[tuple[int, int, int]]:
    """Number, parent and resident bytes of every process."""
    command = ["ps", "-axo", "pid=,ppid=,rss="]
    output = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the command is ours
    for line in output.stdout.splitlines():
        pid, parent, kilobytes = map(int, line.split())
        yield pid, parent, kilobytes * 1024


if __name__ == "__main__":
    kill_orphans()
