"""Workers that went silent while they had runs: an operator wants to know of them, also after a restart."""

import asyncio

from noetl.ports.store import Store, StoreError
from noetl.process_log import LogEvent, log_event
from noetl.server.plane.sessions import LostSession

KEPT = 24 * 3_600_000_000
"""Microseconds for which each is kept."""
_FOLDER = "lost-worker/"
"""Before the names of the blobs, which say all: when, how many runs, which worker."""


class LostWorkers:
    """Keeps them in the store of a server. `note` is called in its loop, and returns at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writes: set[asyncio.Task[None]] = set()

    def note(self, lost: LostSession) -> None:
        write = asyncio.create_task(self._write(lost))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)

    async def since(self, at: int) -> list[LostSession]:
        """Those of `KEPT` at most, the earliest first. Raises StoreError."""
        await self.close()
        names = await self._store.blobs(_FOLDER)
        return [_lost_of(name) for name in names if name >= f"{_FOLDER}{at:016}"]

    async def close(self) -> None:
        """What was noted is in the store afterwards, or will not be."""
        await asyncio.gather(*self._writes)

    async def _write(self, lost: LostSession) -> None:
        too_old = f"{_FOLDER}{lost.at - KEPT:016}"
        try:
            await self._store.put_blob(f"{_FOLDER}{lost.at:016}/{lost.runs}/{lost.worker}", b"")
            names = await self._store.blobs(_FOLDER)
            await self._store.delete_blobs([name for name in names if name < too_old])
        except StoreError as error:
            log_event(LogEvent.LOSS_NOT_KEPT, worker=lost.worker, error=error)


def _lost_of(name: str) -> LostSession:
    at, runs, worker = name.removeprefix(_FOLDER).split("/", 2)
    return LostSession(worker, int(at), int(runs))
