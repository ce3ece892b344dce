from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from noetl.dsl.kinds import Auth, Fault, Kind
from noetl.tools.inputs import Action, Inputs, check_action


class QuantumInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on a quantum job."""

    action: Annotated[
        Literal["submit", "status", "result", "cancel", "run"],
        Meta(description="What to do; `run` submits and waits for the result."),
    ]
    program: Annotated[str | None, Meta(description="OpenQASM 2 or 3 text.")] = None
    backend: Annotated[
        str | None, Meta(description="`aer` (default), `statevector`, or one that a plugin brings.")
    ] = None
    shots: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="Number of measurements.")] = None
    seed: Annotated[int | None, Meta(description="Seed of the simulator, for equal results.")] = None
    parameters: Annotated[
        dict[str, float] | None, Meta(description="Values of the program's input parameters.")
    ] = None
    observables: Annotated[
        list[str] | None, Meta(description="Pauli strings, such as `ZZ`, whose expectation values to give.")
    ] = None
    job_id: Annotated[str | None, Meta(description="Job that `submit` gave.")] = None
    auth: Annotated[Auth | None, Meta(description="Keychain entry for the provider of the backend.")] = None


_NEW_JOB = Action(needs=(("program",),), takes=("shots", "seed", "parameters", "observables"))
_OLD_JOB = Action(needs=(("job_id",),))

ACTIONS = {
    "submit": _NEW_JOB,
    "run": _NEW_JOB,
    "status": _OLD_JOB,
    "result": _OLD_JOB,
    "cancel": _OLD_JOB,
}


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """What the action needs."""
    return check_action(ACTIONS, inputs)


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
    result="`submit` gives `{job_id, backend}`, `status` `{state}`, `result` and `run` `{counts, …}`.",
    helpers={"quantum": "`job_id`, `backend` and `state` of the job."},
    example=EXAMPLE,
    inputs=QuantumInputs,
    spellings={"credential": "auth"},
    check=check,
    extra="quantum",
)
