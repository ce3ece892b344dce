"""The connections of a worker to NATS servers: one for each server and user, shared by all tasks."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import nats.errors
from nats.aio.client import Client, RawCredentials

from noetl.model.outcome import ToolError
from noetl.tools.nats.kind import SCHEMES, NatsInputs

IDLE_SECONDS = 60.0
"""Seconds after which a connection that nobody uses is closed, when another one is opened."""
CONNECT_SECONDS = 10
_PING_SECONDS = 24 * 3600
"""Longer than the client goes on with a server that does not answer."""
_URLS = ("url", "nats_url", "servers", "server", "dsn")
_OPTIONS = {
    "user": ("user", "username", "nats_user"),
    "password": ("password", "nats_password"),
    "token": ("token", "value"),
    "nkeys_seed_str": ("nkey", "nkeys_seed", "seed"),
    "user_credentials": ("creds", "credentials"),
}
"""What the client calls the fields of a credential."""


class NatsConnection:
    """A connection, how many tasks use it, and since when none does."""

    def __init__(self) -> None:
        self.client = Client()
        self.users = 0
        self.idle_since = 0.0
        self._denials: set[tuple[tuple[str, ...], asyncio.Future[str]]] = set()
        self._pings: set[asyncio.Task[None]] = set()

    async def flush(self) -> None:
        """Until the server has all that was sent.

        The client writes a first ping before messages that wait in its buffer, a second one after them.
        It stops reading if an answer comes to a ping that nobody waits for any more: no task ends one.
        """
        for _ in range(2):
            ping = asyncio.create_task(self.client.flush(timeout=_PING_SECONDS))
            self._pings.add(ping)
            ping.add_done_callback(self._pings.discard)
            await asyncio.shield(ping)

    async def close(self) -> None:
        with suppress(nats.errors.Error, OSError):
            await self.client.close()
        for ping in self._pings:
            ping.cancel()

    async def unless_denied(self, subjects: tuple[str, ...], work: Awaitable[Any]) -> Any:
        """What the work gives. ToolError of kind `permission` if the server denies any of these subjects.

        The server says that to the connection, not to who waits for an answer: that would be until the
        time of the task is over, and a message without an answer would count as sent.
        """
        denied: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waiter = (subjects, denied)
        self._denials.add(waiter)
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, denied}, return_when=asyncio.FIRST_COMPLETED)
            if denied.done():
                raise ToolError("permission", f"the server does not allow it: {denied.result()}")
            return await task
        finally:
            self._denials.discard(waiter)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def hear_denial(self, message: str) -> None:
        """Tells all whom the words of the server are about; the client has them in lower case."""
        for subjects, denied in self._denials:
            about = (*subjects, '"_inbox.')  # without an inbox no answer reaches anybody
            if not denied.done() and any(subject.lower() in message for subject in about):
                denied.set_result(message)


class NatsConnections:
    """Belongs to the running event loop. A connection that was lost is made anew by the next task."""

    def __init__(self) -> None:
        self._connections: dict[tuple[tuple[str, Any], ...], NatsConnection] = {}
        self._connecting = asyncio.Lock()
        self._closed = False

    @asynccontextmanager
    async def connection(self, inputs: NatsInputs, auth: object) -> AsyncIterator[NatsConnection]:
        """Raises ToolError, and the client's own errors if there is no connection."""
        options = connection_options(inputs.url, auth)
        key = tuple(sorted((name, str(value)) for name, value in options.items()))
        async with self._connecting:
            if self._closed:
                raise ToolError("cancelled", "the worker is ending")
            shared = self._connections.get(key)
            if shared is None or not shared.client.is_connected:
                await self._close_idle()
                shared = self._connections[key] = await _connect(options)
            shared.users += 1
        try:
            yield shared
        finally:
            shared.users -= 1
            shared.idle_since = time.monotonic()

    async def close(self) -> None:
        """Closes every connection. A second call does nothing."""
        self._closed = True
        connections, self._connections = self._connections, {}
        for shared in connections.values():
            await shared.close()

    async def _close_idle(self) -> None:
        before = time.monotonic() - IDLE_SECONDS
        for key, shared in list(self._connections.items()):
            if not shared.client.is_connected or (not shared.users and shared.idle_since < before):
                del self._connections[key]
                await shared.close()


async def _connect(options: dict[str, Any]) -> NatsConnection:
    """Without attempts of its own at coming back: those belong to the policy of the task."""
    connection = NatsConnection()
    client = connection.client
    left = len(options["servers"])

    async def hear_error(error: Exception) -> None:
        """Called for each server that cannot be reached: the client would begin again with the first.

        Afterwards it is what the server tells the connection; by default the client prints that.
        """
        nonlocal left
        if client.is_connected:
            connection.hear_denial(str(error).removeprefix("nats: "))
            return
        left -= 1
        if left <= 0:
            raise error

    try:
        await client.connect(
            allow_reconnect=False,
            connect_timeout=CONNECT_SECONDS,
            error_cb=hear_error,
            name="noetl",
            # So the client reads the answer to its sign-in before it sends more. Else a refusal may go with
            # the connection that the server closes: a wrong password would look like a server that is gone.
            verbose=True,
            **options,
        )
    except BaseException:  # a cancelled wait for the server, too
        await connection.close()
        raise
    return connection


def connection_options(url: str | None, auth: object) -> dict[str, Any]:
    """What the client connects with. ToolError of kind `credential` if that is not enough."""
    if auth is not None and not isinstance(auth, Mapping):
        raise ToolError("credential", f"the credential `{auth}` is not there")
    fields: Mapping[str, Any] = auth or {}
    address = url or next((fields[name] for name in _URLS if fields.get(name)), None)
    if address is None and fields.get("host"):
        address = f"nats://{fields['host']}:{fields.get('port') or 4222}"
    servers = [address] if isinstance(address, str) else address
    if not isinstance(servers, list) or not servers:
        raise ToolError("credential", "the credential does not say where the server is: give `url`")
    if not all(isinstance(server, str) and server.startswith(SCHEMES) for server in servers):
        raise ToolError("credential", "the address of the server does not begin with `nats://`")
    options: dict[str, Any] = {"servers": servers}
    for option, names in _OPTIONS.items():
        value = next((fields[name] for name in names if fields.get(name)), None)
        if value is not None:
            options[option] = RawCredentials(str(value)) if option == "user_credentials" else str(value)
    if "user" in options or "user_credentials" in options:
        options.pop("token", None)
    return options
