"""Processes that the tests of the worker plane share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plane.plane_processes import MeetingPoint, Plane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server with one worker."""
    with Plane(tmp_path_factory.mktemp("plane")) as plane:
        plane.worker(PLANE_SECRET="open sesame 42")
        yield plane


@pytest.fixture
def short_lived(tmp_path: Path) -> Iterator[Plane]:
    """A server whose leases are waited for; it has no worker yet. On a busy machine each lasts for long enough."""
    with Plane(tmp_path, ttl=10.0) as plane:
        yield plane


@pytest.fixture
def long_lived(tmp_path: Path) -> Iterator[Plane]:
    """A server whose leases outlast the test; it has no worker yet."""
    with Plane(tmp_path, ttl=300.0) as plane:
        yield plane


@pytest.fixture
def meeting() -> Iterator[MeetingPoint]:
    with MeetingPoint() as meeting:
        yield meeting
