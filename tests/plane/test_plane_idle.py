"""A server and a worker that have nothing to do do next to nothing, and a worker can be reached by nobody."""

import os
import time
from pathlib import Path

import pytest

from noetl.client.http_client import Client
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import server_process

SECONDS = 4.0
MOST = 0.05
"""Part of a core: about ten times what it is, since others are at work on this machine, too."""


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listens(pid: int) -> bool:
    """Whether the process has a socket that takes connections."""
    listening = {
        line.split()[9]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text("utf-8").splitlines()[1:]
        if line.split()[3] == "0A"
    }
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    return any(link.removeprefix("socket:[").rstrip("]") in listening for link in links)


@pytest.mark.spec("000 §1.2")
@pytest.mark.spec("000 §11.2")
@pytest.mark.spec("002 §1")
def test_an_idle_server_and_its_idle_worker_take_little_of_a_processor(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        worker = WorkerProcess(server.url, tmp_path, NOETL_HOME=str(server.home), NOETL_TOKEN="")
        try:
            worker.wait_for("registered with")
            assert len(Client(server.url, server.token).workers().workers) == 1
            processes = {server.process.pid: True, worker.process.pid: False}
            before = {pid: processor_seconds(pid) for pid in processes}
            time.sleep(SECONDS)  # nothing is waited for: this is the time in which nothing is to be done
            used = {pid: processor_seconds(pid) - before[pid] for pid in processes}
            assert all(seconds < SECONDS * MOST for seconds in used.values()), used
            assert {pid: listens(pid) for pid in processes} == processes
        finally:
            assert worker.stop() == 0
