"""The worker plane: what a server and its workers say to each other, each message one JSON document.

A server decides and keeps, workers run. A worker registers, says how many runs it takes, gets commands, and
reports what happened under the fence of each. Whatever brings a message, it means the same.
"""

from typing import Any, Final, Literal, TypeAlias, dataclass_transform

import msgspec
from msgspec import Raw, Struct

from noetl.events.bodies import RunResumed
from noetl.model.errors import NoetlError
from noetl.model.outcome import ErrorInfo
from noetl.ports.ledger import LogSource

PROTOCOL: Final = 1
"""Changes whenever a worker of another number could be misunderstood."""
SUBPROTOCOL: Final = f"noetl.worker.v{PROTOCOL}"
"""Of the WebSocket."""
SESSION_HEADER: Final = "noetl-session"
"""Whose message it is, where each comes in a request of its own."""


class MessageMalformed(NoetlError):
    """What came over the worker plane is no message: whoever sent it is not to be trusted."""


@dataclass_transform(frozen_default=True)
class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Common to all messages: `type` says which it is."""


class RunLease(Struct, frozen=True, order=True):
    """A run that a worker owns under this fence."""

    execution: str
    run: str
    fence: int


class Register(Message, tag="register"):
    """The first message of a worker process; of a connection that it made anew, too.

    `session` is empty the first time, and later what the server gave; `held` is what it works on then, and
    what else it had claimed is given to others. `connection` counts how often it has registered, so that a
    server which reads this late knows that it has registered elsewhere since; 0 if it does not say.
    """

    protocol: int
    release: str = ""
    worker: str = ""
    pools: tuple[str, ...] = ("default",)
    kinds: tuple[str, ...] = ()
    slots: int = 0
    session: str = ""
    held: tuple[RunLease, ...] = ()
    connection: int = 0


class Registered(Message, tag="registered"):
    """`session` is a random id of 128 bits; its leases live for `ttl` seconds after each heartbeat."""

    session: str
    ttl: float
    server: str = ""


class Rejected(Message, tag="rejected"):
    """The worker cannot be served: it says why to its operator, and ends."""

    code: str
    message: str
    hint: str = ""


class ClaimCredit(Message, tag="claim"):
    """The worker takes commands as long as it holds fewer than `slots` runs; of 0, none any more."""

    slots: int


class RunCommand(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that the worker owns from here. `run` is the run's state, as `encode_run` gives it.

    With `shard` it is only the shard of it that begins with that iteration. A `workload` of null is large,
    and is to be fetched.
    """

    execution: str
    fence: int
    playbook: str
    """The hash of its document."""
    run: Raw
    shard: int = -1
    workload: Raw = Raw(b"null")
    trace: str = ""


class Work(Message, tag="work"):
    commands: tuple[RunCommand, ...]


SentEvent: TypeAlias = tuple[int, int, Raw]
"""The number of its kind, the version of its format, and its body: these very bytes are stored."""


class RunReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened in a run: all or nothing. `start` counts the events that were reported before.

    `done` says that the worker has let go of the run: it ended, or waits for something.
    """

    execution: str
    run: str
    fence: int
    start: int
    events: tuple[SentEvent, ...]
    done: bool = False


class PrintedText(Struct, frozen=True, kw_only=True):
    """What a task printed; `source` has its step, run, task, attempt and iteration."""

    execution: str
    source: LogSource
    text: str


class WorkerReport(Message, tag="report"):
    """Of many runs and executions. `no` counts the reports of a session, from 1."""

    no: int
    reports: tuple[RunReport, ...] = ()
    logs: tuple[PrintedText, ...] = ()


Verdict: TypeAlias = Literal["durable", "lost", "again"]
"""It is recorded; somebody else owns the run, or nobody; or what was sent before is missing."""


class Ack(Message, tag="ack"):
    """A report is dealt with, and what is durable will survive a crash. One verdict for each run in it."""

    no: int
    verdicts: tuple[Verdict, ...]
    commands: tuple[RunCommand, ...] = ()


class RunNews(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How things stand with a run that a worker works on; it may come more than once.

    `resumed` are the iterations that do not wait, as of the first `reported` events of the run.
    """

    execution: str
    run: str
    fence: int
    owned: bool = False
    stopping: bool = False
    paused: bool = False
    reported: int = 0
    resumed: tuple[RunResumed, ...] = ()


class News(Message, tag="news"):
    items: tuple[RunNews, ...]


class Drain(Message, tag="drain"):
    """The worker is to end what it runs, give back the rest, take nothing more, and leave."""


class Heartbeat(Message, tag="heartbeat"):
    """The worker lives, and so do its leases."""


class Beaten(Message, tag="beaten"):
    """`known` is false if the session has none any more: it ended, or the server does not know it."""

    known: bool


