"""A worker's way to its server over HTTP: a WebSocket, or requests where a proxy has none, and heartbeats."""

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from noetl.ports.control import (
    SUBPROTOCOL,
    ClaimCredit,
    FromServer,
    Heartbeat,
    MessageMalformed,
    decode_from_server,
    encode_message,
)
from noetl.process_log import LogEvent, log_event
from noetl.worker.heartbeat import HeartbeatThread, LeaseClock
from noetl.worker.plane_requests import ServerAccess
from noetl.worker.server_link import FetchRefused, ServerConnection, ServerUnavailable
from noetl.worker.server_results import ServerResults

SOCKET_HEARTBEAT = 20.0
"""Seconds after which a silent connection is asked whether it is there: networks forget some silently."""


class HttpLink:
    """See `noetl.worker.server_link.ServerLink`."""

    def __init__(self, http: aiohttp.ClientSession, token: str = "") -> None:
        self._http = http
        self._access = ServerAccess(http, {"authorization": f"Bearer {token}"} if token else {})
        # The way of all other messages: they do not ask the environment for a proxy either.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.results = ServerResults(self._access, self)

    def join(self, url: str, session: str) -> None:
        self._access.join(url, session)

    @asynccontextmanager
    async def connect(self, url: str) -> AsyncIterator[ServerConnection]:
        try:
            socket = await self._http.ws_connect(
                f"{url}/api/worker/stream",
                protocols=(SUBPROTOCOL,),
                headers=self._access.headers,
                max_msg_size=0,
                heartbeat=SOCKET_HEARTBEAT,
            )
        except aiohttp.ClientConnectorError as error:
            raise ServerUnavailable(str(error)) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # Somebody is there who does not upgrade the connection: a proxy, if requests are answered.
            log_event(LogEvent.STREAM_REFUSED, url=url, error=str(error) or type(error).__name__)
            polling = _PollConnection(self._access, url)
            try:
                yield polling
            finally:
                await polling.close()
            return
        try:
            yield _SocketConnection(socket)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerUnavailable(str(error) or type(error).__name__) from error
        finally:
            await socket.close()

    async def request(self, message: bytes) -> bytes:
        body = await self._access.post("fetch", message)
        try:
            return _only_message(body)
        except msgspec.DecodeError as error:
            raise FetchRefused(f"the server's answer is none: {error}") from error

    def start_heartbeat(self, leases: LeaseClock) -> Callable[[], None]:
        thread = HeartbeatThread(leases, self._beat)
        thread.start()
        return thread.end

    def _beat(self, patience: float) -> FromServer:
        """In the thread. Raises OSError and ValueError."""
        access = self._access
        request = urllib.request.Request(  # noqa: S310 - the operator's own URL, checked where it came in
            f"{access.url}/api/worker/heartbeat",
            data=encode_message(Heartbeat()),
            headers={**access.headers, "content-type": "application/json"},
        )
        with self._opener.open(request, timeout=patience) as response:
            body = response.read()
        try:
            return decode_from_server(_only_message(body))
        except MessageMalformed as error:
            raise ValueError(str(error)) from error


class _SocketConnection:
    """See `noetl.worker.server_link.ServerConnection`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, frame: bytes) -> None:
        try:
            await self._socket.send_bytes(frame)
        except (aiohttp.ClientError, OSError) as error:
            raise ServerUnavailable(str(error) or type(error).__name__) from error

    async def receive(self) -> bytes | str | None:
        frame = await self._socket.receive()
        if frame.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
            data: bytes | str = frame.data
            return data
        return None


class _PollConnection:
    """The same by requests: what is to be sent goes in one each, and one always waits for what comes.

    An answer that is lost ends the connection, as if a socket had been cut: both sides then find out by
    registering again what the other one has seen.
    """

    def __init__(self, access: ServerAccess, url: str) -> None:
        self._access = access
        self._url = url
        self._frames: asyncio.Queue[bytes | ServerUnavailable] = asyncio.Queue()
        self._slots = 0
        self._registered = False
        self._polling: asyncio.Task[None] | None = None

    async def send(self, frame: bytes) -> None:
        message = msgspec.json.decode(frame, type=_SentMessage)
        if message.type in ("register", "claim"):
            self._slots = message.slots
        await self._post(message.type, frame)

    async def receive(self) -> bytes | str | None:
        if self._registered and self._polling is None:
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        self._registered = True  # what comes first is the answer to `register`
        frame = await self._frames.get()
        if isinstance(frame, ServerUnavailable):
            raise frame
        return frame

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def _poll(self) -> None:
        try:
            while True:
                await self._post("claim", encode_message(ClaimCredit(slots=self._slots)))
        except ServerUnavailable as error:
            self._frames.put_nowait(error)

    async def _post(self, name: str, frame: bytes) -> None:
        """Raises ServerUnavailable, whatever the server has against it."""
        try:
            body = await self._access.post(name, frame, self._url)
            for raw in msgspec.json.decode(body, type=list[msgspec.Raw]):
                self._frames.put_nowait(bytes(raw))
        except (FetchRefused, msgspec.DecodeError) as error:
            raise ServerUnavailable(str(error)) from error


class _SentMessage(msgspec.Struct):
    type: str
    slots: int = 0


def _only_message(body: bytes) -> bytes:
    """Raises msgspec.DecodeError, which is a ValueError."""
    (raw,) = msgspec.json.decode(body, type=tuple[msgspec.Raw])
    return bytes(raw)
