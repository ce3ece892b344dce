"""Quantum programs on simulators. Takes seconds to import: only child processes do."""

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pyarrow as pa
from qiskit import qasm2, qasm3, transpile
from qiskit.circuit.controlflow import CONTROL_FLOW_OP_NAMES
from qiskit.circuit.library import get_standard_gate_name_mapping
from qiskit.exceptions import QiskitError
from qiskit.primitives import BackendEstimatorV2
from qiskit.quantum_info import SparsePauliOp
from qiskit_aer import AerSimulator
from qiskit_aer.jobs import utils as aer_jobs

from noetl.guest.quantum import QuantumRefused, qasm_version

BATCH = 1_000_000
"""Shots that are simulated at once. Each batch has a seed of its own, counted up from that of the job."""

_ROWS = 65_536
_NOISE = re.compile(r"^ERROR: +|\[Experiment \d+\] | circuit-\d+\b")
_POSITION = re.compile(r"^(?:<input>:)?(\d+),(\d+): ")


class Simulation:
    """One job on a simulator. Raises QuantumRefused if it cannot be."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job
        self._circuit = parse_circuit(job)
        for observable in job["observables"]:
            letters = len(observable.lstrip("+-"))
            if letters != (qubits := self._circuit.num_qubits):
                message = f"the observable `{observable}` has {letters} letters for {qubits} qubits"
                raise QuantumRefused("input", message)
        self._exact = job["backend"] == "statevector"
        # On one thread: with more of them, the shots of a seed depend on how many there are.
        method = "statevector" if self._exact else "automatic"
        self._simulator = AerSimulator(method=method, max_parallel_threads=1)
        self._counts: Counter[str] = Counter()

    def shots(self) -> Iterator[list[str]]:
        """Runs the program, which `result` needs; gives the shots in batches, empty if not kept."""
        measures = "measure" in self._circuit.count_ops()
        translated = self._translate(self._circuit if measures else self._circuit.measure_all(inplace=False))
        total, keep_shots = self._job["shots"], self._job["memory"]
        for number, first in enumerate(range(0, total, BATCH)):
            done = self._run(translated, min(BATCH, total - first), number, memory=keep_shots)
            self._counts.update(done.get_counts())
            yield done.get_memory() if keep_shots else []

    def result(self) -> dict[str, Any]:
        """The counts of the shots, and the expectation values of the observables."""
        job = self._job
        result: dict[str, Any] = {
            "counts": dict(sorted(self._counts.items())),
            "shots": job["shots"],
            "seed": job["seed"],
            "qubits": self._circuit.num_qubits,
        }
        if job["observables"]:
            translated = self._translate(self._circuit.remove_final_measurements(inplace=False))
            result |= self._exact_values(translated) if self._exact else self._estimate_values(translated)
        return result

    def _run(self, translated: Any, shots: int, number: int = 0, **options: Any) -> Any:
        seed = (self._job["seed"] + number) % 2**63
        try:
            done = self._simulator.run(translated, shots=shots, seed_simulator=seed, **options).result()
            done.data(0)  # raises what went wrong
        except QiskitError as error:
            raise _refusal(error) from None
        except MemoryError:
            raise QuantumRefused("limit", "the program needs more memory than there is") from None
        return done

    def _translate(self, circuit: Any) -> Any:
        """The same circuit in gates that the simulator knows. Its width is for the simulator to judge."""
        gates = {*get_standard_gate_name_mapping(), *CONTROL_FLOW_OP_NAMES}
        basis = sorted(gates & set(self._simulator.operation_names))
        return transpile(circuit, basis_gates=basis, optimization_level=0, seed_transpiler=0)

    def _exact_values(self, translated: Any) -> dict[str, Any]:
        observables = self._job["observables"]
        for observable in observables:
            translated.save_expectation_value(SparsePauliOp(observable), translated.qubits, label=observable)
        data = self._run(translated, self._job["shots"]).data(0)
        return {"expectations": {name: float(data[name].real) for name in observables}}

    def _estimate_values(self, translated: Any) -> dict[str, Any]:
        observables, seed = self._job["observables"], self._job["seed"] % 2**63
        options = {"default_precision": 1 / math.sqrt(self._job["shots"]), "seed_simulator": seed}
        estimator = BackendEstimatorV2(backend=self._simulator, options=options)
        try:
            data = (
                estimator.run([(translated, [SparsePauliOp(observable) for observable in observables])])
                .result()[0]
                .data
            )
        except QiskitError as error:
            raise _refusal(error) from None
        finally:
            for thread in set(threading.enumerate()) - {threading.current_thread()}:
                thread.join()  # its work is done, and it is about to end
        return {
            "expectations": dict(zip(observables, map(float, data.evs), strict=True)),
            "deviations": dict(zip(observables, map(float, data.stds), strict=True)),
        }


class _InlineExecutor(Executor):
    """Runs what it gets at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is raised again where the result is asked for
            done.set_exception(error)
        return done


