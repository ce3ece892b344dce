"""A server whose disk is full: reports wait, reads go on, and all goes on when there is room."""

import resource
from pathlib import Path

from noetl.ports.http_api import StartExecution
from tests.plane.plane_processes import HELD, MeetingPoint
from tests.server.server_process import GREET, ServerProcess, server_process
from tests.server.test_api_security import send
from tests.server.test_embedded_worker import start, worker_of

UNLIMITED = resource.RLIM_INFINITY


def limit_files(pid: int, most: int) -> None:
    """No file of the process gets longer than so many bytes: as on a full disk, a write fails in the middle."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, UNLIMITED))


def problem_of(server: ServerProcess) -> str:
    """Why it is not ready; empty if it is."""
    status, _, answer = send(f"{server.url}/readyz")
    assert (status, answer.get("code", "")) in ((200, ""), (503, "store_unavailable"))
    return str(answer.get("detail", ""))


def test_reports_wait_for_room_and_reads_do_not(tmp_path: Path) -> None:
    with MeetingPoint() as meeting, server_process(tmp_path, worker=False) as server:
        client = server.client
        client.register(GREET)
        worker = worker_of(server, tmp_path)
        try:
            held = start(client, HELD, workload={"port": meeting.port})
            guest = meeting.next_guest()
            recorded = client.show(held).events
            limit_files(server.process.pid, 8_000)  # less than a page of the store
            guest.let_go("reported")
            while not problem_of(server):
                pass
            assert "nothing can be written" in problem_of(server)
            detail = client.show(held)
            assert (detail.status, detail.events) == ("running", recorded), "what was not kept is not told"
            assert client.list().executions[0].execution_id == held
            body = b'{"path": "examples/greet"}'
            url = f"{server.url}/api/executions"
            status, headers, problem = send(url, "POST", server.token, body, Content_Type="application/json")
            assert (status, problem["code"]) == (503, "store_unavailable")
            assert int(headers["Retry-After"]) > 0
            limit_files(server.process.pid, UNLIMITED)
            ended = client.wait(held)
            assert (ended.status, ended.result) == ("completed", {"word": "reported"})
            names = [event["name"] for event in client.events(held).events]
            assert (names.count("TaskStarted"), names.count("TaskProcessed")) == (2, 2)
            assert "LeaseExpired" not in names
            assert problem_of(server) == ""
            again = client.start(StartExecution(path="examples/greet")).execution_id
            assert client.wait(again).status == "completed"
            # That somebody asked meanwhile is written as soon as there is room, though nobody writes more.
            while not (refused := [entry for entry in client.audit().audit if entry.status == 503]):
                pass
            assert [(entry.by, entry.action) for entry in refused] == [("local-admin", "start_execution")]
            assert worker.stop() == 0
        finally:
            worker.stop()
        assert server.stop() == 0
    lines = (tmp_path / "server.err").read_text()
    assert lines.count("store failing") == lines.count("store recovered") == 1
    assert "Traceback" not in lines
