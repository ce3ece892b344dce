"""Backends that packages bring keep their jobs themselves."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from noetl.model.outcome import Outcome
from noetl.tools.quantum.tool import QuantumTool
from tests.quantum.quantum_calls import BELL, QuantumCalls, error_of, with_tool

MODULE = '''\
import json
import time
from pathlib import Path

from noetl.guest.quantum import QuantumRefused
from noetl.guest.simulator import parse_circuit


class Cloud:
    """Keeps its jobs in the folder that the credential names."""

    def __init__(self, auth):
        if not auth or "folder" not in auth:
            raise QuantumRefused("credential", "the cloud needs a folder")
        self.folder = Path(auth["folder"])

    def submit(self, job):
        assert parse_circuit(job).num_qubits == 2
        path = self.folder / f"job-{job['key']}"
        path.write_text(json.dumps(dict(job)))
        return path.name

    def status(self, job_id):
        return "done" if (self.folder / job_id).exists() else "lost"

    def result(self, job_id):
        if (self.folder / "busy").exists():
            (self.folder / "busy").write_text("")  # a pipe: somebody waits for this
            time.sleep(1000)
        job = json.loads((self.folder / job_id).read_text())
        return {"counts": {"00": job["shots"]}, **({"memory": ["00"] * job["shots"]} if job["memory"] else {})}

    def cancel(self, job_id):
        (self.folder / job_id).unlink()
'''


@pytest.fixture
def quantum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuantumCalls:
    package = tmp_path / "package"
    info = package / "cloud-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "cloud.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cloud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noetl.quantum]\ncloud = cloud:Cloud\n")
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.setenv("PYTHONPATH", str(package))
    return QuantumCalls(tmp_path)


def test_a_job_lives_with_its_provider(quantum: QuantumCalls, tmp_path: Path) -> None:
    cloud: dict[str, Any] = {"backend": "cloud", "auth": {"folder": str(tmp_path)}}
    submitted, again = quantum.run(
        *[quantum.call("submit", program=BELL, shots=5, memory=True, **cloud)] * 2,
    )
    assert submitted.result == again.result == {"job_id": "job-k", "backend": "cloud"}
    # Another worker, which has never heard of the job.
    status, result, cancelled, lost = quantum.run(
        quantum.call("status", job_id="job-k", **cloud),
        quantum.call("result", job_id="job-k", **cloud),
        quantum.call("cancel", job_id="job-k", **cloud),
        quantum.call("status", job_id="job-k", **cloud),
    )
    assert status.result == {"state": "done"}
    assert result.result["counts"] == {"00": 5}
    assert (result.result["job_id"], result.result["memory"]["length"]) == ("job-k", 5)
    assert cancelled.result == {"state": "cancelled"}
    assert error_of(lost) == ("tool", "the backend `cloud` gave the state `lost`, which is none")


def test_a_run_submits_and_waits(quantum: QuantumCalls, tmp_path: Path) -> None:
    (done,) = quantum.run(
        quantum.call("run", program=BELL, backend="cloud", shots=3, auth={"folder": str(tmp_path)})
    )
    assert done.result == {"job_id": "job-k", "backend": "cloud", "counts": {"00": 3}}


def test_what_a_provider_refuses_or_breaks_is_told(quantum: QuantumCalls, tmp_path: Path) -> None:
    refused, broken = quantum.run(
        quantum.call("status", job_id="j", backend="cloud"),
        quantum.call("cancel", job_id="j", backend="cloud", auth={"folder": str(tmp_path)}),
    )
    assert error_of(refused) == ("credential", "the cloud needs a folder")
    kind, message = error_of(broken)
    assert kind == "tool"
    assert "FileNotFoundError" in message


def test_a_run_that_is_cancelled_cancels_the_job_of_the_provider(
    quantum: QuantumCalls, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "busy")

    async def work(tool: QuantumTool) -> list[Outcome]:
        run_call = quantum.call("run", program=BELL, backend="cloud", auth={"folder": str(tmp_path)})
        going = asyncio.create_task(tool.run(run_call))
        await asyncio.to_thread((tmp_path / "busy").read_text)
        assert (tmp_path / "job-k").exists()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        return []

    with_tool(work)
    assert not (tmp_path / "job-k").exists()
