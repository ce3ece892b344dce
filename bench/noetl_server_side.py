"""We as a server: `noetl server start` and one `noetl worker start`, asked over HTTP.

The store is the file of a home, or a database of a PostgreSQL that others keep theirs in.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.noetl_side import SERVED, NoetlSide
from bench.peers.peer import environment, free_port, run_server
from bench.resumption import Resumption
from bench.server_process import StartFailed, wait_for_words, worker_settings
from bench.shared_database import SharedDatabase
from bench.side import Unavailable, Worker, Wrap
from bench.workload_table import Workload
from bench.workloads.served_runs import HOME, STORE, URL

TOOLS = str(Path(__file__).with_name("workloads") / "write_tool.py")


class NoetlServerSide(NoetlSide):
    """The same workloads through both planes, as users of a server have them."""

    def __init__(self, database: SharedDatabase | None = None) -> None:
        super().__init__(SERVED)
        self._database = database

    @contextmanager
    def serve(self, folder: Path, data: Path, wrap: Wrap) -> Iterator[Worker]:  # noqa: ARG002 - as `Side` says
        database = self._database.new() if self._database else nullcontext("")
        with database as store, self._serve(data, wrap, store) as worker:
            yield worker

    @contextmanager
    def _serve(self, data: Path, wrap: Wrap, store: str) -> Iterator[Worker]:
        home, log, port = data / "home", data / "worker.log", str(free_port())
        url = f"http://127.0.0.1:{port}"
        settings = environment(TMPDIR=str(data), NOETL_HOME=str(home))
        noetl = [sys.executable, "-m", "noetl"]
        start = [*noetl, "server", "start", "--port", port, "--tools", TOOLS]
        start += ["--store", store] if store else []
        work = [*noetl, "worker", "start", "--server", url, "--tools", TOOLS]
        with run_server(wrap(start), settings, data / "server.log") as server:
            server.wait_for(f"{url}/readyz")
            with run_server(wrap(work), worker_settings(settings, home), log) as worker:
                try:
                    wait_for_words(log, b"registered with", worker.process)
                except StartFailed as error:
                    raise Unavailable(str(error)) from None
                yield Worker(
                    [sys.executable, "-m", "bench.workloads.served_runs"],
                    {**settings, URL: url, HOME: str(home), STORE: store},
                    servers=[server.process.pid, worker.process.pid],
                    is_client=True,
                )

    def measures(self, workload: Workload) -> bool:
        """Nothing of what is about the start of a process."""
        return workload.shape not in ("hello", "resume")

    def resume(self, folder: Path, data: Path, steps: int) -> Resumption:  # noqa: ARG002 - as `Side` says
        raise Unavailable("a lost worker's lease has to run out first: see bench.faults")
