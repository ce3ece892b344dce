"""Listening: the socket, TLS, and an end that waits for nobody for ever."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp

from noetl.model.errors import NoetlError

CLOSE_SECONDS = 5
"""How long requests may go on after the server was told to end."""


KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays open: longer than clients keep theirs (aiohttp 15 s; uvicorn's own is 5).

One that the server closes while a request is on its way fails that request.
"""


class ListenFailed(NoetlError):
    """The server cannot listen as it was told. `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TlsFiles(Struct, frozen=True):
    """A certificate with its chain, and its key, both PEM."""

    certificate: Path
    key: Path


@lru_cache(maxsize=64)  # asked of every request, and to read an address takes as long as to find its token
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; with port 0 at one that is free. Raises ListenFailed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, because asyncio sends small pieces at once (TCP_NODELAY) only where it is: else
    # the second piece of each answer waits some 40 ms until the other end has acknowledged the first.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(2_048)
    except OSError as error:
        listener.close()
        hint = "--port names another one, --port 0 any that is free"
        raise ListenFailed(f"cannot listen on {host}:{port}: {error.strerror or error}", hint) from None
    listener.settimeout(0)
    return listener


def url_of(listener: socket.socket, tls: TlsFiles | None) -> str:
    """Where a client of this machine finds it."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - what it stands for is asked
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class HttpServer:
    """Serves an application on a socket until `close`."""

    def __init__(self, application: ASGIApp, listener: socket.socket, tls: TlsFiles | None) -> None:
        """Raises ListenFailed if the certificate cannot be used."""
        config = uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,  # its lines go where ours go
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            ssl_certfile=str(tls.certificate) if tls else None,
            ssl_keyfile=str(tls.key) if tls else None,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            files = f"{tls.certificate} and {tls.key}" if tls else ""
            raise ListenFailed(f"{files} cannot be used for TLS: {error}") from None
        self._server = _Uvicorn(config)
        self._listener = listener

    async def serve(self) -> None:
        await self._server.serve([self._listener])

    async def wait_until_started(self, serving: "asyncio.Task[None]") -> None:
        """Returns when requests are answered. Raises what ended `serving` before."""
        started = asyncio.ensure_future(self._server.startup_done.wait())
        await asyncio.wait([started, serving], return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if serving.done():
            serving.result()

    def close(self) -> None:
        """Takes no more requests; `serve` returns when those that are open have ended, or soon."""
        self._server.end()


class _Uvicorn(uvicorn.Server):
    """Leaves signals to whoever runs the process: the engine must hear of them, too."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.startup_done = asyncio.Event()
        self._ended = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        # Ours, because uvicorn's wakes up ten times a second to see whether it is to end. What is left is the
        # date in answers, which has seconds.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 1.0)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.startup_done.set()
