"""A server that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.client.http_client import Client
from tests.server.server_process import FAILING, GREET, LARGE, PARENT, WAITING, ServerProcess, server_process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    with server_process(folder) as process:
        for text in (GREET, WAITING, FAILING, PARENT, LARGE):
            process.client.register(text)
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Client:
    return server.client
