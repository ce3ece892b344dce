"""Server and worker without an engine, as a side: what is left when the engine takes no time at all."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.noetl_side import BARE_PLANE, NoetlSide
from bench.peers.peer import environment, free_port, run_server
from bench.resumption import Resumption
from bench.server_process import StartFailed, wait_for_words
from bench.side import Unavailable, Worker, Wrap
from bench.workload_table import Workload

URL = "BENCH_BARE_PLANE"
PROGRAM = [sys.executable, "-m", "bench.workloads.bare_plane"]


class BarePlaneSide(NoetlSide):
    """See `bench.workloads.bare_plane`."""

    def __init__(self) -> None:
        super().__init__(BARE_PLANE)

    @contextmanager
    def serve(self, folder: Path, data: Path, wrap: Wrap) -> Iterator[Worker]:  # noqa: ARG002 - as `Side` says
        log, port = data / "worker.log", str(free_port())
        url = f"http://127.0.0.1:{port}"
        settings = environment(TMPDIR=str(data))
        with run_server(wrap([*PROGRAM, "serve", str(data), port]), settings, data / "server.log") as server:
            server.wait_for(f"{url}/readyz")
            with run_server(wrap([*PROGRAM, "work", url]), settings, log) as worker:
                try:
                    wait_for_words(log, b"connected", worker.process)
                except StartFailed as error:
                    raise Unavailable(str(error)) from None
                pids = [server.process.pid, worker.process.pid]
                yield Worker(PROGRAM, {**settings, URL: url}, servers=pids, is_client=True)

    def measures(self, workload: Workload) -> bool:
        """Steps one after the other: iterations of a loop may share messages in more ways than one."""
        return workload.shape in ("chain", "tasks")

    def resume(self, folder: Path, data: Path, steps: int) -> Resumption:  # noqa: ARG002 - as `Side` says
        raise Unavailable("nothing is taken up here")
