"""What must hold after all the faults. Effects are those that were seen from outside."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from bench.faults.fault_plan import SERVER

GRACE = 2.0
"""Seconds that a process may take to notice what happened to it, its children included."""
STEPS = ("first", "child", "fork", "left", "right", "join", "pause", "loop", "ninth", "last")
PARTS = {"loop": ("/a", "/b", "/c")}


class Effect(NamedTuple):
    """What a step left: when its attempt began and when it was done, by the clock of all processes."""

    began: float
    time: float
    worker: str
    tag: str
    key: str


class Hit(NamedTuple):
    """A fault as it came: from the signal until the process could work again, or was no more."""

    target: str
    action: str
    began: float
    ended: float


class RecordedExecution(NamedTuple):
    """What the log of an execution says. `number` is that of its request."""

    number: int
    status: str
    error: str
    outcomes: Mapping[str, int]
    """How often the outcome of each attempt was recorded."""
    steps: Mapping[str, int]
    """How many runs of each step were recorded as done."""


def tags_of(number: int) -> list[str]:
    """One for each effect that an execution must have."""
    return [f"{number}/{step}{part}" for step in STEPS for part in PARTS.get(step, ("",))]


def read_effects(text: str) -> list[Effect]:
    effects = []
    for line in text.splitlines():
        began, time, worker, tag, key = line.split(" ")
        effects.append(Effect(float(began), float(time), worker, tag, key))
    return effects


def by_tag(effects: Iterable[Effect]) -> dict[str, list[Effect]]:
    """In the order of their time."""
    tags: dict[str, list[Effect]] = {}
    for effect in sorted(effects, key=lambda effect: effect.time):
        tags.setdefault(effect.tag, []).append(effect)
    return tags


def broken_laws(
    started: int, executions: Sequence[RecordedExecution], effects: Iterable[Effect], hits: Sequence[Hit]
) -> list[str]:
    """Every breach, in words."""
    return [
        *_lost(started, executions),
        *_recorded_twice(executions),
        *_wrong_effects(started, by_tag(effects), hits),
    ]


def _lost(started: int, executions: Sequence[RecordedExecution]) -> Iterator[str]:
    counts = Counter(execution.number for execution in executions)
    for number in range(started):
        if counts[number] != 1:
            yield f"execution {number} is in the store {counts[number]} times"
    for execution in executions:
        if execution.status != "completed":
            yield f"execution {execution.number} is {execution.status}: {execution.error}"


def _recorded_twice(executions: Sequence[RecordedExecution]) -> Iterator[str]:
    for execution in executions:
        for attempt, count in execution.outcomes.items():
            if count != 1:
                yield f"execution {execution.number}: the outcome of {attempt} is recorded {count} times"
        for step in STEPS:
            if (count := execution.steps.get(step, 0)) != 1:
                yield f"execution {execution.number}: step {step} is recorded as done {count} times"


def _wrong_effects(started: int, tags: Mapping[str, list[Effect]], hits: Sequence[Hit]) -> Iterator[str]:
    expected = {tag for number in range(started) for tag in tags_of(number)}
    yield from (f"{tag} has no effect" for tag in sorted(expected - tags.keys()))
    yield from (f"{tag} should have no effect" for tag in sorted(tags.keys() - expected))
    owners: dict[str, str] = {}
    for tag, effects in tags.items():
        keys = {effect.key for effect in effects}
        if len(keys) > 1:
            yield f"{tag} was repeated with other keys: {', '.join(sorted(keys))}"
        for key in keys:
            if owners.setdefault(key, tag) != tag:
                yield f"{tag} has the key of {owners[key]}"
        if len(effects) > 1 and not is_explained(effects, hits):
            yield f"{tag} was repeated without a fault for each time: {_story(effects, hits)}"


def is_explained(effects: Sequence[Effect], hits: Sequence[Hit]) -> bool:
    """Whether a fault of its own hit the attempt of each effect but one: the one that was recorded."""
    last = effects[-1].time
    causes = [
        [number for number, hit in enumerate(hits) if _interrupts(hit, effect, last)] for effect in effects
    ]
    repeats = len(effects) - 1
    return any(
        _have_own_cause([causes[index] for index in chosen])
        for chosen in combinations(range(len(effects)), repeats)
    )


def _interrupts(hit: Hit, effect: Effect, last: float) -> bool:
    """Whether it hit who did this, or who records it, before it was repeated for the last time."""
    return hit.target in (effect.worker, SERVER) and hit.ended + GRACE >= effect.began and hit.began <= last


def _have_own_cause(causes: Sequence[Sequence[int]], taken: frozenset[int] = frozenset()) -> bool:
    if not causes:
        return True
    return any(_have_own_cause(causes[1:], taken | {cause}) for cause in causes[0] if cause not in taken)


def _story(effects: Sequence[Effect], hits: Sequence[Hit]) -> str:
    begin = effects[0].began - GRACE
    moments = [(effect.time, f"effect by {effect.worker}") for effect in effects]
    moments += [
        (hit.began, f"{hit.action} of {hit.target} for {hit.ended - hit.began:.1f} s")
        for hit in hits
        if begin - 60 <= hit.began <= effects[-1].time
    ]
    return "; ".join(f"{time - begin:.2f} s {text}" for time, text in sorted(moments))
