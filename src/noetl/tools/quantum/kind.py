import re
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Auth, Fault, Kind, Seconds, TaskSpec
from noetl.guest.quantum import PROVIDERS, qasm_version
from noetl.model.json import Json
from noetl.tools.host.input_rules import Action, Inputs, check_action, literal_text

SIMULATORS = ("aer", "statevector")
NO_AUTH_FOR_SIMULATORS = "a simulator asks for no `auth`"

_PAULI = re.compile(r"[+-]?[IXYZ]+")


class QuantumInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on a quantum job."""

    action: Annotated[
        Literal["submit", "status", "result", "cancel", "run"],
        Meta(description="What to do; `run` submits and waits for the result."),
    ]
    program: Annotated[str | None, Meta(description="OpenQASM 2 or 3 text.")] = None
    backend: Annotated[
        str | None, Meta(description="`aer` (default), `statevector`, or one that a package brings.")
    ] = None
    shots: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Number of measurements. Default 1024.")
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Seed of the simulator, for equal results. Default: one for this task, recorded."),
    ] = None
    parameters: Annotated[
        dict[str, float] | None, Meta(description="Values of the program's input parameters.")
    ] = None
    observables: Annotated[
        list[str] | None, Meta(description="Pauli strings, such as `ZZ`, whose expectation values to give.")
    ] = None
    memory: Annotated[
        bool | None, Meta(description="Whether to keep every single shot, too, by reference. Default false.")
    ] = None
    job_id: Annotated[str | None, Meta(description="Job that `submit` gave.")] = None
    auth: Annotated[Auth | None, Meta(description="Keychain entry for the provider of the backend.")] = None


class QuantumSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a quantum job."""

    job_timeout: Annotated[
        Seconds | None, Meta(description="Seconds a job may run on a simulator of the worker. Default 3600.")
    ] = None


_NEW_JOB = Action(needs=(("program",),), takes=("shots", "seed", "parameters", "observables", "memory"))
_OLD_JOB = Action(needs=(("job_id",),))

ACTIONS = {
    "submit": _NEW_JOB,
    "run": _NEW_JOB,
    "status": _OLD_JOB,
    "result": _OLD_JOB,
    "cancel": _OLD_JOB,
}


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """What the action needs, in a language and with observables and a backend that exist."""
    yield from check_action(ACTIONS, inputs)
    program = literal_text(inputs.get("program"))
    if program is not None and qasm_version(program) is None:
        hint = "begin it with `OPENQASM 3.0;` or `OPENQASM 2.0;`"
        yield Fault("the program does not say which OpenQASM it is", key="program", hint=hint)
    yield from _check_observables(inputs.get("observables"))
    backend = literal_text(inputs.get("backend"))
    if backend is not None and (hint := backend_hint(backend)):
        yield Fault(f"there is no backend `{backend}`", key="backend", hint=hint)
    if inputs.get("auth") is not None and (inputs.get("backend") is None or backend in SIMULATORS):
        yield Fault(
            NO_AUTH_FOR_SIMULATORS, key="auth", hint="name the `backend` that it is for, or leave it out"
        )


def _check_observables(observables: Json) -> Iterator[Fault]:
    for observable in observables if isinstance(observables, list) else ():
        text = literal_text(observable)
        if text is not None and not _PAULI.fullmatch(text):
            hint = "one of the letters I, X, Y and Z for each qubit, such as `ZZI`"
            yield Fault(f"`{text}` is not a Pauli string", key="observables", hint=hint)


def backend_hint(name: str) -> str:
    """Which backends there are, if there is none of this name."""
    if name in SIMULATORS:
        return ""
    from importlib.metadata import entry_points  # noqa: PLC0415 - every command knows all kinds, and this is slow

    names = (*SIMULATORS, *(point.name for point in entry_points(group=PROVIDERS)))
    return "" if name in names else f"there are {', '.join(f'`{backend}`' for backend in names)}"


EXAMPLE = """\
name: bell
kind: quantum
action: run
shots: 1000
seed: 7
program: |
  OPENQASM 3.0;
  include "stdgates.inc";
  qubit[2] q;
  bit[2] c;
  h q[0];
  cx q[0], q[1];
  c = measure q;
"""

KIND = Kind(
    name="quantum",
    summary="Submits, watches and reads quantum jobs, or runs one on a simulator.",
    result="`submit` gives `{job_id, backend, …}`, `status` and `cancel` `{state}`, others `{counts, …}`.",
    helpers={"quantum": "`job_id` and `backend` of the job, and its `state` if it is known."},
    example=EXAMPLE,
    inputs=QuantumInputs,
    spec=QuantumSpec,
    defaults={"job_timeout": 3600},
    spellings={"credential": "auth"},
    check=check,
    reads=frozenset(),
    extra="quantum",
    implementation="noetl.tools.quantum.tool:QuantumTool",
)
