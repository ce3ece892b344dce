"""A real proxy for tests: passes requests on, and tunnels where it is asked to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit


class Proxy(NamedTuple):
    """Where it is, and the first line and the headers of each request that it got."""

    url: str
    heard: list[tuple[str, dict[str, str]]]


@asynccontextmanager
async def proxying(refusal: bytes = b"") -> AsyncIterator[Proxy]:
    """A proxy to anywhere; one that answers everything with the refusal, if there is one."""
    requests: list[tuple[str, dict[str, str]]] = []
    serving: list[asyncio.Task[None]] = []

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(answer(reader, writer)))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        requests.append((first, headers))
        if refusal:
            writer.write(refusal)
        else:
            method, target, _ = first.split()
            target_url = urlsplit(f"//{target}" if method == "CONNECT" else target)
            ahead, beyond = await asyncio.open_connection(target_url.hostname, target_url.port)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                path = target.partition(target_url.netloc)[2]
                beyond.write(head.replace(target, path, 1).encode())
            await asyncio.gather(_pass(reader, beyond), _pass(ahead, writer))
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Proxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests)
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.gather(*serving)


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        sink.close()
