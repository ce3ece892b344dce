"""The store as one server process has it: real, in memory, and the process may die around each commit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, NoReturn, TypeVar

from noetl.ports.store import Append, Store, Verdict

T = TypeVar("T")


def call_inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a call that never waits, as those of a store in memory."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # StopIteration is not generic
    raise AssertionError("a store in memory made its caller wait")


class StoreFaults:
    """What the disk of a server process does; `before` and `after` say whether the process dies there.

    `delay` is how long a commit takes, before it is written and again until its answer is there.
    """

    def __init__(
        self, *, delay: Callable[[], float], before: Callable[[], bool], after: Callable[[], bool]
    ) -> None:
        self.delay = delay
        self.before = before
        self.after = after


class SimulatedStore:
    """See `noetl.ports.store.Store`. `die` ends the process, `committed` hears what was written."""

    def __init__(
        self,
        store: Store,
        faults: StoreFaults,
        die: Callable[[str], None],
        committed: Callable[[Sequence[Append]], None],
    ) -> None:
        self._store = store
        self._faults = faults
        self._die = die
        self._committed = committed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        faults = self._faults
        await _pause(faults.delay())
        if appends and faults.before():
            await self._end("before a commit")
        verdicts = await self._store.commit(appends)
        self._committed(appends)
        if appends and faults.after():
            await self._end("after a commit")
        await _pause(faults.delay())
        return verdicts

    async def changes(self) -> AsyncIterator[None]:
        """No other process writes to it."""
        yield
        await asyncio.get_running_loop().create_future()

    async def _end(self, moment: str) -> NoReturn:
        self._die(moment)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a dead process went on")


async def _pause(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)
