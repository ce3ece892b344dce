"""The socket of a server."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Match, Route

from noetl.server.http.application import FixedPaths, create_application
from noetl.server.http.http_server import HttpServer, listen
from noetl.server.plane.worker_routes import worker_routes


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_small_pieces_of_answers_are_sent_at_once(host: str) -> None:
    """Else each answer, and each message to a worker, waits for the acknowledgement of the piece before."""

    async def accepted_option() -> int:
        options: asyncio.Queue[int] = asyncio.Queue()

        async def on_connection(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted: socket.socket = writer.get_extra_info("socket")
            options.put_nowait(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listen(host, 0)
        async with await asyncio.start_server(on_connection, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            try:
                return await options.get()
            finally:
                writer.close()

    assert asyncio.run(accepted_option()) == 1


def test_a_server_keeps_idle_connections_longer_than_clients_do() -> None:
    """Else it would close one under a request that is on its way."""

    async def kept_by_clients() -> float:
        async with aiohttp.TCPConnector() as connector:
            return connector._keepalive_timeout or 0.0

    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(Starlette(), listener, None)
        assert server._server.config.timeout_keep_alive > asyncio.run(kept_by_clients())


def test_a_fixed_path_has_the_route_that_would_be_the_first_to_take_it() -> None:
    resources: Any = SimpleNamespace(
        store=None, browser_sessions=None
    )  # nothing is asked: only routes are looked at
    plane: Any = None
    application = create_application(resources, worker_routes(plane, lambda _: "worker"))
    fixed, *routes = application.routes
    assert isinstance(fixed, FixedPaths)
    paths = [route for route in routes if isinstance(route, Route) and "{" not in route.path]
    assert {"/api/executions", "/api/worker/report", "/api/openapi.json", "/healthz"} <= {
        route.path for route in paths
    }
    for route in paths:
        for method in route.methods or ():
            scope = {"type": "http", "method": method, "path": route.path, "headers": []}
            first = next(
                child_scope
                for match, child_scope in (each.matches(scope) for each in routes)
                if match is Match.FULL
            )
            match, child_scope = fixed.matches(scope)
            assert match is Match.FULL
            assert (child_scope["endpoint"], child_scope["path_params"]) == (
                first["endpoint"],
                first["path_params"],
            )
    for method, path in (("PUT", "/api/executions"), ("GET", "/api/executions/x"), ("GET", "/")):
        assert fixed.matches({"type": "http", "method": method, "path": path})[0] is Match.NONE
