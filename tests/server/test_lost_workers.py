"""Workers that went silent: the overview has them for a day."""

import asyncio
from pathlib import Path

from noetl.ports.http_api import StartExecution
from noetl.ports.page_api import LostWorker
from noetl.server.lost_workers import KEPT, LostWorkers
from noetl.server.plane.sessions import LostSession
from noetl.stores.sqlite.store import SqliteStore
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import ServerProcess, kill, server_process

DEADLY = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: deadly, path: examples/deadly}
workflow:
- step: start
  tool: {kind: shell, command: "kill -9 $PPID"}
"""


def _lost(server: ServerProcess) -> list[LostWorker]:
    return server.client.overview().lost_workers


def test_a_lost_worker_is_known_after_a_crash_of_the_server(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False, env={"NOETL_LEASE_TTL": "1"}) as first:
        token = first.client.create_token("doomed", "worker").token
        first.client.register(DEADLY)
        worker = WorkerProcess(first.url, tmp_path, NOETL_TOKEN=token)
        try:
            worker.wait_for("registered with the server")
            (name,) = (known.worker for known in first.client.workers().workers)
            execution_id = first.client.start(StartExecution(path="examples/deadly")).execution_id
            while not (lost := _lost(first)):
                first.client.show(execution_id, wait=0.05)
        finally:
            worker.stop()
        assert [(item.worker, item.runs) for item in lost] == [(name, 1)]
        first.client.cancel(execution_id)
        kill(first)
    with server_process(tmp_path, worker=False) as second:
        assert _lost(second) == lost


def test_what_was_lost_long_ago_is_forgotten() -> None:
    async def live() -> None:
        store = SqliteStore.in_memory()
        lost_workers = LostWorkers(store)
        for at in (5, KEPT, KEPT + 6):
            lost_workers.note(LostSession(f"at-{at}", at, 2))
        assert [lost.at for lost in await lost_workers.since(KEPT)] == [KEPT, KEPT + 6]
        assert len(await store.blobs("lost-worker/")) == 2
        await store.close()

    asyncio.run(live())