class Release(Message, tag="release"):
    """Gives runs back; with `failed` the worker could not go on with them, which counts as a loss.

    With `error` they fail with it: what they reported cannot be stored, and doing it again would not help.
    A worker that is `leaving` has no run: what is still on its way to it is for others.
    """

    runs: tuple[RunLease, ...]
    failed: bool = False
    leaving: bool = False
    error: ErrorInfo | None = None


class Released(Message, tag="released"):
    """It is recorded."""


class FetchPlaybook(Message, tag="fetch_playbook"):
    hash: str


class FetchWorkload(Message, tag="fetch_workload"):
    """Of an execution of which the session owns a run."""

    execution: str


class FetchCredential(Message, tag="fetch_credential"):
    """From the server's credential store, for a session that owns a run of a playbook that uses secrets."""

    name: str


class SealValues(Message, tag="seal"):
    """Values that tasks of an execution of which the session owns a run marked secret, by number.

    The server keeps them sealed. They are sent before the events in which markers with these numbers stand.
    """

    execution: str
    values: dict[int, Any]


class FetchSealed(Message, tag="fetch_sealed"):
    """One of them, for a session that owns a run in whose values its marker stands."""

    execution: str
    number: int


class FetchGrant(Message, tag="fetch_grant"):
    """A way around the server to a body of an execution of which the session owns a run.

    The answer's value is `{url, headers}`, as `AccessGrant` has it, or null where there is none.
    """

    execution: str
    key: str
    """As in a reference: `EXECUTION/HASH`, or `STORE:EXECUTION/HASH`."""
    method: Literal["GET", "PUT"]


class ArtifactRequest(Message, tag="artifact"):
    """What a task of kind `artifact` in a run that the session owns does with artifacts by name.

    The server does it: `publish` the object of `reference`, give the reference of a `published` one, `list`
    those whose names begin so, `withdraw` one. The answer's value is what `ExecutionObjects` gives.
    """

    execution: str
    run: str
    task: str
    action: Literal["publish", "published", "list", "withdraw"]
    name: str = ""
    store: str = ""
    reference: dict[str, Any] | None = None


class CheckNeeds(Message, tag="check_needs"):
    """Whether the credentials and modules can be had that steps of a playbook use which run in this pool.

    The worker answers with `NeedsChecked`, and may fetch what it needs for that until it has.
    """

    playbook: str
    """The hash of its document."""
    pool: str


class NeedsChecked(Message, tag="needs_checked"):
    """They can be had, unless `error` says which cannot, and why. The answer is a value of null."""

    playbook: str
    pool: str
    error: ErrorInfo | None = None


FetchRequest: TypeAlias = (
    FetchPlaybook
    | FetchWorkload
    | FetchCredential
    | SealValues
    | FetchSealed
    | FetchGrant
    | ArtifactRequest
    | NeedsChecked
)


class FetchedPlaybook(Message, tag="playbook"):
    """A document as its author wrote it, under the name that problems call it by."""

    text: str
    name: str
    dialect: str | None = None


class FetchedValue(Message, tag="value"):
    """A workload; of a credential `{kind, fields}`, or null if there is none."""

    value: Any = None


class FetchFailed(Message, tag="failed"):
    """`code`: `not_found`, `forbidden` (not claimed), `invalid`, `failed` or, for a while, `unavailable`."""

    code: str
    message: str


FetchAnswer: TypeAlias = FetchedPlaybook | FetchedValue | FetchFailed
FromWorker: TypeAlias = (
    Register
    | ClaimCredit
    | WorkerReport
    | Heartbeat
    | Release
    | FetchPlaybook
    | FetchWorkload
    | FetchCredential
    | SealValues
    | FetchSealed
    | FetchGrant
    | ArtifactRequest
    | NeedsChecked
)
FromServer: TypeAlias = (
    Registered
    | Rejected
    | Work
    | Ack
    | News
    | CheckNeeds
    | Drain
    | Beaten
    | Released
    | FetchedPlaybook
    | FetchedValue
    | FetchFailed
)

_ENCODER = msgspec.json.Encoder()
_FROM_WORKER: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_FROM_SERVER: msgspec.json.Decoder[FromServer] = msgspec.json.Decoder(FromServer)


def encode_message(message: Message) -> bytes:
    return _ENCODER.encode(message)


def decode_from_worker(data: bytes | str) -> FromWorker:
    """Raises MessageMalformed."""
    try:
        return _FROM_WORKER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise MessageMalformed(f"no message of a worker: {fault}") from None


def decode_from_server(data: bytes | str) -> FromServer:
    """Raises MessageMalformed."""
    try:
        return _FROM_SERVER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise MessageMalformed(f"no message of a server: {fault}") from None
