"""The socket of a server."""

import asyncio
import socket

import aiohttp
import pytest
from starlette.applications import Starlette

from noetl.server.http.http_server import HttpServer, listen


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
