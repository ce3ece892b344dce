"""Three servers and six workers while processes are killed and stopped, and the database restarts."""

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from bench.postgres_server import PostgresCluster, postgres_cluster
from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.cli.command_line import environment, run
from tests.server.server_process import command, read_json_document
from tests.server.test_postgres_server import FSYNC
from tests.server.test_several_servers import PATIENCE, RESULTS, TRACES, register

_numbers = count(1)
SERVERS, WORKERS, SLOTS = 3, 6, 4
STARTED = 3
"""Of each playbook before each disturbance."""
STANDSTILL = 2.0
"""Seconds for which a process is stopped."""


class Cluster:
    """Processes that end, and begin again at the same address."""

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._store = store
        self.servers: list[subprocess.Popen[str]] = []
        self.workers: list[subprocess.Popen[str]] = []
        self.urls: list[str] = []
        self._token = ""

    def begin(self) -> None:
        for index in range(SERVERS):
            self.servers.append(self._start_server(index, 0))
        self._token = self.client(0).create_token("machines", "worker").token
        self.workers = [self._start_worker(index) for index in range(WORKERS)]

    def client(self, index: int) -> Client:
        token = (self._folder / f"server-{index}" / "admin.token").read_text().strip()
        return Client(self.urls[index], token)

    def restart_server(self, index: int) -> None:
        self.servers[index].kill()
        self.servers[index].communicate()
        self.servers[index] = self._start_server(index, int(self.urls[index].rpartition(":")[2]))

    def restart_worker(self, index: int) -> None:
        self.workers[index].kill()
        self.workers[index].communicate()
        self.workers[index] = self._start_worker(index)

    def end(self) -> None:
        for process in (*self.servers, *self.workers):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()

    def _start_server(self, index: int, port: int) -> "subprocess.Popen[str]":
        home = self._folder / f"server-{index}"
        words = ("--port", str(port), "--home", str(home), "--store", self._store, "-o", "json")
        process = self._start(f"server-{index}", "server", "start", *words)
        url = read_json_document(process, self._folder / f"server-{index}.err")["url"]
        self.urls[index:] = [url, *self.urls[index + 1 :]]
        return process

    def _start_worker(self, index: int) -> "subprocess.Popen[str]":
        urls = [self.urls[(index + turn) % SERVERS] for turn in range(SERVERS)]
        words = [word for url in urls for word in ("--server", url)]
        return self._start(f"worker-{index}", "worker", "start", *words, "--slots", str(SLOTS))

    def _start(self, name: str, *words: str) -> "subprocess.Popen[str]":
        folder = self._folder / f"{name}-home"
        folder.mkdir(exist_ok=True)
        with (self._folder / f"{name}.err").open("a") as log:
            return subprocess.Popen(
                command(*words),
                cwd=folder,
                env=environment(folder, {"NOETL_TOKEN": self._token} if self._token else {}),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )


@contextmanager
def cluster_of(folder: Path, store: str) -> Iterator[Cluster]:
    cluster = Cluster(folder, store)
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.end()


def stand_still(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(STANDSTILL)  # nothing is waited for: this is how long it is not there
    process.send_signal(signal.SIGCONT)


def restart_database(database: PostgresCluster) -> None:
    database.stop()
    database.start()
    with psycopg.connect(database.server.dsn()) as connection:
        connection.execute("SELECT 1")


def start_patiently(client: Client, path: str, effects: Path) -> str:
    """As often as it takes; the key says that it is the same execution."""
    workload = {"file": str(effects), "seconds": 0.3}
    key = f"start-{next(_numbers)}"
    request = StartExecution(path=path, workload=workload, idempotency_key=key)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return client.start(request).execution_id
        except ServerError as error:
            if error.code not in {"store_unavailable", "overloaded"} or time.monotonic() > deadline:
                raise


def test_nothing_is_lost_or_done_twice_whatever_ends(tmp_path: Path) -> None:
    choose = random.Random(17)  # noqa: S311 - no secret
    effects = tmp_path / "effects"
    begun: dict[str, str] = {}
    with postgres_cluster(**FSYNC) as database, cluster_of(tmp_path, database.server.dsn()) as cluster:
        register(cluster.client(0))
        disturbances: list[Callable[[], None]] = [
            *(lambda index=index: cluster.restart_server(index) for index in range(SERVERS)),
            *(lambda index=index: cluster.restart_worker(index) for index in range(4)),
            *(lambda index=index: stand_still(cluster.servers[index]) for index in range(2)),
            *(lambda index=index: stand_still(cluster.workers[index]) for index in range(2)),
            lambda: restart_database(database),
        ]
        choose.shuffle(disturbances)
        for number, disturb in enumerate(disturbances):
            for path in RESULTS:
                for _ in range(STARTED):
                    begun[start_patiently(cluster.client(number % SERVERS), path, effects)] = path
            disturb()
        deadline = time.monotonic() + PATIENCE
        for number, (execution_id, path) in enumerate(begun.items()):
            left = max(deadline - time.monotonic(), 0.1)
            ended = cluster.client(number % SERVERS).wait(execution_id, timeout=left)
            assert (ended.status, ended.result) == ("completed", RESULTS[path]), (path, ended)
        children = sum(path == "several/family" for path in begun.values())
        done = run("store", "check", "--store", database.server.dsn(), cwd=tmp_path)
        assert f"{len(begun) + children} executions, 0 problems" in done.out, done.out
    traces = Counter(effects.read_text().split())
    assert len(traces) == sum(TRACES[path] for path in begun.values())
    # At most what was in flight in a worker that was killed; whoever stood still for less than a lease goes on.
    assert traces.total() - len(traces) <= 4 * SLOTS, [name for name, count in traces.items() if count > 1]
    assert max(traces.values()) <= 2
