"""Quantum jobs between the tasks that submit, watch, read and cancel them."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from noetl.model.outcome import Outcome
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.process.process_tree import tree_pids
from noetl.tools.quantum.jobs import MAX_ENDED_JOBS
from noetl.tools.quantum.tool import QuantumTool
from tests.quantum.quantum_calls import BELL, ENDLESS, QuantumCalls, error_of, with_tool
from tests.tools.python_calls import ends


@pytest.fixture
def quantum(tmp_path: Path) -> QuantumCalls:
    return QuantumCalls(tmp_path)


def endless(quantum: QuantumCalls, action: str, **more: Any) -> Any:
    return quantum.call(action, program=ENDLESS, shots=1_000_000_000, **more)


def test_a_job_goes_on_between_tasks(quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        submitted = await tool.run(quantum.call("submit", program=BELL, shots=100, seed=5))
        job = submitted.result["job_id"]
        early = await tool.run(quantum.call("status", job_id=job))
        result = await tool.run(quantum.call("result", job_id=job, backend="aer"))
        late = await tool.run(quantum.call("status", job_id=job))
        return [submitted, early, result, late, await tool.run(quantum.call("result", job_id=job))]

    submitted, early, result, late, again = with_tool(work)
    assert (submitted.result["backend"], submitted.result["seed"]) == ("aer", 5)
    assert early.result["state"] in ("queued", "running")
    assert result.result["job_id"] == submitted.result["job_id"]
    assert sum(result.result["counts"].values()) == 100
    assert late.result == {"state": "done"}
    assert late.helpers["quantum"]["state"] == "done"
    assert again.result == result.result


def test_a_worker_that_does_not_know_a_job_comes_to_the_same_result(quantum: QuantumCalls) -> None:
    submitted, result = quantum.run(
        quantum.call("submit", program=BELL, shots=300), quantum.call("run", program=BELL, shots=300)
    )
    job = submitted.result["job_id"]
    assert result.result["job_id"] == job  # the same task, with the same key: the same job
    status, second = quantum.run(quantum.call("status", job_id=job), quantum.call("result", job_id=job))
    assert status.result["state"] in ("queued", "running")
    assert second.result == result.result


def test_a_job_is_found_again_in_a_store_with_a_name(quantum: QuantumCalls, tmp_path: Path) -> None:
    results = NamedResults(FileResults(tmp_path / "own"), {"cold": FileResults(tmp_path / "cold")})
    quantum.objects = ResultStoreObjects(results, "x", store="cold")
    submitted, result = quantum.run(quantum.call("submit", program=BELL), quantum.call("run", program=BELL))
    assert submitted.result["job_id"].startswith("cold:")
    (outcome,) = quantum.run(quantum.call("result", job_id=submitted.result["job_id"]))
    assert outcome.result == result.result


@pytest.mark.parametrize("begun", [False, True])
def test_a_job_is_cancelled_before_it_ends(begun: bool, quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        submitted = await tool.run(endless(quantum, "submit"))
        job = submitted.result["job_id"]
        while begun and (await tool.run(quantum.call("status", job_id=job))).result["state"] != "running":
            await asyncio.sleep(0)
        return [
            await tool.run(quantum.call("cancel", job_id=job)),
            await tool.run(quantum.call("result", job_id=job)),
            await tool.run(quantum.call("cancel", job_id=job)),
            await tool.run(quantum.call("run", program=BELL, shots=1)),
        ]

    cancelled, result, again, other = with_tool(work)
    assert cancelled.result == again.result == {"state": "cancelled"}
    assert error_of(result) == ("cancelled", "the job was cancelled")
    assert other.status == "ok"


def test_waiting_for_a_job_is_bounded_and_does_it_no_harm(quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        job = (await tool.run(endless(quantum, "submit"))).result["job_id"]
        late = await tool.run(quantum.call("result", job_id=job, timeout=0.1))
        return [late, await tool.run(quantum.call("status", job_id=job))]

    late, status = with_tool(work)
    assert error_of(late) == ("timeout", "`result` was not done within 0.1 s")
    assert late.error is not None
    assert late.error.retryable
    assert status.result["state"] in ("queued", "running")


def test_a_job_that_takes_too_long_fails(quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        job = (await tool.run(endless(quantum, "submit", spec={"job_timeout": 0.1}))).result["job_id"]
        return [
            await tool.run(quantum.call("result", job_id=job)),
            await tool.run(quantum.call("status", job_id=job)),
        ]

    result, status = with_tool(work)
    assert error_of(result) == ("timeout", "the job was not done within 0.1 s")
    assert (status.result["state"], status.result["error"]["kind"]) == ("failed", "timeout")


def test_a_run_that_is_cut_short_ends_its_job(quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        late = await tool.run(endless(quantum, "run", timeout=0.5))
        children = tree_pids(os.getpid())[1:]
        assert all([await asyncio.to_thread(ends, pid) for pid in children])
        going = asyncio.create_task(tool.run(endless(quantum, "run", key="other")))
        await asyncio.wait([going], timeout=0.1)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        return [late, await tool.run(quantum.call("run", program=BELL, shots=1))]

    late, other = with_tool(work)
    assert error_of(late) == ("timeout", "`run` was not done within 0.5 s")
    assert other.status == "ok"


def test_closing_ends_every_job_and_leaves_nothing(
    quantum: QuantumCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    quantum.run(
        quantum.call("run", program=BELL, memory=True),
        *(endless(quantum, "submit", key=key) for key in "abcd"),
    )
    assert list((tmp_path / "temporary").iterdir()) == []
    assert tree_pids(os.getpid())[1:] == []


@pytest.mark.parametrize("action", ["status", "result", "cancel"])
def test_a_job_that_nobody_submitted_is_not_found(action: str, quantum: QuantumCalls) -> None:
    outcomes = quantum.run(
        quantum.call(action, job_id="0" * 64),
        quantum.call(action, job_id="../../etc/hosts"),
        quantum.call(action, job_id=""),
    )
    for outcome in outcomes:
        assert error_of(outcome)[0] == "not_found"


def test_a_job_is_asked_for_on_its_own_backend(quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        job = (await tool.run(quantum.call("submit", program=BELL))).result["job_id"]
        return [await tool.run(quantum.call("status", job_id=job, backend="statevector"))]

    (outcome,) = with_tool(work)
    assert error_of(outcome) == ("input", "the job runs on `aer`, not on `statevector`")


def test_old_jobs_are_forgotten_and_still_known(quantum: QuantumCalls) -> None:
    async def work(tool: QuantumTool) -> list[Outcome]:
        jobs = [
            (await tool.run(quantum.call("submit", program="OPENQASM 3.0; nonsense", key=str(number)))).result
            for number in range(MAX_ENDED_JOBS + 1)
        ]
        for job in jobs:
            await tool.run(quantum.call("result", job_id=job["job_id"]))
        more = await tool.run(quantum.call("submit", program=BELL))
        assert len(tool._jobs._jobs) == MAX_ENDED_JOBS
        first = await tool.run(quantum.call("result", job_id=jobs[0]["job_id"]))
        return [more, first]

    more, first = with_tool(work)
    assert more.status == "ok"
    assert error_of(first)[0] == "input"


def test_nothing_of_a_job_lies_where_nobody_would_sweep_it(
    quantum: QuantumCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is killed removes nothing, but the store of the results sweeps what is half-written there."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    store = FileResults(tmp_path / "results")

    async def work(tool: QuantumTool) -> list[Outcome]:
        first = await tool.run(quantum.call("run", program=BELL, shots=50, memory=True))
        assert list(temporary.iterdir()) == []
        assert await store.sweep(2**40) == 2
        # Its result is gone: the job is done again when somebody asks for it.
        return [first, await tool.run(quantum.call("result", job_id=first.result["job_id"]))]

    first, again = with_tool(work)
    assert again.result == first.result
    assert list((tmp_path / "results").glob("*/.*")) == []
