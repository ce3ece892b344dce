"""Quantum programs on the simulators."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noetl.model.reference import ARROW_MEDIA_TYPE
from noetl.ports.tool import Call
from tests.quantum.quantum_calls import BELL, ROTATED, QuantumCalls, error_of


@pytest.fixture
def quantum(tmp_path: Path) -> QuantumCalls:
    return QuantumCalls(tmp_path)


def rows_of(quantum: QuantumCalls, reference: dict[str, object]) -> list[str]:
    async def read() -> list[str]:
        async with quantum.objects.local(reference) as path:
            bits: list[str] = pa.ipc.open_stream(path.read_bytes()).read_all()["bits"].to_pylist()
            return bits

    return asyncio.run(read())


def test_a_program_gives_counts_that_follow_from_its_seed(quantum: QuantumCalls) -> None:
    def run_call(seed: int, key: str) -> Call:
        return quantum.call("run", program=BELL, shots=500, seed=seed, key=key)

    first, again, other = quantum.run(run_call(7, "a"), run_call(7, "b"), run_call(8, "c"))
    assert set(first.result) == {"job_id", "backend", "counts", "shots", "seed", "qubits"}
    assert set(first.result["counts"]) == {"00", "11"}
    assert sum(first.result["counts"].values()) == first.result["shots"] == 500
    assert (first.result["backend"], first.result["seed"], first.result["qubits"]) == ("aer", 7, 2)
    assert again.result["counts"] == first.result["counts"] != other.result["counts"]
    assert again.result["job_id"] != first.result["job_id"]
    assert first.helpers["quantum"] == {
        "job_id": first.result["job_id"],
        "backend": "aer",
        "state": "done",
    }


def test_without_a_seed_the_task_has_one_of_its_own(quantum: QuantumCalls) -> None:
    def run_call(key: str) -> Call:
        return quantum.call("run", program=BELL, key=key)

    first, again, other = quantum.run(run_call("a"), run_call("a"), run_call("b"))
    assert first.result == again.result
    assert first.result["shots"] == 1024
    assert other.result["seed"] != first.result["seed"]


def test_parameters_are_bound_and_a_program_without_measurements_is_measured(quantum: QuantumCalls) -> None:
    (turned,) = quantum.run(quantum.call("run", program=ROTATED, parameters={"theta": 3.14159265}, shots=100))
    assert turned.result["counts"] == {"1": 100}


def test_programs_of_version_2_run(quantum: QuantumCalls) -> None:
    program = """\
    OPENQASM 2.0;
    include "qelib1.inc";
    qreg q[3]; creg a[1]; creg b[1];
    x q[2]; cswap q[2], q[0], q[1]; cx q[2], q[0];
    measure q[2] -> a[0]; measure q[0] -> b[0];
    """
    (outcome,) = quantum.run(quantum.call("run", program=program, shots=10))
    assert outcome.result["counts"] == {"1 1": 10}


def test_expectation_values_are_exact_or_estimated_from_shots(quantum: QuantumCalls) -> None:
    about: dict[str, Any] = {"program": BELL, "observables": ["ZZ", "-XX", "IZ"], "shots": 4096, "seed": 3}
    exact, estimated = quantum.run(
        quantum.call("run", backend="statevector", **about), quantum.call("run", **about)
    )
    assert exact.result["expectations"] == pytest.approx({"ZZ": 1, "-XX": -1, "IZ": 0})
    assert "deviations" not in exact.result
    result = estimated.result
    assert result["expectations"] == pytest.approx({"ZZ": 1, "-XX": -1, "IZ": 0}, abs=0.1)
    assert result["deviations"]["IZ"] == pytest.approx(1 / 64, rel=0.1)


def test_every_shot_is_kept_by_reference(quantum: QuantumCalls) -> None:
    with_shots, plain = quantum.run(
        quantum.call("run", program=BELL, shots=70_000, seed=1, memory=True),
        quantum.call("run", program=BELL, shots=70_000, seed=1),
    )
    reference = with_shots.result["memory"]
    assert (reference["media_type"], reference["length"], reference["columns"]) == (
        ARROW_MEDIA_TYPE,
        70_000,
        ["bits"],
    )
    rows = rows_of(quantum, reference)
    assert {bits: rows.count(bits) for bits in set(rows)} == with_shots.result["counts"]
    assert "memory" not in plain.result
    assert plain.result["counts"] == with_shots.result["counts"]


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        ({"program": "h q[0];"}, "input", "does not begin with `OPENQASM 3.0;`"),
        ({"program": "OPENQASM 4.0;"}, "input", "does not begin with `OPENQASM 3.0;`"),
        (
            {"program": 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit q;\nrx(0.5 q;'},
            "input",
            "the program is not valid: line 4, column 8: unexpected `q`",
        ),
        ({"program": "OPENQASM 3.0;\nqubit q\n"}, "input", "the program is not valid"),
        (
            {"program": "OPENQASM 3.0;\nqubit q;\nfoo q;"},
            "input",
            "line 3, column 1: gate 'foo' is not defined",
        ),
        (
            {"program": "OPENQASM 2.0;\nqreg q[1];\nfoo q[0];"},
            "input",
            "line 3, column 1: 'foo' is not defined",
        ),
        ({"program": 'OPENQASM 2.0;\ninclude "/etc/hosts";'}, "input", "unable to find '/etc/hosts'"),
        ({"program": ROTATED}, "input", "`parameters` has no value for `theta` of the program"),
        (
            {"program": ROTATED, "parameters": {"phi": 1}},
            "input",
            "the program has no parameter `phi`: it has `theta`",
        ),
        ({"program": BELL, "parameters": {"phi": 1}}, "input", "no parameter `phi`: it has none"),
        ({"program": BELL, "observables": ["Z"]}, "input", "the observable `Z` has 1 letters for 2 qubits"),
        (
            {"program": 'OPENQASM 3.0; include "stdgates.inc"; qubit[50] q; h q; t q; h q;'},
            "limit",
            "Insufficient memory",
        ),
        ({"program": BELL, "backend": "moon"}, "input", "no backend `moon`: there are `aer`, `statevector`"),
        ({"program": BELL, "shots": 0}, "input", "shots"),
        ({"program": BELL, "auth": {"token": "t"}}, "input", "a simulator asks for no `auth`"),
    ],
)
def test_what_cannot_run_says_why(
    inputs: dict[str, Any], kind: str, message: str, quantum: QuantumCalls
) -> None:
    (outcome,) = quantum.run(quantum.call("run", **inputs))
    error = error_of(outcome)
    assert error[0] == kind
    assert message in error[1]
