"""What can be measured: us, another checkout of us, and peers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from bench.resumption import Resumption

Wrap: TypeAlias = Callable[[Sequence[str]], list[str]]
"""What is done to every command of a side before it is started: nothing, or tracing."""


class Unavailable(Exception):
    """This side cannot be measured here, or not on this workload; the message says why."""


class Worker(NamedTuple):
    """The command that measures: the workload and the plan are its last words, a report its last line.

    `servers` are processes that belong to the side. A worker that is only a client does not: its memory is
    not counted.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    servers: Sequence[int] = ()
    is_client: bool = False


class Side(Protocol):
    """A peer is a module of `bench.peers`."""

    NAME: str
    DURABLE: bool
    """Each step's result is on the disk before the next begins."""

    def install(self, folder: Path) -> None:
        """Brings the side into `folder`; a second call does nothing. Raises Unavailable."""

    def versions(self, folder: Path) -> dict[str, str]:
        """What is installed there."""

    def serve(self, folder: Path, data: Path, wrap: Wrap) -> AbstractContextManager[Worker]:
        """Starts what the side needs, with its files in `data`, and ends it again. Raises Unavailable."""

    def resume(self, folder: Path, data: Path, steps: int) -> Resumption:
        """Kills a run in its middle and times what comes then. Raises Unavailable."""
