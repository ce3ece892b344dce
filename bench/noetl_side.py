"""We as a side: this checkout, or another one that is measured with this checkout's workloads."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import environment
from bench.resumption import Resumption, resume_program
from bench.side import Worker, Wrap
from bench.workload_table import Workload

OURS = "noetl"
SERVED = "noetl server"
"""A server and a worker as processes: `bench.noetl_server_side`."""
BARE_PLANE = "bare plane"
"""Their messages and flushes without an engine: `bench.bare_plane_side`."""


class NoetlSide:
    """`python` has the noetl that is measured installed."""

    DURABLE = True

    def __init__(self, name: str = OURS, python: str = sys.executable) -> None:
        self.NAME = name
        self._python = python

    def install(self, folder: Path) -> None:
        """It is."""

    def versions(self, folder: Path) -> dict[str, str]:  # noqa: ARG002 - as `Side` says
        return {}

    def measures(self, workload: Workload) -> bool:  # noqa: ARG002 - what a side of ours says
        return True

    @contextmanager
    def serve(self, folder: Path, data: Path, wrap: Wrap) -> Iterator[Worker]:  # noqa: ARG002 - as `Side` says
        settings = environment(TMPDIR=str(data))
        yield Worker(wrap([self._python, "-m", "bench.workloads"]), settings)

    def resume(self, folder: Path, data: Path, steps: int) -> Resumption:  # noqa: ARG002 - as `Side` says
        command = [self._python, "-m", "bench.workloads.killed_run"]
        words = [str(data), str(steps)]
        return resume_program(
            [*command, "begin", *words], [*command, "resume", *words], environment(), data, steps
        )
