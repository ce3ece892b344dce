"""Tools that give what the attempt says, in whatever order they are asked, and remember what they did."""

from typing import NamedTuple
from zlib import crc32

import msgspec

from noetl.events.bodies import TaskStarted
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.state.run_state import RunState
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded

PURE_KIND = "noop"


class SimulatedAttempt(NamedTuple):
    """One attempt of one task in one execution."""

    execution: str
    run: str
    iteration: int
    task: str
    visit: int
    attempt: int


class SimulatedEffect(NamedTuple):
    """The outside world has seen this attempt, delivered for the first time or again."""

    attempt: SimulatedAttempt
    redelivery: int
    key: str


def simulated_attempt_of(execution: str, started: TaskStarted) -> SimulatedAttempt:
    return SimulatedAttempt(
        execution, started.run, started.iteration, started.task, started.visit, started.attempt
    )


class SimulatedTools:
    """`number` and the chance of an error decide, with the attempt and its inputs, what a task gives."""

    def __init__(self, number: int, errors: float) -> None:
        self.number = number
        self.errors = round(errors * 1_000)
        self.effects: list[SimulatedEffect] = []

    def run(self, execution: str, run: RunState, call: RunTask) -> Outcome:
        """What the call gives; unless it is pure, it is an effect."""
        if call.task.kind == PURE_KIND:
            return succeeded(call.inputs.get("args", call.prev))
        started = call.started
        self.effects.append(
            SimulatedEffect(
                simulated_attempt_of(execution, started), started.redelivery, call.idempotency_key
            )
        )
        attempt_key = (run.step.name, started.iteration, started.task, started.visit, started.attempt)
        chance = crc32(f"{self.number}/{attempt_key}".encode())
        if chance % 1_000 < self.errors:
            return failed(ErrorInfo(kind="sql", message=f"{started.task} broke", retryable=True))
        encoded_args = msgspec.json.encode(call.inputs.get("args", {}), order="sorted")
        value = crc32(encoded_args, chance) >> 4
        # A mapping is never equal to a number that policies ask for.
        return succeeded({"a": [value % 7]} if value % 11 == 0 else value % 6)
