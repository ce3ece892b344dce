"""Runs the kind `quantum`."""

import asyncio
import hashlib
import json
import shutil
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, get_args

import msgspec

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome, ToolError, failed, succeeded
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference, object_reference
from noetl.ports.results import ResultMissing
from noetl.ports.tool import Call
from noetl.tools.host.bounded_text import readable_beginning
from noetl.tools.host.tool_attempt import as_outcome, inputs_of
from noetl.tools.quantum.jobs import JobFiles, JobState, QuantumJob, QuantumJobs, SimulatorChildren
from noetl.tools.quantum.kind import NO_AUTH_FOR_SIMULATORS, SIMULATORS, QuantumInputs, backend_hint

for _driver in ("qiskit", "qiskit_aer", "qiskit_qasm3_import", "pyarrow"):
    # They are imported in child processes only, but without them there is no point in one.
    if find_spec(_driver) is None:
        raise ModuleNotFoundError(f"No module named '{_driver}'", name=_driver)

DESCRIPTION = "application/vnd.noetl.quantum-job+json"
"""The media type of what a job is made from."""

MAX_RESULT = 64 * 1024 * 1024
"""Bytes of a result without its shots."""

PATIENCE = 30.0
"""Seconds that a provider has to cancel a job that nobody waits for any more."""

STATES: frozenset[str] = frozenset(get_args(JobState))


class QuantumTool:
    """Jobs on simulators of the worker, and on backends that packages bring.

    A job of a simulator is kept as its description, under the hash of that: a worker that does not know it
    begins it again, and as the seed is part of the description, it comes to the same result.
    """

    def __init__(self) -> None:
        self._children = SimulatorChildren()
        self._jobs = QuantumJobs(self._children)
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        await self._jobs.close()
        if self._ending:
            await asyncio.wait(self._ending)
        await self._children.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs = inputs_of(call, QuantumInputs)
        backend = inputs.backend or "aer"
        if hint := backend_hint(backend):
            raise ToolError("input", f"there is no backend `{backend}`: {hint}")
        if inputs.auth is not None and backend in SIMULATORS:
            raise ToolError("input", NO_AUTH_FOR_SIMULATORS)
        operate = self._on_simulator if backend in SIMULATORS else self._at_provider
        try:
            async with asyncio.timeout(call.timeout):
                return await operate(call, inputs, backend)
        except TimeoutError:
            return failed(
                ErrorInfo(
                    kind="timeout",
                    message=f"`{inputs.action}` was not done within {call.timeout:g} s",
                    retryable=True,
                )
            )

    async def _on_simulator(self, call: Call, inputs: QuantumInputs, backend: str) -> Outcome:
        seconds = float(call.spec.get("job_timeout") or 3600)  # type: ignore[arg-type]  # checked by its type
        match inputs.action:
            case "submit" | "run":
                description = _describe_job(call, inputs, backend)
                reference = await _store_description(call, description)
                job_id = reference["key"].replace(f"{call.execution_id}/", "", 1)
                job = await self._jobs.start(call, job_id, description, seconds=seconds)
                if inputs.action == "run":
                    return await self._run_to_end(call, job)
                fields: dict[str, Json] = {"job_id": job.id, "backend": backend, "seed": description["seed"]}
                return succeeded({**fields, "job": reference}, quantum=_helper_of(job))
            case "status":
                return succeeded(
                    _job_state(call, job := await self._job(call, inputs, seconds)), quantum=_helper_of(job)
                )
            case "result":
                job = await self._job(call, inputs, seconds)
                await self._jobs.wait(job)
                return await _job_outcome(call, job)
            case "cancel":
                job = await self._job(call, inputs, seconds)
                await self._jobs.cancel(job)
                return succeeded(_job_state(call, job), quantum=_helper_of(job))

    async def _run_to_end(self, call: Call, job: QuantumJob) -> Outcome:
        """The result of a job that nobody else waits for: it ends with the call."""
        try:
            await self._jobs.wait(job)
        except asyncio.CancelledError:
            await self._jobs.cancel(job)
            raise
        return await _job_outcome(call, job)

    async def _job(self, call: Call, inputs: QuantumInputs, seconds: float) -> QuantumJob:
        """The job of this id, begun again if this worker does not know it."""
        job_id = str(inputs.job_id)
        job = self._jobs.find(job_id) or await self._jobs.start(
            call, job_id, await _read_description(call, job_id), seconds=seconds
        )
        backend = job.description["backend"]
        if inputs.backend is not None and inputs.backend != backend:
            raise ToolError("input", f"the job runs on `{backend}`, not on `{inputs.backend}`")
        return job

    async def _at_provider(self, call: Call, inputs: QuantumInputs, backend: str) -> Outcome:
        order: dict[str, Any] = {"backend": backend, "auth": inputs.auth, "job_id": inputs.job_id}
        helper: dict[str, Json] = {"job_id": inputs.job_id, "backend": backend}
        match inputs.action:
            case "submit" | "run":
                order["job"] = _describe_job(call, inputs, backend)
                order["job_id"] = helper["job_id"] = await self._ask(call, "submit", order)
                if inputs.action == "submit":
                    return succeeded(dict(helper), quantum=helper)
            case "status":
                state = await self._ask(call, "status", order)
                if state not in STATES:
                    raise ToolError(
                        "tool", f"the backend `{backend}` gave the state `{state}`, which is none"
                    )
                return succeeded({"state": state}, quantum={**helper, "state": state})
            case "cancel":
                await self._ask(call, "cancel", order)
                return succeeded({"state": "cancelled"}, quantum={**helper, "state": "cancelled"})
        files = JobFiles()
        try:
            await self._ask(call, "result", {**order, **await files.open(call.objects)})
            return succeeded(await _read_result(call, files, helper), quantum={**helper, "state": "done"})
        except asyncio.CancelledError:
            if inputs.action == "run":
                self._abandon(call, order)
            raise
        finally:
            await files.close()

    async def _ask(self, call: Call, do: str, order: dict[str, Any], seconds: float | None = None) -> Any:
        return await self._children.ask(
            call, {**order, "do": do}, seconds=seconds or call.timeout, log=call.log
        )

    def _abandon(self, call: Call, order: dict[str, Any]) -> None:
        """Cancels the job of a `run` that was cut short; the call does not wait for it."""

        async def cancel() -> None:
            with suppress(ToolError):
                await self._ask(call, "cancel", order, PATIENCE)

        task = asyncio.get_running_loop().create_task(cancel())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _describe_job(call: Call, inputs: QuantumInputs, backend: str) -> dict[str, Any]:
    """Everything that its result depends on. Without a seed, it gets one that follows from the task."""
    key = call.idempotency_key
    chosen = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
    return {
        "backend": backend,
        "program": inputs.program,
        "parameters": inputs.parameters or {},
        "shots": inputs.shots or 1024,
        "seed": chosen if inputs.seed is None else inputs.seed,
        "observables": inputs.observables or [],
        "memory": bool(inputs.memory),
        "key": key,
    }


