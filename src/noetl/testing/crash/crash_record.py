"""What a store says happened: executions by the places they were started at, their ends, their attempts."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.effects import effects_of_row
from noetl.engine.history.lookup import decode_rows
from noetl.events.bodies import (
    ExecutionForked,
    PlaybookExecutionRequested,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
)
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.kernel import ExecutionState
from noetl.kernel.state.invariants import violations
from noetl.kernel.state.replay import replay
from noetl.ports.store import ExecutionQuery, ExecutionRecord, InboxMessage, Inconsistency
from noetl.stores.sqlite import SqliteStore
from noetl.testing.crash.effect_tool import EFFECT_KIND, Effect, read_effects
from noetl.testing.crash.process_life import SurvivingFiles

_MANY = 100_000


class RecordedExecution(NamedTuple):
    """One execution. `name` says where it came from, and is the same in every world."""

    name: str
    state: ExecutionState
    events: list[Event]


class AttemptKey(NamedTuple):
    """One attempt of one task."""

    execution_id: str
    run: str
    iteration: int
    task: str
    visit: int
    attempt: int


class RecordedAttempt:
    """What the log says about an attempt of the counted tool."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.deliveries: list[int] = []
        self.outcomes: list[str] = []


class CrashRecord:
    """Everything that can be compared, read from the files of a world that nobody runs."""

    def __init__(self, world: SurvivingFiles) -> None:
        self._folder = str(world.folder)
        found = asyncio.run(_read(world))
        self.inconsistencies: list[Inconsistency] = found.wrong
        self.letters: list[InboxMessage] = found.letters
        self.histories: dict[str, RecordedExecution] = found.histories
        self.effects: list[Effect] = read_effects(world.effects)

    def ends(self) -> dict[str, Any]:
        """How each execution ended, in words that mean the same in every world."""
        return {one.name: self._plain(_end(one.state)) for one in self.histories.values()}

    def effects_done(self) -> Counter[tuple[str, str, int]]:
        """What was done to the world, what was done again by a redelivered attempt counted once."""
        names = {execution_id: one.name for execution_id, one in self.histories.items()}
        once = {(one.execution_id, one.key, one.attempt, one.label) for one in self.effects}
        return Counter((names.get(at, at), label, attempt) for at, _, attempt, label in once)

    def attempts(self) -> dict[AttemptKey, RecordedAttempt]:
        found: dict[AttemptKey, RecordedAttempt] = {}
        for one in self.histories.values():
            for place, key, body in _deliveries(one):
                attempt = found.setdefault(place, RecordedAttempt(key))
                if isinstance(body, TaskStarted):
                    attempt.deliveries.append(body.redelivery)
                else:
                    attempt.outcomes.append(body.outcome.error.kind if body.outcome.error else "ok")
        return found

    def effect_counts(self) -> Counter[tuple[str, str, int]]:
        """How often each attempt had its effect."""
        return Counter((one.execution_id, one.key, one.attempt) for one in self.effects if one.key)

    def unkeyed_effects(self) -> Counter[str]:
        """How often each effect was had whose tool does not tell its key: such a task gives its label."""
        return Counter(one.label for one in self.effects if not one.key)

    def recorded_texts(self) -> set[str]:
        """The texts that recorded tasks gave."""
        bodies = [event.body for one in self.histories.values() for event in one.events]
        ends = [body.outcome.result for body in bodies if isinstance(body, TaskProcessed)]
        return {result for result in ends if isinstance(result, str)}

    def problems(self) -> list[str]:
        """What must never be: a store that disagrees with its rows, a state that cannot be."""
        found = [f"{one.execution_id}: {one.message}" for one in self.inconsistencies]
        for one in self.histories.values():
            found += [f"{one.name}: {text}" for text in violations(one.state)]
        return found

    def _plain(self, value: Any) -> Any:
        text = msgspec.json.encode(value).decode().replace(self._folder, "<here>")
        for execution_id, one in self.histories.items():
            text = text.replace(execution_id, f"<{one.name}>")
        return msgspec.json.decode(text)


