"""The names that are read as bits of a number, so that sets of names are cheap to combine.

A bare name has three bits, because what it is found in lasts for different times: in the execution
(`ctx`, results of steps), in the run of the step (`args` too), in the pipeline (`iter`, labels too).
"""

from collections.abc import Iterable

from noetl.dsl.checks.flow.name_reads import Read, Space, in_pipeline
from noetl.dsl.checks.flow.path_sets import Path, Wanted
from noetl.dsl.document.playbook import Write


class Bits:
    """Gives each name that is read its bits, and each thing that sets names the bits it sets."""

    def __init__(self, reads: Iterable[Read]) -> None:
        spaces: dict[Space, dict[Path, None]] = {space: {} for space in Space}
        for read in reads:
            spaces[read.space][_key(read)] = None
        self._wanted = {space: Wanted() for space in Space}
        bits = 0
        for space in (Space.BARE, Space.CTX, Space.STEPS, Space.ARGS, Space.ITER, Space.RUN):
            if space is Space.ARGS:
                lasting = bits
                bits += 2 * len(spaces[Space.BARE])
            if space is Space.ITER:
                self.outside = (1 << bits) - 1
                """Bits of names that may be set before a step begins."""
            for path in spaces[space]:
                self._wanted[space].add(path, 1 << bits)
                bits += 1
        bare = len(spaces[Space.BARE])
        self._bare = (1 << bare) - 1
        self._run, self._pipeline = lasting, lasting + bare
        self.lasting = (1 << lasting) - 1
        """Bits of names that stay set for the rest of the execution."""
        self.all = (1 << bits) - 1

    def of(self, read: Read) -> int:
        """The bit that is on where the name is set."""
        bit = self._wanted[read.space].get(_key(read)) or 0
        if read.space is Space.BARE:
            return bit << (self._pipeline if in_pipeline(read.site) else self._run)
        return bit

    def in_execution(self, read: Read) -> int:
        """The bit that is on where the name is set for the rest of the execution, if it can be."""
        if read.space is Space.BARE:
            return self._wanted[Space.BARE].get(_key(read)) or 0
        return self.of(read) & self.lasting

    def arriving(self, bits: int) -> int:
        """What of a finished step's names the next one begins with."""
        lasting = bits & self.lasting
        bare = lasting & self._bare
        return lasting | bare << self._run | bare << self._pipeline

    def ctx(self, path: Path) -> int:
        return self._wanted[Space.CTX].set_by(path) | self._in_execution(path)

    def step(self, name: str, *, succeeded: bool) -> int:
        """What a run of the step sets by ending: its status and error, and after success its result."""
        ended = self._wanted[Space.STEPS].get((name,)) or 0
        if not succeeded:
            return ended
        return ended | (self._wanted[Space.STEPS].get((name, "result")) or 0) | self._in_execution((name,))

    def arg(self, path: Path) -> int:
        return self._wanted[Space.ARGS].set_by(path) | self._in_run(path)

    def iter(self, path: Path) -> int:
        return self._wanted[Space.ITER].set_by(path) | self._in_pipeline(path)

    def run(self, path: Path) -> int:
        return self._wanted[Space.RUN].set_by(path)

    def label(self, label: str) -> int:
        return self._in_pipeline((label,))

    def write(self, write: Write) -> int:
        match write.scope:
            case "ctx":
                return self.ctx(write.path)
            case "iter":
                return self.iter(write.path)
            case "run":
                return self.run(write.path)
            case _:
                return self.arg(write.path)

    def bare(self, path: Path) -> int:
        """A bare name of which only is known that it is set now."""
        return self._in_run(path)

    def _in_execution(self, path: Path) -> int:
        bare = self._wanted[Space.BARE].set_by(path)
        return bare | bare << self._run | bare << self._pipeline if bare else 0

    def _in_run(self, path: Path) -> int:
        bare = self._wanted[Space.BARE].set_by(path)
        return bare << self._run | bare << self._pipeline if bare else 0

    def _in_pipeline(self, path: Path) -> int:
        bare = self._wanted[Space.BARE].set_by(path)
        return bare << self._pipeline if bare else 0


def _key(read: Read) -> Path:
    if read.space is Space.STEPS:
        return read.path[:2] if read.path[1:2] == ("result",) else read.path[:1]
    return read.path
