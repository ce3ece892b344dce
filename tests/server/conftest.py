"""Servers and workers that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.client.http_client import Client
from tests.server.plane_processes import MeetingPoint, Plane
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


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server with one worker."""
    with Plane(tmp_path_factory.mktemp("plane")) as plane:
        plane.worker(PLANE_SECRET="open sesame 42")
        yield plane


@pytest.fixture
def short_lived(tmp_path: Path) -> Iterator[Plane]:
    """A server whose leases are short; it has no worker yet."""
    with Plane(tmp_path, ttl=2.0) as plane:
        yield plane


@pytest.fixture
def meeting() -> Iterator[MeetingPoint]:
    with MeetingPoint() as meeting:
        yield meeting