def _end(state: ExecutionState) -> dict[str, Any]:
    return {
        "status": state.status,
        "result": state.result,
        "error": [state.error.kind, state.error.message] if state.error is not None else None,
        "ctx": state.ctx.values,
        "workload": state.inputs.workload,
        "steps": {name: [one.status, one.runs] for name, one in sorted(state.summaries.items())},
        "discarded": sorted([one["step"], one["reason"]] for one in state.discarded),
    }


def _deliveries(one: RecordedExecution) -> Iterator[tuple[AttemptKey, str, TaskStarted | TaskProcessed]]:
    """What this execution itself began of the counted kind, and how it ended."""
    steps = _steps(one.events)
    copied = max((event.seq for event in one.events if isinstance(event.body, ExecutionForked)), default=0)
    polls: Counter[tuple[str, int, str, int]] = Counter()
    for event in one.events:
        body = event.body
        if not isinstance(body, TaskStarted | TaskProcessed):
            continue
        step = one.state.plan.by_name[steps[body.run]].step
        kind = next(task.kind for task in step.tasks if task.label == body.task)
        visit = (body.run, body.iteration, body.task, body.visit)
        if kind == EFFECT_KIND and event.seq > copied:
            place = AttemptKey(one.state.execution_id, *visit, body.attempt)
            yield place, expected_idempotency_key(place, polls[visit]), body
        if isinstance(body, TaskProcessed) and body.do == "retry" and body.outcome.status == "ok":
            polls[visit] += 1


def expected_idempotency_key(place: AttemptKey, polls: int) -> str:
    """The idempotency key of an attempt, from what is promised about it (semantics §9)."""
    words = [place.execution_id, place.run, str(place.iteration), place.task, str(place.visit)]
    if polls:
        words.append(f"poll {polls}")
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:32]


class _Found(NamedTuple):
    histories: dict[str, RecordedExecution]
    wrong: list[Inconsistency]
    letters: list[InboxMessage]


async def _read(world: SurvivingFiles) -> _Found:
    store = SqliteStore.at(world.home.store)
    playbooks = Playbooks(allow_kinds=[EFFECT_KIND])
    try:
        page = await store.executions(ExecutionQuery(limit=_MANY))
        histories: dict[str, RecordedExecution] = {}
        roots = 0
        for record in sorted(page.executions, key=lambda one: bool(one.parent)):
            rows = await store.read(record.execution_id, limit=_MANY)
            events = decode_rows(record.execution_id, rows)
            document = await playbooks.read_stored(store, record.playbook)
            state = replay(document.plan, record.execution_id, events)
            histories[record.execution_id] = RecordedExecution("", state, events)
        for record in reversed(page.executions):
            roots += not record.parent
            one = histories[record.execution_id]
            histories[record.execution_id] = one._replace(name=_name(record, histories, f"root {roots}"))
        letters = await store.inbox(list(histories))
        return _Found(histories, await store.check(effects_of_row), letters)
    finally:
        await store.close()


def _name(record: ExecutionRecord, histories: dict[str, RecordedExecution], root: str) -> str:
    """Parents begin before their children, so they have their names already."""
    request = histories[record.execution_id].events[0].body
    if not isinstance(request, PlaybookExecutionRequested) or request.parent is None:
        return root
    above = histories[request.parent.execution_id]
    run, _, place = request.parent.task_run_id.partition("/")
    steps = _steps(above.events)
    alike = [one for one, step in steps.items() if step == steps[run]]
    return f"{above.name} > {steps[run]} {alike.index(run)}/{place}"


def _steps(events: list[Event]) -> dict[str, str]:
    """The steps of the runs."""
    found = [(event.seq, event.body) for event in events]
    return {run_id(seq): body.step for seq, body in found if isinstance(body, StepScheduled)}
