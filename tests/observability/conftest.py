"""A server that logs JSON, with one worker, as processes that the tests of a module share."""

from collections.abc import Iterator

import pytest

from tests.observability.observed_server import (
    FAILING,
    RETRYING,
    SECRET,
    SECRET_TEXT,
    STRANGE,
    ObservedServer,
)
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import GREET, LARGE, WAITING, server_process


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedServer]:
    folder = tmp_path_factory.mktemp("observed")
    logs = {"NOETL_LOG_FORMAT": "json"}
    with server_process(folder, worker=False, env=logs) as server:
        token = (server.home / "worker.token").read_text().strip()
        worker = WorkerProcess(server.url, folder, NOETL_TOKEN=token, OBSERVED_SECRET=SECRET_TEXT, **logs)
        try:
            worker.wait_for("registered with")
            for text in (GREET, FAILING, RETRYING, SECRET, STRANGE, LARGE, WAITING):
                server.client.register(text)
            yield ObservedServer(server, worker, folder / "server.err")
        finally:
            worker.stop()
