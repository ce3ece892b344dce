"""What child processes do for the kind `quantum`. What needs Qiskit is in `simulator`, for them alone."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

PROVIDERS = "noetl.quantum"
"""The group of entry points that bring backends: a name, and what makes a Provider from a credential."""

_VERSION = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*OPENQASM\s+(\d)", re.DOTALL)


class QuantumRefused(Exception):
    """The order cannot be carried out; `kind` is one of the kinds of errors."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Provider(Protocol):
    """A backend elsewhere, which keeps its jobs itself. Its methods run in a child process.

    `job` has `program`, `parameters`, `shots`, `seed`, `observables`, `memory` and `key`, which is the same
    when the same job is submitted again. States are queued, running, done, failed and cancelled. A result
    has `counts`, and `expectations` and `memory` (a list of bit strings) if these were asked for; `result`
    waits for it. Each may raise QuantumRefused.
    """

    def submit(self, job: Mapping[str, Any]) -> str: ...

    def status(self, job_id: str) -> str: ...

    def result(self, job_id: str) -> Mapping[str, Any]: ...

    def cancel(self, job_id: str) -> None: ...


def qasm_version(program: str) -> int | None:
    """The version of OpenQASM that the program says it is in: 2 or 3."""
    match = _VERSION.match(program)
    return int(match[1]) if match and match[1] in "23" else None


def perform(order: Mapping[str, Any]) -> dict[str, Any]:
    """Does what the tool asks for: `{value}`, or `{error: {kind, message}}`.

    A result is written to the files `result` and, if every shot is kept, `shots` of the order.
    """
    try:
        return {"value": _ACTIONS[order["do"]](order)}
    except QuantumRefused as refused:
        return {"error": {"kind": refused.kind, "message": str(refused)}}


def _simulate(order: Mapping[str, Any]) -> None:
    simulation = resolve_name("noetl.guest.simulator:Simulation")(order["job"])
    _write_shots(order, simulation.shots(), keep=order["job"]["memory"])
    _write(order, simulation.result())


def _provider(order: Mapping[str, Any]) -> Provider:
    from importlib.metadata import entry_points  # noqa: PLC0415 - every command knows this kind, and it is slow

    point = next(iter(entry_points(group=PROVIDERS, name=order["backend"])))
    provider: Provider = point.load()(order["auth"])
    return provider


def _result_of_provider(order: Mapping[str, Any]) -> None:
    result = dict(_provider(order).result(order["job_id"]))
    shots = result.pop("memory", None)
    if shots is not None:
        _write_shots(order, iter([shots]), keep=True)
    _write(order, result)


def _write(order: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    Path(order["result"]).write_text(json.dumps(result, allow_nan=False), "utf-8")


def _write_shots(order: Mapping[str, Any], batches: Iterator[list[str]], *, keep: bool) -> None:
    """A table with a row for each shot. The batches are drawn even if they are not kept."""
    if keep:
        resolve_name("noetl.guest.simulator:write_shots_table")(Path(order["shots"]), batches)
    else:
        for _ in batches:
            pass


_ACTIONS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "simulate": _simulate,
    "submit": lambda order: _provider(order).submit(order["job"]),
    "status": lambda order: _provider(order).status(order["job_id"]),
    "result": _result_of_provider,
    "cancel": lambda order: _provider(order).cancel(order["job_id"]),
}
