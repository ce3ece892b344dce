"""A worker that says what the test wants it to say."""

import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from noetl.events.bodies import EventBody, StepDone
from noetl.events.codec import FORMAT, encode
from noetl.events.event_kind import KIND_NUMBERS
from noetl.model.outcome import ErrorInfo
from noetl.ports.control import (
    PROTOCOL,
    SUBPROTOCOL,
    Ack,
    Beaten,
    CheckNeeds,
    FetchedValue,
    FromServer,
    Heartbeat,
    Message,
    NeedsChecked,
    News,
    Register,
    Registered,
    Release,
    Released,
    RunCommand,
    RunLease,
    RunReport,
    Work,
    WorkerReport,
    decode_from_server,
    encode_message,
)
from tests.plane.plane_processes import PATIENCE, Plane
from tests.plane.plane_server import TOKEN

KINDS = ("noop", "python", "shell")


class RawPool:
    """A pool that no other test knows: its runs come to these workers alone."""

    def __init__(self, plane: Plane, name: str) -> None:
        self.plane = plane
        self.name = name

    def start(self, workflow: str, ctx: dict[str, Any] | None = None, **workload: Any) -> str:
        head = f"executor: {{kind: distributed, spec: {{pool: {self.name}}}}}\n"
        return self.plane.start(head + workflow, ctx, **workload)

    def worker(self, **about: Any) -> "RawWorker":
        return RawWorker(self.plane, **{"pools": (self.name,), **about})

    def end(self, execution_id: str) -> str:
        return str(self.plane.end(execution_id)["status"])

    def events(self, execution_id: str) -> list[dict[str, Any]]:
        return self.plane.events(execution_id)


class RawWorker:
    """One connection. A context manager. What comes is kept until it is asked for."""

    def __init__(self, plane: Plane, token: str = TOKEN, **about: Any) -> None:
        self._plane = plane
        self._context = connect_raw(plane, token)
        self._connection = self._context.__enter__()
        register = Register(**{"protocol": PROTOCOL, "slots": 1, "kinds": KINDS, "worker": "raw", **about})
        self.send(register)
        self.welcome = self._receive()
        self.session = self.welcome.session if isinstance(self.welcome, Registered) else ""
        self._news: list[News] = []
        self._acks: list[Ack] = []
        self._commands: list[RunCommand] = []
        self._questions: list[CheckNeeds] = []
        self._number = 0

    def __enter__(self) -> "RawWorker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._context.__exit__(None, None, None)

    def send(self, message: Message | bytes) -> None:
        self._connection.send(message if isinstance(message, bytes) else encode_message(message))

    def _receive(self) -> FromServer:
        return decode_from_server(self._connection.recv(PATIENCE))

    def _sort(self, message: FromServer) -> None:
        match message:
            case Ack():
                self._acks.append(message)
                self._commands += message.commands
            case Work():
                self._commands += message.commands
            case News():
                self._news.append(message)
            case CheckNeeds():
                self._questions.append(message)
            case _:
                raise AssertionError(message)

    def command(self) -> RunCommand:
        """The next one. What it is asked about credentials before, it answers with yes."""
        while not self._commands:
            self._sort(self._receive())
            while self._questions:
                self.answer(self._questions.pop(0))
        return self._commands.pop(0)

    def question(self) -> CheckNeeds:
        """The next one about credentials."""
        while not self._questions:
            self._sort(self._receive())
        return self._questions.pop(0)

    def answer(self, question: CheckNeeds, error: ErrorInfo | None = None) -> None:
        checked = NeedsChecked(playbook=question.playbook, pool=question.pool, error=error)
        assert post(self._plane, "fetch", checked, self.session) == [FetchedValue()]

    def has_command(self) -> bool:
        """Whether one has come."""
        self._settle()
        return bool(self._commands)

    def has_question(self) -> bool:
        self._settle()
        return bool(self._questions)

    def has_news(self) -> bool:
        self._settle()
        return bool(self._news)

    def _settle(self) -> None:
        """What was sent before a heartbeat is answered has come."""
        self.send(Heartbeat())
        while not isinstance(message := self._receive(), Beaten):
            self._sort(message)

    def news(self) -> News:
        while not self._news:
            self._sort(self._receive())
        return self._news.pop(0)

    def report(self, lease: RunLease, start: int, *bodies: EventBody, done: bool = False) -> str:
        """The verdict."""
        self._number += 1
        events = tuple((KIND_NUMBERS[type(body)], FORMAT, Raw(encode(body))) for body in bodies)
        report = RunReport(
            execution=lease.execution, run=lease.run, fence=lease.fence, start=start, events=events, done=done
        )
        self.send(WorkerReport(no=self._number, reports=(report,)))
        while not self._acks:
            self._sort(self._receive())
        ack = self._acks.pop(0)
        assert ack.no == self._number
        (verdict,) = ack.verdicts
        return verdict

    def run_of(self, command: RunCommand) -> str:
        return lease_of(command).run

    def end(self, command: RunCommand) -> str:
        """Reports that the run is done."""
        lease = lease_of(command)
        return self.report(lease, 0, StepDone(run=lease.run), done=True)

    def give_back(
        self,
        command: RunCommand,
        *,
        failed: bool = False,
        leaving: bool = False,
        error: ErrorInfo | None = None,
    ) -> None:
        """Returns when the server has it."""
        self.send(Release(runs=(lease_of(command),), failed=failed, leaving=leaving, error=error))
        while not isinstance(message := self._receive(), Released):
            self._sort(message)

    def wait_until_closed(self) -> int:
        """The code that the server closes it with."""
        while self._connection.close_code is None:
            with suppress(ConnectionClosed):
                self._connection.recv(PATIENCE)
        assert self._connection.close_code is not None
        return self._connection.close_code


def connect_raw(plane: Plane, token: str = TOKEN) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{plane.port}/api/worker/stream",
        subprotocols=[Subprotocol(SUBPROTOCOL)],
        additional_headers={"Authorization": f"Bearer {token}"},
        max_size=None,
    )


def lease_of(command: RunCommand) -> RunLease:
    return RunLease(command.execution, msgspec.json.decode(command.run)["state"]["id"], command.fence)


def post(
    plane: Plane, name: str, message: Message | bytes, session: str = "", token: str = TOKEN
) -> list[FromServer]:
    data = message if isinstance(message, bytes) else encode_message(message)
    headers = {"Authorization": f"Bearer {token}", "Noetl-Session": session}
    request = urllib.request.Request(f"{plane.url}/api/worker/{name}", data, headers)  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - likewise
        return [
            decode_from_server(bytes(raw))
            for raw in msgspec.json.decode(response.read(), type=list[msgspec.Raw])
        ]


class Transfer(NamedTuple):
    """An answer about a stored value."""

    status: int
    body: bytes
    headers: dict[str, str]


def transfer(
    plane: Plane,
    key: str,
    session: str,
    body: bytes | None = None,
    *,
    token: str = TOKEN,
    query: str = "",
    **headers: str,
) -> Transfer:
    """`PUT` of a body, else `GET`."""
    about = {"Authorization": f"Bearer {token}", "Noetl-Session": session}
    about |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{plane.url}/api/results/{key}{query}", body, about, method="GET" if body is None else "PUT"
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - likewise
            names = {name.lower(): value for name, value in response.headers.items()}
            return Transfer(response.status, response.read(), names)
    except urllib.error.HTTPError as error:
        with error:
            return Transfer(error.code, b"", {name.lower(): value for name, value in error.headers.items()})