async def _store_description(call: Call, description: dict[str, Any]) -> StoredReference:
    async with call.objects.draft() as draft:
        draft.path.write_bytes(msgspec.json.encode(description, order="sorted"))
        preview = readable_beginning(description["program"].encode(), 200, call.mask)
        return await draft.keep(DESCRIPTION, preview=preview)


async def _read_description(call: Call, job_id: str) -> dict[str, Any]:
    """What a job is made from: its id is the key of that, without the execution."""
    store, digest = job_id[:-64], job_id[-64:]
    key = f"{store}{call.execution_id}/{digest}"
    try:
        async with call.objects.local(object_reference(key, size=0, media_type=DESCRIPTION)) as path:
            description: dict[str, Any] = msgspec.json.decode(path.read_bytes())
            return description
    except (ResultMissing, ValueError):
        raise ToolError("not_found", f"no job `{job_id}` was submitted by this execution") from None


def _helper_of(job: QuantumJob) -> dict[str, Json]:
    return {"job_id": job.id, "backend": job.description["backend"], "state": job.state}


def _job_state(call: Call, job: QuantumJob) -> dict[str, Json]:
    _log_printed(call, job)
    if job.error is None:
        return {"state": job.state}
    return {"state": job.state, "error": job.error.as_value()}


def _log_printed(call: Call, job: QuantumJob) -> None:
    """Hands what the job printed to the log of the first task that asks."""
    while job.lines:
        call.log(job.lines.pop(0))


async def _job_outcome(call: Call, job: QuantumJob) -> Outcome:
    _log_printed(call, job)
    if job.error is not None:
        return failed(job.error, quantum=_helper_of(job))
    if job.state != "done":
        return failed(ErrorInfo(kind="cancelled", message="the job was cancelled"), quantum=_helper_of(job))
    fields: dict[str, Json] = {"job_id": job.id, "backend": job.description["backend"]}
    return succeeded(await _read_result(call, job.files, fields), quantum=_helper_of(job))


async def _read_result(call: Call, files: JobFiles, fields: dict[str, Json]) -> dict[str, Json]:
    """The result that a child wrote, its shots as a stored table."""
    if files.result.stat().st_size > MAX_RESULT:
        raise ToolError("limit", f"the result has more than {MAX_RESULT >> 20} MiB: ask for fewer shots")
    result: dict[str, Json] = {**fields, **json.loads(await asyncio.to_thread(files.result.read_bytes))}
    if files.shots.exists():
        async with call.objects.draft() as draft:
            await asyncio.to_thread(shutil.copyfile, files.shots, draft.path)
            result["memory"] = await draft.keep(
                ARROW_MEDIA_TYPE, type="list", length=_count_shots(result), columns=["bits"]
            )
    return result


def _count_shots(result: dict[str, Json]) -> int:
    """The shots that were counted."""
    return sum(msgspec.convert(result, _Counted).counts.values())


class _Counted(msgspec.Struct):
    counts: dict[str, int] = {}
