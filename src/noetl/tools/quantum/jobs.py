"""The jobs that a worker runs on simulators of its own, in warm child processes."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import structs

from noetl.model.outcome import ErrorInfo, Outcome, ToolError, succeeded
from noetl.ports.results import ExecutionObjects, ResultError
from noetl.ports.tool import Call
from noetl.tools.host.bounded_text import MAX_MESSAGE, shorten_middle
from noetl.tools.host.tool_attempt import as_outcome, error_outcome
from noetl.tools.process.code_runner import CodeRunner

JobState: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

MAX_ENDED_JOBS = 256
"""Jobs whose results are kept; those that ended first are forgotten first."""

_CODE = "from noetl.guest.quantum import perform\nresult = perform(order)"


class JobFiles:
    """Where a child writes a result, and every shot if they are kept: drafts, swept after a crash."""

    def __init__(self) -> None:
        self._drafts = AsyncExitStack()
        self.result = self.shots = Path()

    async def open(self, objects: ExecutionObjects) -> dict[str, str]:
        """Makes room for both; what an order says of them. Raises ResultError."""
        drafts = [await self._drafts.enter_async_context(objects.draft()) for _ in range(2)]
        self.result, self.shots = (draft.path.absolute() for draft in drafts)
        return {"result": str(self.result), "shots": str(self.shots)}

    async def close(self) -> None:
        """Removes them. A second call does nothing."""
        await self._drafts.aclose()


class QuantumJob:
    """One job. `description` is everything that its result depends on; `lines` are what it printed."""

    def __init__(self, job_id: str, description: Mapping[str, Any]) -> None:
        self.id = job_id
        self.description = description
        self.files = JobFiles()
        self.state: JobState = "queued"
        self.error: ErrorInfo | None = None
        self.lines: list[str] = []
        self.work: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    @property
    def lost(self) -> bool:
        """Whether its result is gone: nobody asked for it within a day, and it was swept."""
        return self.state == "done" and not self.files.result.exists()


class SimulatorChildren:
    """The child processes, which know Qiskit. `size` is how many may simulate at the same time."""

    def __init__(self) -> None:
        self.size = max(2, min(8, os.cpu_count() or 1))
        # Twice as many as work on jobs, so that questions to providers need not wait for these.
        self._children = CodeRunner(size=2 * self.size, idle=300.0)

    async def ask(
        self, call: Call, order: dict[str, Any], *, seconds: float, log: Callable[[str], None]
    ) -> Any:
        """What comes of an order (`guest.quantum`). Raises ToolError, whatever went wrong."""
        outcome = await as_outcome(self._run(structs.replace(call, spec={}, log=log), order, seconds))
        if (error := outcome.error) is not None:
            raise ToolError(error.kind, error.message, retryable=error.retryable)
        if "error" in outcome.result:
            raise ToolError(**outcome.result["error"])
        return outcome.result["value"]

    async def _run(self, call: Call, order: dict[str, Any], seconds: float) -> Outcome:
        try:
            async with asyncio.timeout(seconds):
                request = await self._children.request(call, _CODE, {"order": order}, name="<code>")
                answer = await self._children.run(call, request)
        except TimeoutError:
            return error_outcome("timeout", f"the job was not done within {seconds:g} s", retryable=True)
        except ResultError as error:
            return error_outcome("not_found", f"a stored value cannot be read or written: {error}")
        if (failure := answer.failure) is not None:
            message = shorten_middle(failure.message, MAX_MESSAGE, call.mask)
            # An exception there is a fault of ours or of the provider's, for users wrote no code.
            return error_outcome("tool" if failure.kind == "python" else failure.kind, message)
        return succeeded(answer.result)

    async def close(self) -> None:
        await self._children.close()


class QuantumJobs:
    """Every job of this worker by its id."""

    def __init__(self, children: SimulatorChildren) -> None:
        self._children = children
        self._slots = asyncio.Semaphore(children.size)
        self._jobs: dict[str, QuantumJob] = {}

    def find(self, job_id: str) -> QuantumJob | None:
        job = self._jobs.get(job_id)
        return None if job is None or job.lost else job

    async def start(
        self, call: Call, job_id: str, description: Mapping[str, Any], *, seconds: float
    ) -> QuantumJob:
        """The job, begun unless it is known and has not failed. It goes on when the call is over."""
        existing = self.find(job_id)
        if existing is not None and existing.state not in ("failed", "cancelled"):
            return existing
        job = self._jobs[job_id] = QuantumJob(job_id, description)
        job.work = asyncio.get_running_loop().create_task(self._run(call, job, seconds))
        await self._forget_oldest()
        return job

    async def wait(self, job: QuantumJob) -> None:
        """Waits for the end of a job. Being cut short does nothing to it."""
        if job.work is not None:  # `wait` does not cancel what it waits for, and raises nothing of it
            await asyncio.wait([job.work])

    async def cancel(self, job: QuantumJob) -> None:
        """Ends a job that has not ended."""
        if job.work is not None:
            job.work.cancel()
            await asyncio.wait([job.work])
        if not job.ended:  # it had no time to begin
            job.state = "cancelled"

    async def close(self) -> None:
        for job in list(self._jobs.values()):
            await self.cancel(job)
            await job.files.close()

    async def _run(self, call: Call, job: QuantumJob, seconds: float) -> None:
        try:
            async with self._slots:
                job.state = "running"
                order = {"do": "simulate", "job": job.description, **await job.files.open(call.objects)}
                await self._children.ask(call, order, seconds=seconds, log=job.lines.append)
            job.state = "done"
        except ToolError as error:
            job.error, job.state = error.info, "failed"
        except ResultError as error:
            job.error, job.state = ErrorInfo(kind="connection", message=str(error), retryable=True), "failed"
        except asyncio.CancelledError:
            job.state = "cancelled"
        finally:
            if job.state != "done":
                await job.files.close()

    async def _forget_oldest(self) -> None:
        ended_jobs = [job for job in self._jobs.values() if job.ended]
        for job in ended_jobs[: max(0, len(ended_jobs) + 1 - MAX_ENDED_JOBS)]:
            del self._jobs[job.id]
            await job.files.close()
