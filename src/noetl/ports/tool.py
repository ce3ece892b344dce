"""What runs a task: the port that every kind of tool implements."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.ports.credentials import CredentialLookup
from noetl.ports.results import ExecutionObjects


class TextMask(Protocol):
    """Keeps secrets out of texts. What a tool cuts it masks first: no one finds a part of a secret later."""

    def mask_excerpt(self, text: str) -> str:
        """The text with `***` in place of secrets, and of what a cut at one of its ends left of one."""
        ...

    def contains_secret(self, text: str) -> bool:
        """Whether a secret is in the text."""
        ...

    def end_of_secret(self, text: str, position: int) -> int:
        """Where the secret ends that lies across a position; the position itself if none does."""
        ...


class NoSecrets:
    """The mask of a task that knows none."""

    def mask_excerpt(self, text: str) -> str:
        return text

    def contains_secret(self, _: str) -> bool:
        return False

    def end_of_secret(self, _: str, position: int) -> int:
        return position


NO_SECRETS = NoSecrets()


class Call(Struct, frozen=True, kw_only=True):
    """One attempt of one task, with everything rendered.

    `inputs` and `spec` are plain values under their canonical names; `args` are the task's own over
    the token's, and the task's own stand in `inputs`, too, if it gives any. `folder` is where relative
    paths start. `log` takes lines for the task's log. `objects` keeps what is too large for a value.
    An `auth` among the inputs is a mapping: a name was looked up already. `credentials` gives others by
    name, where there are any. `mask` is for texts that the tool cuts; all else is masked when it is done.
    `run_id` is the step run, `traceparent` the header for requests to others, empty where nothing is traced.
    """

    execution_id: str
    task: str
    kind: str
    inputs: Mapping[str, Json]
    args: Mapping[str, Json]
    spec: Mapping[str, Json]
    prev: Json
    attempt: int
    idempotency_key: str
    run_id: str = ""
    traceparent: str = ""
    timeout: float
    folder: Path
    log: Callable[[str], None]
    objects: ExecutionObjects
    credentials: CredentialLookup | None = None
    mask: TextMask = NO_SECRETS


class Tool(Protocol):
    """A kind's implementation, one for each worker.

    `run` never raises but for cancellation, never retries by itself, and ends within `call.timeout`
    with kind `timeout`. Cancelling it stops the work it began. `close` frees what it holds; a second
    call does nothing.
    """

    async def run(self, call: Call) -> Outcome: ...

    async def close(self) -> None: ...


@runtime_checkable
class ExecutionScoped(Protocol):
    """A tool that keeps something for an execution from one task to the next."""

    def forget(self, execution_id: str) -> None:
        """The execution has ended, or goes on elsewhere: frees what was kept for it, at once or soon."""
        ...
