"""How a worker reaches its server, whatever is between them: a connection, and requests beside it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from noetl.credentials.resolver import CredentialResolver
from noetl.dsl.document.playbook import Playbook
from noetl.kernel.plan import pool_of_step
from noetl.model.errors import NoetlError
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import SecretOrigin
from noetl.ports.control import (
    CheckNeeds,
    FetchAnswer,
    FetchCredential,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FetchRequest,
    FetchSealed,
    FromServer,
    MessageMalformed,
    NeedsChecked,
    SealValues,
    decode_from_server,
    encode_message,
)
from noetl.ports.credentials import CredentialError, StoredCredential
from noetl.ports.results import ResultError, ResultStore
from noetl.tools.python.lib_modules import find_module_error
from noetl.worker.heartbeat import LeaseClock

T = TypeVar("T")
TRIES = 5
"""How often something is asked for while the server does not answer; each wait is twice as long."""
FIRST_WAIT = 0.2
PREFLIGHT_WAIT = 1.0
"""Seconds until a server that asked what can be had here, and does not hear the answer, is told again."""


class ServerUnavailable(NoetlError):
    """The server did not answer, or could not for now: try again."""


class FetchRefused(NoetlError):
    """The server will not give this; `code` says why, as in `noetl.ports.control.FetchFailed`."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ServerConnection(Protocol):
    """Frames in both directions, each in its order. What was sent when it ended may have arrived or not."""

    async def send(self, frame: bytes) -> None:
        """Raises ServerUnavailable."""
        ...

    async def receive(self) -> bytes | str | None:
        """The next frame; None at the end of the connection. Raises ServerUnavailable."""
        ...


class ServerLink(Protocol):
    @property
    def results(self) -> ResultStore:
        """That of the server, of what the session has claimed."""
        ...

    def connect(self, url: str) -> AbstractAsyncContextManager[ServerConnection]:
        """Raises ServerUnavailable."""
        ...

    def join(self, url: str, session: str) -> None:
        """Requests, stored values and heartbeats go there from here on, in the name of this session."""
        ...

    async def request(self, message: bytes) -> bytes:
        """The one message that answers a message. Raises ServerUnavailable and FetchRefused."""
        ...

    def start_heartbeat(self, leases: LeaseClock) -> Callable[[], None]:
        """Beats as long as the loop turns, and says so to `leases`; calling what it gives ends it."""
        ...


async def fetch(link: ServerLink, message: FetchRequest) -> FetchedPlaybook | FetchedValue:
    """Raises ServerUnavailable and FetchRefused."""
    answer = await retry_while_unavailable(lambda: _ask(link, message))
    if isinstance(answer, FetchFailed):
        if answer.code == "unavailable":
            raise ServerUnavailable(answer.message)
        raise FetchRefused(answer.message, answer.code)
    return answer


async def retry_while_unavailable(ask: Callable[[], Awaitable[T]]) -> T:
    """What it gives, asked again a few times. Raises ServerUnavailable, and whatever else it raises."""
    wait = FIRST_WAIT
    for _ in range(TRIES - 1):
        try:
            return await ask()
        except ServerUnavailable:
            await asyncio.sleep(wait)
            wait *= 2
    return await ask()


async def _ask(link: ServerLink, message: FetchRequest) -> FetchAnswer:
    try:
        answer = decode_from_server(await link.request(encode_message(message)))
    except MessageMalformed as error:
        raise FetchRefused(f"the server's answer is none: {error}") from error
    if not isinstance(answer, FetchAnswer):
        raise FetchRefused(f"the server answers with `{type(answer).__name__}`")
    return answer


class ServerSecrets:
    """The server's credential store, and what it keeps of values that tasks marked secret.

    See `noetl.ports.credentials.CredentialStore`.
    """

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    async def find(self, name: str) -> StoredCredential | None:
        value = await self._value_of(FetchCredential(name=name))
        return StoredCredential(**value) if value is not None else None

    async def sealed_value(self, origin: SecretOrigin) -> Any:
        """What was sealed, here or by another worker. Raises CredentialError."""
        return await self._value_of(FetchSealed(execution=origin.execution, number=origin.number))

    async def seal(self, execution_id: str, values: Mapping[int, Any]) -> None:
        """It is kept by the server from here on. Raises ResultError."""
        try:
            await fetch(self._link, SealValues(execution=execution_id, values=dict(values)))
        except (ServerUnavailable, FetchRefused) as error:
            raise ResultError(f"the server does not keep what is secret: {error}") from None

    async def _value_of(self, message: FetchRequest) -> Any:
        try:
            answer = await fetch(self._link, message)
        except ServerUnavailable as error:
            raise CredentialError(str(error), retryable=True) from None
        except FetchRefused as error:
            raise CredentialError(str(error)) from None
        return answer.value if isinstance(answer, FetchedValue) else None


class NeedsPreflight:
    """Looks whether credentials and modules can be had here, before the server gives away what uses them.

    `read_playbook` gives one by its hash, and raises FetchRefused and ServerUnavailable.
    """

    def __init__(
        self,
        link: ServerLink,
        resolver: CredentialResolver,
        read_playbook: Callable[[str], Awaitable[Playbook]],
        directory: Path,
    ) -> None:
        self._link = link
        self._resolver = resolver
        self._read_playbook = read_playbook
        self._directory = directory

    async def answer(self, message: CheckNeeds) -> None:
        while True:
            try:
                await fetch(self._link, await self._look(message))
            except ServerUnavailable:
                await asyncio.sleep(PREFLIGHT_WAIT)
            except FetchRefused:
                return  # the session is another one: whoever asks now asks again
            else:
                return

    async def _look(self, message: CheckNeeds) -> NeedsChecked:
        """Raises ServerUnavailable."""
        try:
            playbook = await self._read_playbook(message.playbook)
            steps = [step for step in playbook.workflow if pool_of_step(playbook, step) == message.pool]
            folder = str(self._directory)
            error = await find_module_error(steps, folder)
            error = error or await self._resolver.preflight(playbook, steps, folder)
        except FetchRefused as refused:
            error = ErrorInfo(kind="credential", message=f"what it needs cannot be looked for: {refused}")
        return NeedsChecked(playbook=message.playbook, pool=message.pool, error=error)


async def receive_message(connection: ServerConnection) -> FromServer | None:
    """The next message; None at the end of the connection. Raises MessageMalformed, ServerUnavailable."""
    frame = await connection.receive()
    return decode_from_server(frame) if frame is not None else None


async def send_frames(connection: ServerConnection, frames: "asyncio.Queue[bytes]") -> None:
    while True:
        await connection.send(await frames.get())