# An internal of Aer. The thread of its own executor never ends, and a child with more threads than before
# is not used again.
aer_jobs.DEFAULT_EXECUTOR = _InlineExecutor()


def parse_circuit(job: Mapping[str, Any]) -> Any:
    """The program as a circuit, with its parameters bound. Raises QuantumRefused."""
    circuit = _parse_program(job["program"])
    values: dict[str, float] = job["parameters"]
    names = [parameter.name for parameter in circuit.parameters]
    if unknown := sorted(set(values) - set(names)):
        has = f"it has {', '.join(f'`{name}`' for name in names)}" if names else "it has none"
        raise QuantumRefused("input", f"the program has no parameter `{unknown[0]}`: {has}")
    if missing := [name for name in names if name not in values]:
        raise QuantumRefused("input", f"`parameters` has no value for `{missing[0]}` of the program")
    return circuit.assign_parameters(values)


def _parse_program(program: str) -> Any:
    try:
        match qasm_version(program):
            case 3:
                return qasm3.loads(program)
            case 2:
                instructions = qasm2.LEGACY_CUSTOM_INSTRUCTIONS
                return qasm2.loads(program, include_path=(), custom_instructions=instructions)
    except (QiskitError, ValueError, TypeError, RecursionError) as error:
        message = _POSITION.sub(_column_from_1, str(error).strip("'\""))
        raise QuantumRefused("input", f"the program is not valid: {message}") from None
    except Exception as error:  # by name: the parser of version 3 is imported when it is needed
        if type(error).__name__ != "QASM3ParsingError":
            raise
        raise QuantumRefused("input", f"the program is not valid: {_error_position(error)}") from None
    raise QuantumRefused("input", "the program does not begin with `OPENQASM 3.0;` or `OPENQASM 2.0;`")


def _error_position(error: Exception) -> str:
    """Where the parser of version 3 stopped, which is not in its message."""
    inner = error.__cause__.args[0] if error.__cause__ and error.__cause__.args else None
    token = getattr(inner, "offendingToken", None)
    if token is None:
        return "it cannot be parsed"
    return f"line {token.line}, column {token.column + 1}: unexpected `{token.text}`"


def _column_from_1(match: re.Match[str]) -> str:
    return f"line {match[1]}, column {int(match[2]) + 1}: "


def _refusal(error: QiskitError) -> QuantumRefused:
    message = _NOISE.sub("", str(error).strip("'\"").split(" ,  ERROR")[0].partition("\n")[0])
    kind = "limit" if "nsufficient memory" in message else "input"
    return QuantumRefused(kind, f"the simulator refused the program: {message}")


def write_shots_table(path: Path, batches: Iterator[list[str]]) -> None:
    """An Arrow stream with the column `bits`, a row for each shot."""
    schema = pa.schema([("bits", pa.string())])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            for first in range(0, len(batch), _ROWS):
                writer.write_batch(pa.record_batch([batch[first : first + _ROWS]], schema=schema))
