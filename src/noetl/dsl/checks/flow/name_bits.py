"""The names that are read as bits of a number, so that sets of names are cheap to combine.

A bare name has three bits, because what it is found in lasts for different times: in the execution
(`ctx`, results of steps), in the run of the step (`args` too), in the pipeline (`iter`, labels too).
"""

from collections.abc import Iterable

from noetl.dsl.checks.flow.name_reads import NameRead, NameScope, is_in_pipeline
from noetl.dsl.checks.flow.path_sets import Path, PathBits
from noetl.dsl.document.playbook import Write


class NameBits:
    """Gives each name that is read its bits, and each thing that sets names the bits it sets."""

    def __init__(self, reads: Iterable[NameRead]) -> None:
        paths_by_scope: dict[NameScope, dict[Path, None]] = {scope: {} for scope in NameScope}
        for read in reads:
            paths_by_scope[read.scope][_path_key(read)] = None
        self._paths = {scope: PathBits() for scope in NameScope}
        bits = 0
        # The order makes every question one mask or shift: first what lasts, then what is gone after the
        # run (`args` and two copies of the bare names), last what begins only with the step.
        for scope in (
            NameScope.BARE,
            NameScope.CTX,
            NameScope.STEPS,
            NameScope.ARGS,
            NameScope.ITER,
            NameScope.RUN,
        ):
            if scope is NameScope.ARGS:
                lasting = bits
                bits += 2 * len(paths_by_scope[NameScope.BARE])
            if scope is NameScope.ITER:
                self.before_step = (1 << bits) - 1
                """Bits of names that may be set before a step begins."""
            for path in paths_by_scope[scope]:
                self._paths[scope].add(path, 1 << bits)
                bits += 1
        bare = len(paths_by_scope[NameScope.BARE])
        self._bare_mask = (1 << bare) - 1
        self._run_shift, self._pipeline_shift = lasting, lasting + bare
        self.lasting = (1 << lasting) - 1
        """Bits of names that stay set for the rest of the execution."""
        self.all = (1 << bits) - 1

    def bit_of(self, read: NameRead) -> int:
        """The bit that is on where the name is set."""
        bit = self._paths[read.scope].get(_path_key(read)) or 0
        if read.scope is NameScope.BARE:
            return bit << (self._pipeline_shift if is_in_pipeline(read.occurrence) else self._run_shift)
        return bit

    def lasting_bit_of(self, read: NameRead) -> int:
        """The bit that is on where the name is set for the rest of the execution, if it can be."""
        if read.scope is NameScope.BARE:
            return self._paths[NameScope.BARE].get(_path_key(read)) or 0
        return self.bit_of(read) & self.lasting

    def carry_over(self, bits: int) -> int:
        """What of a finished step's names the next one begins with."""
        lasting = bits & self.lasting
        bare = lasting & self._bare_mask
        return lasting | bare << self._run_shift | bare << self._pipeline_shift

    def ctx(self, path: Path) -> int:
        return self._paths[NameScope.CTX].set_by(path) | self._in_execution(path)

    def step(self, name: str, *, succeeded: bool) -> int:
        """What a run of the step sets by ending: its status and error, and after success its result."""
        ended = self._paths[NameScope.STEPS].get((name,)) or 0
        if not succeeded:
            return ended
        return ended | (self._paths[NameScope.STEPS].get((name, "result")) or 0) | self._in_execution((name,))

    def arg(self, path: Path) -> int:
        return self._paths[NameScope.ARGS].set_by(path) | self._in_run(path)

    def iter(self, path: Path) -> int:
        return self._paths[NameScope.ITER].set_by(path) | self._in_pipeline(path)

    def run(self, path: Path) -> int:
        return self._paths[NameScope.RUN].set_by(path)

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
        bare = self._paths[NameScope.BARE].set_by(path)
        return bare | bare << self._run_shift | bare << self._pipeline_shift if bare else 0

    def _in_run(self, path: Path) -> int:
        bare = self._paths[NameScope.BARE].set_by(path)
        return bare << self._run_shift | bare << self._pipeline_shift if bare else 0

    def _in_pipeline(self, path: Path) -> int:
        bare = self._paths[NameScope.BARE].set_by(path)
        return bare << self._pipeline_shift if bare else 0


def _path_key(read: NameRead) -> Path:
    """The part of a path that is set as one. Of a step that is its result, or the rest of it."""
    if read.scope is NameScope.STEPS:
        return read.path[:2] if read.path[1:2] == ("result",) else read.path[:1]
    return read.path
