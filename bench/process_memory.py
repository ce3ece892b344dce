"""The memory of processes and of all that they started, from Linux's `/proc`."""

from collections.abc import Iterable, Iterator
from pathlib import Path

PROC = Path("/proc")


def peak_bytes(processes: Iterable[int]) -> int:
    """The most that each process, its descendants and its session ever had in memory, added up.

    The peaks need not have been at the same time, and pages that processes share count once for each: an
    upper bound. What has ended is not in it. 0 where the system does not tell.
    """
    return sum(_peak(process) for process in _family(set(processes)))


def _family(roots: set[int]) -> set[int]:
    relatives = {process: (parent, session) for process, parent, session in _processes()}
    family = {process for process, (_, session) in relatives.items() if session in roots} | roots
    while True:
        children = {process for process, (parent, _) in relatives.items() if parent in family} - family
        if not children:
            return family
        family |= children


def _processes() -> Iterator[tuple[int, int, int]]:
    """Every process with its parent and its session."""
    for folder in PROC.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text("utf-8", "replace")
        except OSError:  # it has ended
            continue
        # The name, in brackets, may hold spaces and brackets itself.
        _, parent, _, session = stat.rpartition(")")[2].split()[:4]
        yield int(folder.name), int(parent), int(session)


def _peak(process: int) -> int:
    try:
        status = (PROC / str(process) / "status").read_text("utf-8", "replace")
    except OSError:
        return 0
    kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(kilobytes[0]) * 1024 if kilobytes else 0  # a process that has ended has none
