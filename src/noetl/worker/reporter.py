"""What runs report, on its way to the server: gathered, numbered, sent, and sent again until acknowledged."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from msgspec import structs

from noetl.kernel.state.execution_state import Blob
from noetl.model.outcome import ErrorInfo
from noetl.ports.control import (
    Ack,
    Message,
    PrintedText,
    Release,
    RunReport,
    SentEvent,
    WorkerReport,
)
from noetl.ports.results import ResultError, ResultStore
from noetl.worker.remote import RemoteRun
from noetl.worker.server_link import FIRST_WAIT

FLUSH_EVENTS = 256
FLUSH_SECONDS = 0.002
MOST_UNDER_WAY = 8
"""Messages that wait for their acknowledgement; meanwhile more gathers."""
MESSAGE_BYTES = 1 << 20
LOG_PIECE = 1 << 16
"""Characters of a printed text that go together."""
MOST_LOGGED = 1 << 24
"""Characters that wait to be sent; what is printed beyond them is lost, as a log must stop no execution."""
STORE_PATIENCE = 60.0
"""Seconds for which a report waits for a result store that refuses or is gone; then its run fails."""
LONGEST_WAIT = 5.0
"""Seconds between two attempts at storing something."""
MOST_UNREPORTED = 10_000
"""Events that the server has not acknowledged, above which nothing new is done."""


class BodyRefused(ResultError):
    """A stored value that a report needs cannot be stored, though the server answers."""

    def __init__(self, error: ResultError) -> None:
        super().__init__(str(error), error.hint)
        self.kind = error.kind

    @property
    def info(self) -> ErrorInfo:
        message = f"{self}; {self.hint}" if self.hint else str(self)
        return ErrorInfo(kind=self.kind, message=message, retryable=self.retryable)


class _Part(NamedTuple):
    """What one message says of one run."""

    run: RemoteRun
    start: int
    events: tuple[SentEvent, ...]

    @property
    def is_last(self) -> bool:
        """Whether nothing of the run comes after it."""
        return self.run.done and self.start + len(self.events) == self.run.reported


class Reporter:
    """See `noetl.worker.remote.Uplink`, of which this is the part that reports.

    `send` takes a message if there is a connection; what was not acknowledged when one ended is sent again
    over the next one, as the same message: the server knows what it has recorded.
    """

    def __init__(
        self,
        results: ResultStore,
        *,
        send: Callable[[Message], bool],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        wake: Callable[[], None],
    ) -> None:
        self._results = results
        self._send = send
        self._spawn = spawn
        self._wake = wake
        self._dirty: dict[RemoteRun, None] = {}
        self._logs: list[PrintedText] = []
        self._logged = 0
        self._under_way: dict[int, tuple[WorkerReport, list[_Part]]] = {}
        self._again: list[_Part] = []
        """What the server could not record yet, as something before it had not come."""
        self._number = 0
        self._lingering: asyncio.TimerHandle | None = None
        self._urgent = False
        self.unreported = 0
        """Events that the server has not acknowledged."""

    @property
    def idle(self) -> bool:
        return not (self._dirty or self._under_way or self._again or self._logs)

    @property
    def full(self) -> bool:
        return self.unreported >= MOST_UNREPORTED

    def queue(self, run: RemoteRun, events: int) -> None:
        self._dirty[run] = None
        self.unreported += events
        self._linger()

    def hurry(self) -> None:
        self._urgent = True
        self._wake()

    def print(self, line: PrintedText) -> None:
        if self._logged + len(line.text) > MOST_LOGGED:
            return
        self._logged += len(line.text)
        for start in range(0, len(line.text) or 1, LOG_PIECE):
            self._logs.append(structs.replace(line, text=line.text[start : start + LOG_PIECE]))
        self._linger()

    def _take_logs(self) -> tuple[PrintedText, ...]:
        count = size = 0
        for line in self._logs:
            size += len(line.text)
            count += 1
            if size > MESSAGE_BYTES:
                break
        taken, self._logs = tuple(self._logs[:count]), self._logs[count:]
        self._logged -= size
        return taken

    def upload(self, run: RemoteRun, blob: Blob) -> None:
        self.send_before(run, self._put_patiently(run, blob), lambda: run.ledger.uploaded(blob))

    async def _put_patiently(self, run: RemoteRun, blob: Blob) -> None:
        """The result store may come back: the report waits, and the lease lives. Raises BodyRefused."""
        loop = asyncio.get_running_loop()
        give_up, wait = loop.time() + STORE_PATIENCE, FIRST_WAIT
        while True:
            try:
                await self._results.put(*blob)
            except ResultError as error:
                if not error.retryable or run.lost or loop.time() + wait > give_up:
                    raise BodyRefused(error) from error
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def send_before(self, run: RemoteRun, work: Coroutine[Any, Any, None], then: Callable[[], None]) -> None:
        """What events of the run rest on: they wait until it is done. It raises ResultError if it fails."""
        run.uploads += 1
        self._spawn(self._await_upload(run, work, then))

    async def _await_upload(
        self, run: RemoteRun, work: Coroutine[Any, Any, None], then: Callable[[], None]
    ) -> None:
        try:
            await work
        except ResultError as error:
            # What it reported cannot be recorded without it, and no event may name what is not stored.
            if not run.lost:
                info = error.info if isinstance(error, BodyRefused) else None
                self._send(Release(runs=(run.lease,), failed=True, error=info))
                run.ledger.lose(run)
            return
        finally:
            run.uploads -= 1
        then()
        self.hurry()

    def flush_if_due(self) -> None:
        """At the end of a turn: what somebody waits for, or much, is sent; the rest within 2 ms."""
        if self._urgent or self.unreported >= FLUSH_EVENTS:
            self.flush()

    def flush(self) -> None:
        """Sends what has gathered, as far as there is room under way."""
        self._urgent = False
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        while len(self._under_way) < MOST_UNDER_WAY and self._send_next():
            pass

    def _send_next(self) -> bool:
        logs = self._take_logs()
        # What a run printed goes before its end: the server takes nothing from who does not own it.
        parts = [] if self._logs else self._take()
        if not parts and not logs:
            return False
        self._number += 1
        reports = tuple(
            RunReport(
                execution=part.run.ledger.execution_id,
                run=part.run.run.id,
                fence=part.run.fence,
                start=part.start,
                events=part.events,
                done=part.is_last,
            )
            for part in parts
        )
        message = WorkerReport(no=self._number, reports=reports, logs=logs)
        self._under_way[self._number] = message, parts
        self._send(message)
        return True

    def _take(self) -> list[_Part]:
        # As they were: what comes after one of them may be recorded already, or on its way.
        parts, self._again = self._again, []
        size = 0
        for run in list(self._dirty):
            if run.uploads:
                continue
            count = 0
            for event in run.queue:
                size += len(bytes(event[2]))
                count += 1
                if size > MESSAGE_BYTES:
                    break
            if count:
                parts.append(_Part(run, run.start, tuple(run.queue[:count])))
                run.start += count
                del run.queue[:count]
            if not run.queue:
                del self._dirty[run]
            if size > MESSAGE_BYTES:
                break
        return parts

    def resend(self) -> None:
        """There is a new connection."""
        for message, _ in self._under_way.values():
            self._send(message)
        self.flush()

    def acknowledge(self, ack: Ack) -> None:
        """What an unknown number says is known already."""
        _, parts = self._under_way.pop(ack.no, (None, []))
        for part, verdict in zip(parts, ack.verdicts, strict=False):
            run = part.run
            match verdict:
                case "durable":
                    run.durable = max(run.durable, part.start + len(part.events))
                    self.unreported -= len(part.events)
                    if not run.open:
                        run.ledger.close_run(run)
                case "again" if not run.lost:
                    self._again.append(part)
                case _:
                    self.unreported -= len(part.events)
                    run.ledger.lose(run)
        for ledger in {id(part.run.ledger): part.run.ledger for part in parts}.values():
            ledger.settle()
        if self._dirty or self._again or self._logs:
            self.flush_if_due()
            self._linger()
        self._wake()

    def forget(self, run: RemoteRun) -> None:
        """It was lost: what waits is not sent."""
        if run in self._dirty:
            del self._dirty[run]
        returned = [part for part in self._again if part.run is run]
        self._again = [part for part in self._again if part.run is not run]
        self.unreported -= len(run.queue) + sum(len(part.events) for part in returned)

    def _linger(self) -> None:
        if self._lingering is None:
            self._lingering = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush_lingering)

    def _flush_lingering(self) -> None:
        self._lingering = None
        self.flush()
