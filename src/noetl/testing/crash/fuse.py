"""A store and a place of results whose process dies at one of its writes."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from noetl.ports.store import Append, InboxMessage, Snapshot, Verdict
from noetl.stores.ownership import Owners, Ownership
from noetl.stores.results.file_backend import FileBackend
from noetl.stores.results.result_store import BackendResultStore
from noetl.stores.sqlite.store import SqliteStore


class ProcessCrash(BaseException):
    """The process has ended here. Nothing that it would do afterwards happens."""


class Fuse:
    """Blows at write number `at`, before it or when it is durable but nobody knows; 0 is never.

    With `kill` the process is really killed. Otherwise `dead` is true from then on, every write raises
    ProcessCrash, and `on_death` is called once.
    """

    def __init__(self, at: int = 0, *, after: bool = False, kill: bool = False) -> None:
        self.at = at
        self.after = after
        self.kill = kill
        self.dead = False
        self.on_death: Callable[[], None] = lambda: None
        self.writes = 0

    def begin_write(self) -> int:
        """A write is about to happen; its number."""
        self.writes += 1
        self._blow_at(self.writes, after=False)
        return self.writes

    def end_write(self, number: int) -> None:
        """That write is durable."""
        self._blow_at(number, after=True)

    async def hang(self) -> None:
        """A dead process does not return: waiting for ever is as near as a live one comes to that."""
        await asyncio.get_running_loop().create_future()

    def _blow_at(self, number: int, *, after: bool) -> None:
        if not self.dead and (number, after) == (self.at, self.after):
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            self.dead = True
            self.on_death()
        if self.dead:
            raise ProcessCrash


class FusedStore(SqliteStore):
    """The embedded store; whatever an execution writes passes the fuse."""

    fuse: Fuse

    @classmethod
    def at_path(cls, path: Path, fuse: Fuse) -> "FusedStore":
        # As the store of `noetl run` is opened: commits inline, no limit of size.
        store = cls(str(path), inline="commits", patience=30.0, max_pages=0)
        store.fuse = fuse
        return store

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        number = self.fuse.begin_write()
        verdicts = await super().commit(appends)
        self.fuse.end_write(number)
        return verdicts

    async def put_playbook(self, playbook_hash: str, document: bytes) -> None:
        number = self.fuse.begin_write()
        await super().put_playbook(playbook_hash, document)
        self.fuse.end_write(number)

    async def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        number = self.fuse.begin_write()
        await super().put_snapshot(execution_id, snapshot)
        self.fuse.end_write(number)

    async def send(self, execution_id: str, body: bytes) -> InboxMessage:
        number = self.fuse.begin_write()
        message = await super().send(execution_id, body)
        self.fuse.end_write(number)
        return message

    async def inbox(self, execution_ids: Sequence[str] | None) -> list[InboxMessage]:
        """Counts as a write where a command was read: what is done about it has not begun."""
        messages = await super().inbox(execution_ids)
        if messages:
            self.fuse.end_write(self.fuse.begin_write())
        return messages

    async def take(self, messages: Sequence[InboxMessage]) -> None:
        number = self.fuse.begin_write()
        await super().take(messages)
        self.fuse.end_write(number)


class FusedResults(BackendResultStore):
    """Results as files; whatever is written of them passes the fuse."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(_FusedFiles(folder, fuse))


class _FusedFiles(FileBackend):
    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse

    async def write(self, name: str, data: bytes) -> None:
        number = self._fuse.begin_write()
        await super().write(name, data)
        self._fuse.end_write(number)

    async def write_file(self, name: str, path: Path) -> None:
        number = self._fuse.begin_write()
        await super().write_file(name, path)
        self._fuse.end_write(number)

    async def copy(self, name: str, to: str) -> None:
        number = self._fuse.begin_write()
        await super().copy(name, to)
        self._fuse.end_write(number)


class MortalOwners(Owners):
    """Owners whose locks can be lost at once, as at the end of a process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._acquired: list[Ownership] = []

    def acquire(self, execution_id: str, *, served: bool = False) -> Ownership | None:
        ownership = super().acquire(execution_id, served=served)
        if ownership is not None:
            self._acquired.append(ownership)
        return ownership

    def die(self) -> None:
        for ownership in self._acquired:
            ownership.release()
