"""Tools that give what the attempt says, in whatever order they are asked, and remember what they did."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import replace

from noetl.dsl.document.kinds import Kinds
from noetl.events.bodies import TaskProcessed, TaskStarted
from noetl.kernel.state.run_state import RunState
from noetl.loader import installed_kinds
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.ports.tool import Call
from noetl.system import System
from noetl.tools.host.worker_tools import Tools

PURE_KIND = "noop"
EFFECT_KIND = "python"


class SimulatedAttempt(NamedTuple):
    """One attempt of one task in one execution."""

    execution: str
    run: str
    iteration: int
    task: str
    visit: int
    attempt: int


class SimulatedEffect(NamedTuple):
    """The outside world has seen this attempt, delivered for the first time or again, by an owner."""

    attempt: SimulatedAttempt
    redelivery: int
    key: str
    fence: int


def simulated_attempt_of(execution: str, started: TaskStarted) -> SimulatedAttempt:
    return SimulatedAttempt(
        execution, started.run, started.iteration, started.task, started.visit, started.attempt
    )


class SimulatedTools:
    """The outside world. `number` and the chance of an error decide, with attempt and inputs, what it gives.

    `on_effect` hears of each effect when it happens.
    """

    def __init__(self, number: int, errors: float, on_effect: Callable[[SimulatedEffect], None]) -> None:
        self.number = number
        self.errors = round(errors * 1_000)
        self.effects: list[SimulatedEffect] = []
        self._on_effect = on_effect

    def of_worker(self, system: System, duration: Callable[[], float]) -> Tools:
        """The tools of one worker process."""
        return Tools(_kinds(self, duration), system)

    def effect(self, call: Call) -> tuple[int, Outcome]:
        """The number of the effect, and what it gives."""
        effect, run = _effect_of(call)
        self.effects.append(effect)
        self._on_effect(effect)
        attempt = effect.attempt
        attempt_key = (run.step.name, attempt.iteration, attempt.task, attempt.visit, attempt.attempt)
        chance = crc32(f"{self.number}/{attempt_key}".encode())
        if chance % 1_000 < self.errors:
            outcome = failed(ErrorInfo(kind="sql", message=f"{attempt.task} broke", retryable=True))
        else:
            encoded_args = msgspec.json.encode(call.inputs.get("args", {}), order="sorted")
            value = crc32(encoded_args, chance) >> 4
            # A mapping is never equal to a number that policies ask for.
            outcome = succeeded({"a": [value % 7]} if value % 11 == 0 else value % 6)
        return len(self.effects) - 1, outcome


def _effect_of(call: Call) -> tuple[SimulatedEffect, RunState]:
    """A tool knows its run and iteration by its log alone."""
    assert isinstance(call.log, partial)
    run, iteration = call.log.args[:2]
    frame = run.frames[iteration]
    attempt = SimulatedAttempt(
        call.execution_id, run.id, iteration, call.task, frame.visits[call.task], call.attempt
    )
    fence = next(iter(run.leased_shards), run.fence)
    return SimulatedEffect(attempt, frame.losses, call.idempotency_key, fence), run


def effect_problems(
    effects: Iterable[SimulatedEffect], outcomes: Mapping[SimulatedAttempt, TaskProcessed]
) -> Iterator[str]:
    """No attempt had an effect twice, but as another delivery with the same key; keys are not shared."""
    seen: set[tuple[SimulatedAttempt, int]] = set()
    keys: dict[SimulatedAttempt, str] = {}
    visits: dict[str, tuple[Any, ...]] = {}
    for attempt, redelivery, key, _ in effects:
        if (attempt, redelivery) in seen:
            yield f"{attempt} ran twice as delivery {redelivery}"
        seen.add((attempt, redelivery))
        if keys.setdefault(attempt, key) != key:
            yield f"{attempt} ran again under another key"
        if visits.setdefault(key, attempt[:5]) != attempt[:5]:
            yield f"{attempt} has the key of {visits[key]}"
    for attempt, key in keys.items():
        next_attempt = attempt._replace(attempt=attempt.attempt + 1)
        processed = outcomes.get(attempt)
        if processed is None or processed.do != "retry" or next_attempt not in keys:
            continue
        # After an error the same work is tried again; after a success the next poll is work of its own.
        if (keys[next_attempt] == key) != (processed.outcome.status == "error"):
            yield f"{next_attempt} has the wrong key: the outcome before was {processed.outcome.status}"


class _SimulatedTool:
    """See `noetl.ports.tool.Tool`."""

    def __init__(self, world: SimulatedTools, duration: Callable[[], float]) -> None:
        self._world = world
        self._duration = duration

    async def run(self, call: Call) -> Outcome:
        number, outcome = self._world.effect(call)
        await asyncio.sleep(self._duration())
        return replace(outcome, meta={"effect": number})

    async def close(self) -> None:
        """Nothing is held."""


def _kinds(world: SimulatedTools, duration: Callable[[], float]) -> Kinds:
    tool: Any = replace(
        _effect_kind(), implementation=lambda: _SimulatedTool(world, duration), repeatable=None
    )
    return Kinds([tool, *(kind for kind in installed_kinds() if kind.name != EFFECT_KIND)])


@lru_cache
def _effect_kind() -> Any:
    return installed_kinds().get(EFFECT_KIND)
