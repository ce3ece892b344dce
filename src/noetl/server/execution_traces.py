"""Traces: a span for each execution, step run and attempt of a task, when its end is durable.

Imported only where traces are configured. Workers make none: the times of attempts come with their reports.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from noetl.engine.execution import LiveExecution
from noetl.engine.listener import EngineListener, EventHandler
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.identifiers import run_id
from noetl.model.timestamp import parse_iso
from noetl.model.trace_context import attempt_span_id, hashed_span_id, w3c_trace_id
from noetl.settings import installed_release
from noetl.system import System

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_RUN_ENDS = (of.StepDone, of.StepFailed, of.LoopDone, of.StepCompletedByHand, of.StepSkipped)


class FinishedSpan(Struct, frozen=True, kw_only=True):
    """What there is to say about something that ended. Times are microseconds since 1970; ids hex digits."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str = ""
    began: int
    ended: int
    error: str = ""
    """What went wrong; empty if nothing did."""
    attributes: Mapping[str, Any]
    cause: tuple[str, str] | None = None
    """Trace and span of what started it elsewhere."""


class ExecutionTraces(EngineListener):
    """Hears of ends, and exports spans as the variables `OTEL_…` say."""

    def __init__(self, system: System) -> None:
        self._now = system.now
        self._ids = _GivenIds()
        self._provider = TracerProvider(id_generator=self._ids, resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        # What is to be sent is asked once for a trace, and not again for its spans.
        self._sampler, self._provider.sampler = self._provider.sampler, ALWAYS_ON
        self._tracer = self._provider.get_tracer("noetl", installed_release())
        self._open: dict[str, dict[str, tuple[str, int]]] = {}

    async def close(self) -> None:
        """Sends what is left; an answer that does not come is not waited for long."""
        await asyncio.to_thread(self._provider.shutdown)

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        return {
            of.StepScheduled: self._on_scheduled,
            of.TaskProcessed: self._on_task_processed,
            **dict.fromkeys(_RUN_ENDS, self._on_run_ended),
        }

    async def resumed(self, live: LiveExecution) -> None:
        """What was open when another server ended: nobody here knows since when."""
        runs = self._open.setdefault(live.execution_id, {})
        for run in live.state.runs.values():
            runs.setdefault(run.id, (run.step.name, self._now()))

    def dropped(self, live: LiveExecution) -> None:
        self._open.pop(live.execution_id, None)

    def over(self, live: LiveExecution) -> None:
        self._open.pop(live.execution_id, None)
        state, execution_id = live.state, live.execution_id
        parent = live.origin.parent
        run = parent.task_run_id.partition("/")[0] if parent is not None else ""
        span = FinishedSpan(
            name=live.playbook.metadata.path or live.playbook.metadata.name,
            trace_id=live.trace_id,
            span_id=hashed_span_id(execution_id),
            # A uuid of version 7 begins with the milliseconds of its making.
            began=int(execution_id.replace("-", "")[:12], 16) * 1_000,
            ended=self._now(),
            error=state.error.message if state.error is not None else "",
            attributes={"noetl.execution_id": execution_id, "noetl.status": state.status},
            cause=(live.trace_id, hashed_span_id(parent.execution_id, run)) if parent is not None else None,
        )
        self._export(span)

    def _on_scheduled(self, live: LiveExecution, body: of.StepScheduled, seq: int) -> None:
        self._open.setdefault(live.execution_id, {})[run_id(seq)] = body.step, self._now()

    def _on_run_ended(self, live: LiveExecution, body: Any, _: int) -> None:
        step, began = self._open.get(live.execution_id, {}).pop(body.run, ("", 0))
        if not step:
            return  # it ended a second time, after a retry that reopened only its arcs
        span = FinishedSpan(
            name=step,
            trace_id=live.trace_id,
            span_id=hashed_span_id(live.execution_id, body.run),
            parent_id=hashed_span_id(live.execution_id),
            began=began,
            ended=self._now(),
            error=body.error.message if isinstance(body, of.StepFailed) else "",
            attributes={"noetl.execution_id": live.execution_id, "noetl.run": body.run, "noetl.step": step},
        )
        live.after_commit(partial(self._export, span))

    def _on_task_processed(self, live: LiveExecution, body: of.TaskProcessed, _: int) -> None:
        meta, error = body.outcome.meta, body.outcome.error
        if not {"idempotency_key", "started_at", "finished_at"} <= meta.keys():
            return  # nothing was done: a wait that was over when it began
        span = FinishedSpan(
            name=body.task,
            trace_id=live.trace_id,
            span_id=attempt_span_id(meta["idempotency_key"], body.attempt),
            parent_id=hashed_span_id(live.execution_id, body.run),
            began=parse_iso(meta["started_at"]),
            ended=parse_iso(meta["finished_at"]),
            error=error.message if error is not None else "",
            attributes={
                "noetl.execution_id": live.execution_id,
                "noetl.run": body.run,
                "noetl.task": body.task,
                "noetl.iteration": body.iteration,
                "noetl.attempt": body.attempt,
                **({"error.type": error.kind} if error is not None else {}),
            },
        )
        live.after_commit(partial(self._export, span))

    def _export(self, finished: FinishedSpan) -> None:
        trace_id = int(w3c_trace_id(finished.trace_id), 16)
        # All spans of a trace, or none. By a hash: the bits of an execution's id that a sampler looks
        # at are not evenly spread.
        number = int(hashed_span_id(finished.trace_id) * 2, 16)
        if self._sampler.should_sample(None, number, "").decision is not Decision.RECORD_AND_SAMPLE:
            return
        context = None
        if finished.parent_id:
            context = set_span_in_context(NonRecordingSpan(_context_of(trace_id, finished.parent_id)))
        self._ids.trace_id, self._ids.span_id = trace_id, int(finished.span_id, 16)
        links = []
        if finished.cause is not None:
            links.append(Link(_context_of(int(w3c_trace_id(finished.cause[0]), 16), finished.cause[1])))
        span = self._tracer.start_span(
            finished.name,
            context,
            attributes=finished.attributes,
            links=links,
            start_time=finished.began * 1_000,
        )
        if finished.error:
            span.set_status(Status(StatusCode.ERROR, finished.error))
        span.end(finished.ended * 1_000)


class _GivenIds(IdGenerator):
    """The ids of the span that is made next."""

    trace_id = 0
    span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


def _context_of(trace_id: int, span_id: str) -> SpanContext:
    return SpanContext(trace_id, int(span_id, 16), is_remote=True, trace_flags=_SAMPLED)


def _resource() -> Resource:
    """What `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say, and ours where they say nothing."""
    known = Resource.create({SERVICE_VERSION: installed_release()})
    if str(known.attributes.get(SERVICE_NAME, "unknown")).startswith("unknown"):
        known = known.merge(Resource({SERVICE_NAME: "noetl"}))
    return known
