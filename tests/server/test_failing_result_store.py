"""A result store that fails while executions run: reports wait, and no event names a body that is not there."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.client.http_client import AsyncClient
from noetl.ports.http_api import StartExecution
from noetl.server.http.resources import ServerLimits, ServerResources
from noetl.worker import reporter
from tests.gcs_server import GcsServer, gcs_server
from tests.server.server_process import LARGE
from tests.server.test_overload import serve
from tests.stores.test_result_stores import set_environment


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsServer]:
    with gcs_server() as server:
        set_environment(monkeypatch, server.environment)
        monkeypatch.setenv("NOETL_RESULT_STORE", server.location("results"))
        yield server


async def start_while_it_fails(client: AsyncClient, bucket: GcsServer) -> str:
    await client.register(LARGE)
    bucket.failing = True
    execution_id = (await client.start(StartExecution(path="examples/large"))).execution_id
    assert await asyncio.to_thread(bucket.refused.wait, 60)
    return execution_id


async def events_of(client: AsyncClient, execution_id: str) -> list[str]:
    return [event["name"] for event in (await client.events(execution_id)).events]


def test_a_report_waits_until_the_store_is_back(bucket: GcsServer, tmp_path: Path) -> None:
    async def play(client: AsyncClient, _: ServerResources) -> None:
        execution_id = await start_while_it_fails(client, bucket)
        assert "TaskProcessed" not in await events_of(client, execution_id)
        bucket.failing = False
        assert (await client.wait(execution_id)).status == "completed"
        names = await events_of(client, execution_id)
        assert (names.count("TaskStarted"), "LeaseExpired" in names) == (1, False)

    asyncio.run(serve(tmp_path, play, ServerLimits()))


def test_then_the_run_fails_with_kind_store_and_can_be_retried(
    bucket: GcsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "STORE_PATIENCE", 1.0)

    async def play(client: AsyncClient, _: ServerResources) -> None:
        execution_id = await start_while_it_fails(client, bucket)
        execution = await client.wait(execution_id)
        assert execution.error is not None
        assert (execution.status, execution.error["kind"]) == ("failed", "store")
        assert "gs://noetl-tests/results" in execution.error["message"]
        assert "TaskProcessed" not in await events_of(client, execution_id)
        bucket.failing = False
        assert (await client.verify(execution_id)).differences == []
        await client.retry(execution_id)
        assert (await client.wait(execution_id)).status == "completed"
        assert (await client.verify(execution_id)).differences == []

    asyncio.run(serve(tmp_path, play, ServerLimits()))
