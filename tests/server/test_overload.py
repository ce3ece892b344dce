"""A server that has no room says so, and when to come again; what runs comes first."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from noetl.client.http_client import AsyncClient
from noetl.client.server_requests import ServerError
from noetl.daemon import ServerOptions, make_embedded_worker, open_resources
from noetl.ports.admin_api import TokenRequest
from noetl.ports.http_api import StartExecution
from noetl.server.http.application import create_application
from noetl.server.http.http_server import HttpServer, listen, url_of
from noetl.server.http.resources import ServerLimits, ServerResources
from noetl.settings import read_settings
from noetl.stores import open_store
from noetl.stores.api_tokens import make_token
from noetl.stores.home_folder import Home
from tests.server.server_process import GREET, WAITING

Play: TypeAlias = Callable[[AsyncClient, ServerResources], Awaitable[None]]


async def expect_overload(client: AsyncClient) -> None:
    with pytest.raises(ServerError) as refused:
        await client.start(StartExecution(path="examples/greet"))
    assert (refused.value.problem.status, refused.value.code) == (503, "overloaded")
    assert refused.value.problem.execution_id == ""


def test_new_executions_are_put_off_while_too_many_run(tmp_path: Path) -> None:
    async def play(client: AsyncClient, resources: ServerResources) -> None:
        await client.register(GREET)
        await client.register(WAITING)
        held = (await client.start(StartExecution(path="examples/waiting"))).execution_id
        await expect_overload(client)
        # What would only be looked at takes no room.
        assert (await client.plan(StartExecution(path="examples/greet"))).ok
        assert len((await client.list()).executions) == 1
        await client.signal(held, "go")
        assert (await client.wait(held)).status == "completed"
        await client.start(StartExecution(path="examples/greet"))

    asyncio.run(serve(tmp_path, play))


def test_a_server_that_ends_is_not_ready_and_starts_nothing(tmp_path: Path) -> None:
    async def play(client: AsyncClient, resources: ServerResources) -> None:
        await client.register(GREET)
        assert (await client.health()).status == "ok"
        resources.bell.close()
        with pytest.raises(ServerError) as refused:
            await client.health()
        assert refused.value.problem.status == 503
        await expect_overload(client)

    asyncio.run(serve(tmp_path, play))


def test_a_server_whose_disk_is_full_is_not_ready_and_says_so(tmp_path: Path) -> None:
    async def play(client: AsyncClient, resources: ServerResources) -> None:
        with pytest.raises(ServerError) as refused:
            await client.health()
        assert (refused.value.problem.status, refused.value.code) == (503, "store_unavailable")
        status = await client.status()
        assert status.ready is False
        # How much is free may be another figure by then.
        for text in (str(refused.value), status.problem or ""):
            assert re.fullmatch(r"the disk of the store is full: \d+ MiB are free", text)
        assert (await client.list()).executions == []  # what can be read is

    asyncio.run(serve(tmp_path, play, ServerLimits(free_bytes=1 << 62)))


ONE_AT_A_TIME = ServerLimits(live_executions=1)


async def serve(tmp_path: Path, play: Play, limits: ServerLimits = ONE_AT_A_TIME) -> None:
    """A server in this process, by default one that runs one execution at a time."""
    home = Home(tmp_path / "home")
    home.make()
    store = open_store(f"sqlite:///{home.store}", inline="nothing")
    configuration = read_settings({"home": str(home.folder)})
    try:
        token = await make_token(store, TokenRequest(name="a", role="admin"), "test")
        assert token is not None
        options = ServerOptions(embedded_worker=True)
        async with open_resources(configuration, home, store, options) as opened:
            resources = replace(opened, limits=limits)
            worker = make_embedded_worker(configuration, options, resources)
            working = asyncio.create_task(worker.run())
            listener = listen("127.0.0.1", 0)
            server = HttpServer(create_application(resources), listener, None)
            serving = asyncio.create_task(server.serve())
            await server.wait_until_started(serving)
            async with AsyncClient(url_of(listener, None), token.token) as client:
                await play(client, resources)
            server.close()
            await serving
            await worker.kill()
            await working
    finally:
        await store.close()
