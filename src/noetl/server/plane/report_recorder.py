"""What workers report: decided run by run, and acknowledged when all of it is durable."""

from collections.abc import Callable, Iterable

from noetl.engine.execution import LiveExecution, TaskLogWriter, all_durable
from noetl.engine.registry import ExecutionRegistry
from noetl.events.codec import decode
from noetl.events.errors import EventUnreadable
from noetl.kernel.errors import NotOwner, Refused, ReportEarly
from noetl.kernel.net.commands import Report
from noetl.ports.control import PrintedText, RunReport, Verdict, WorkerReport
from noetl.process_log import LogEvent, log_event
from noetl.server.plane.dispatcher import Dispatcher
from noetl.server.plane.sessions import Lease, LeaseEnd, Leases, WorkerSession


class ReportRecorder:
    """Records reports of sessions. Who reports the end of a run is the first to get another.

    `end_leases` ends leases for a reason, and `start_over` that under which a state was left half changed.
    """

    def __init__(
        self,
        registry: ExecutionRegistry,
        leases: Leases,
        dispatcher: Dispatcher,
        *,
        end_leases: Callable[[Iterable[Lease], LeaseEnd], object],
        start_over: Callable[[Lease], object],
        logs: TaskLogWriter | None,
    ) -> None:
        self._registry = registry
        self._leases = leases
        self._dispatcher = dispatcher
        self._end_leases = end_leases
        self._start_over = start_over
        self._logs = logs
        self.reporting: Lease | None = None
        """Under which what is being decided was reported."""

    def record(self, session: WorkerSession, message: WorkerReport) -> None:
        """Records what happened; the acknowledgement follows when all of it is durable."""
        verdicts: list[Verdict] = []
        lives: dict[str, LiveExecution] = {}
        ended: list[Lease] = []
        self._print(session, message.logs)
        self._dispatcher.hold()
        for part in message.reports:
            lease = self._leases.get(part.execution, part.run, part.fence)
            if lease is None or lease.session is not session:
                verdicts.append("lost")
                if (live := self._registry.get(part.execution)) is not None:
                    lives[part.execution] = live
                continue
            lives[part.execution] = lease.live
            verdicts.append(self._record(lease, part))
            if lease.owned is None:
                ended.append(lease)
        for lease in ended:
            self._dispatcher.chain(lease)
        self._dispatcher.dispatch()
        outgoing = session.outgoing
        reloads = {name: live.reloads for name, live in lives.items()}

        def acknowledge() -> None:
            # What somebody else had written to was decided again, and what came of it is not known here.
            anew = {name for name, live in lives.items() if live.reloads != reloads[name]}
            final = zip([part.execution for part in message.reports], verdicts, strict=True)
            outgoing.acknowledge(
                message.no, tuple("again" if name in anew else verdict for name, verdict in final)
            )

        all_durable(lives.values(), acknowledge)

    def _record(self, lease: Lease, part: RunReport) -> Verdict:
        live = lease.live
        loop = live.state.runs[lease.run].loop if lease.owned is not None else None
        broken = lease.shard >= 0 and loop is not None and loop.broken >= 0
        data = tuple(bytes(body) for _, _, body in part.events)
        try:
            bodies = tuple(
                decode(kind, body, version)
                for (kind, version, _), body in zip(part.events, data, strict=True)
            )
            self.reporting = lease
            live.submit(Report(part.run, part.fence, part.start, bodies, data))
        except NotOwner:
            return "lost"
        except ReportEarly:
            return "again"
        except (Refused, EventUnreadable):
            # Its fold differs from ours: whatever it says next, it cannot go on. The loss is counted, so that
            # this has an end.
            self._end_leases([lease], "expired")
            return "lost"
        except Exception as error:  # noqa: BLE001 - ours, and its worker would send the same for ever, and nothing else
            log_event(LogEvent.REPORT_BROKEN, execution_id=part.execution, run=part.run, error=error)
            self._start_over(lease)
            return "lost"
        finally:
            self.reporting = None
        if broken and lease.owned is None:
            # The loop has failed elsewhere: what its worker began after this iteration was not recorded.
            return "lost"
        if part.done and lease.owned is not None:
            # It left because all of it waited, and did not know yet that something of it goes on.
            self._end_leases([lease], "released")
        return "durable"

    def _print(self, session: WorkerSession, logs: Iterable[PrintedText]) -> None:
        for line in logs:
            if self._logs is not None and session.owns_run_of(line.execution):
                self._logs.write(line.execution, line.source, line.text)
