"""What a store says happened: executions by where they were started, their ends, their attempts."""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

import msgspec

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
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.invariants import violations
from noetl.kernel.state.replay import replay
from noetl.ports.results import ResultError
from noetl.ports.store import ExecutionQuery, ExecutionRecord, InboxMessage, Inconsistency
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.crash.effect_tool import EFFECT_KIND, Effect, read_effects
from noetl.testing.crash.process_life import CrashPlaybooks, SurvivingFiles

_ALL = 100_000
_NAMED_KEY = re.compile(rb'"key":"([^"/]+/[0-9a-f]{64})')


class RecordedExecution(NamedTuple):
    """One execution. `name` says where it came from, and is the same whichever process ran it."""

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
    """Everything that can be compared, read from files that no process uses."""

    def __init__(self, files: SurvivingFiles) -> None:
        self._folder = str(files.folder)
        contents = asyncio.run(_read_store(files))
        self.inconsistencies: list[Inconsistency] = contents.inconsistencies
        self.messages: list[InboxMessage] = contents.messages
        self.result_faults: list[str] = contents.result_faults
        self.executions: dict[str, RecordedExecution] = contents.executions
        self.effects: list[Effect] = read_effects(files.effects)

    def ends(self) -> dict[str, Any]:
        """How each execution ended, without ids and folders, which differ from process to process."""
        return {
            execution.name: self._without_ids(_end_of(execution)) for execution in self.executions.values()
        }

    def effects_done(self) -> Counter[tuple[str, str, int]]:
        """What was done to the world, what was done again by a redelivered attempt counted once."""
        names = {execution_id: execution.name for execution_id, execution in self.executions.items()}
        once = {(effect.execution_id, effect.key, effect.attempt, effect.label) for effect in self.effects}
        return Counter(
            (names.get(execution_id, execution_id), label, attempt)
            for execution_id, _, attempt, label in once
        )

    def attempts(self) -> dict[AttemptKey, RecordedAttempt]:
        attempts: dict[AttemptKey, RecordedAttempt] = {}
        for execution in self.executions.values():
            for attempt_key, key, body in _deliveries(execution):
                attempt = attempts.setdefault(attempt_key, RecordedAttempt(key))
                if isinstance(body, TaskStarted):
                    attempt.deliveries.append(body.redelivery)
                else:
                    attempt.outcomes.append(body.outcome.error.kind if body.outcome.error else "ok")
        return attempts

    def effect_counts(self) -> Counter[tuple[str, str, int]]:
        """How often each attempt had its effect."""
        return Counter(
            (effect.execution_id, effect.key, effect.attempt) for effect in self.effects if effect.key
        )

    def unkeyed_effects(self) -> Counter[str]:
        """How often each effect was had whose tool does not tell its key: such a task gives its label."""
        return Counter(effect.label for effect in self.effects if not effect.key)

    def recorded_texts(self) -> set[str]:
        """The texts that recorded tasks gave."""
        bodies = [event.body for execution in self.executions.values() for event in execution.events]
        ends = [body.outcome.result for body in bodies if isinstance(body, TaskProcessed)]
        return {result for result in ends if isinstance(result, str)}

    def problems(self) -> list[str]:
        """What must never be: a store that disagrees with its rows, a state that cannot be, half a result."""
        problems = [f"{problem.execution_id}: {problem.message}" for problem in self.inconsistencies]
        problems += self.result_faults
        for execution in self.executions.values():
            problems += [f"{execution.name}: {text}" for text in violations(execution.state)]
        return problems

    def _without_ids(self, value: Any) -> Any:
        text = msgspec.json.encode(value).decode().replace(self._folder, "<here>")
        for execution_id, execution in self.executions.items():
            text = text.replace(execution_id, f"<{execution.name}>")
        return msgspec.json.decode(text)


def _end_of(execution: RecordedExecution) -> dict[str, Any]:
    state = execution.state
    # What was asked is recorded once, however often it was read: the state would not show a second time.
    commands = Counter(type(event.body).__name__ for event in execution.events)
    return {
        "status": state.status,
        "result": state.result,
        "error": [state.error.kind, state.error.message] if state.error is not None else None,
        "ctx": state.ctx.values,
        "workload": state.inputs.workload,
        "steps": {name: [summary.status, summary.runs] for name, summary in sorted(state.summaries.items())},
        "commands": {kind: commands[kind] for kind in ("SignalReceived", "CancelRequested")},
        "discarded": sorted([token["step"], token["reason"]] for token in state.discarded),
    }


def _deliveries(
    execution: RecordedExecution,
) -> Iterator[tuple[AttemptKey, str, TaskStarted | TaskProcessed]]:
    """What this execution itself began of the counted kind, and how it ended."""
    steps = _steps_of_runs(execution.events)
    copied = max(
        (event.seq for event in execution.events if isinstance(event.body, ExecutionForked)), default=0
    )
    polls: Counter[tuple[str, int, str, int]] = Counter()
    for event in execution.events:
        body = event.body
        if not isinstance(body, TaskStarted | TaskProcessed):
            continue
        step = execution.state.plan.by_name[steps[body.run]].step
        kind = next(task.kind for task in step.tasks if task.label == body.task)
        visit = (body.run, body.iteration, body.task, body.visit)
        if kind == EFFECT_KIND and event.seq > copied:
            attempt_key = AttemptKey(execution.state.execution_id, *visit, body.attempt)
            yield attempt_key, expected_idempotency_key(attempt_key, polls[visit]), body
        if isinstance(body, TaskProcessed) and body.do == "retry" and body.outcome.status == "ok":
            polls[visit] += 1


def expected_idempotency_key(attempt_key: AttemptKey, polls: int) -> str:
    """The idempotency key of an attempt, from what is promised about it (semantics §9)."""
    words = [
        attempt_key.execution_id,
        attempt_key.run,
        str(attempt_key.iteration),
        attempt_key.task,
        str(attempt_key.visit),
    ]
    if polls:
        words.append(f"poll {polls}")
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:32]


class _StoreContents(NamedTuple):
    executions: dict[str, RecordedExecution]
    inconsistencies: list[Inconsistency]
    messages: list[InboxMessage]
    result_faults: list[str]


async def _read_store(files: SurvivingFiles) -> _StoreContents:
    store = SqliteStore.at(files.home.store)
    playbooks = CrashPlaybooks()
    try:
        page = await store.executions(ExecutionQuery(limit=_ALL))
        executions: dict[str, RecordedExecution] = {}
        roots = 0
        named_keys: set[str] = set()
        for record in sorted(page.executions, key=lambda record: bool(record.parent)):
            rows = await store.read(record.execution_id, limit=_ALL)
            events = decode_rows(record.execution_id, rows)
            named_keys |= {key.decode() for row in rows for key in _NAMED_KEY.findall(row.body)}
            document = await playbooks.read_stored(store, record.playbook)
            state = replay(document.plan, record.execution_id, events)
            executions[record.execution_id] = RecordedExecution("", state, events)
        # The store lists the newest first; a parent is older than its children.
        for record in reversed(page.executions):
            roots += not record.parent
            execution = executions[record.execution_id]
            executions[record.execution_id] = execution._replace(
                name=_origin_name(record, executions, f"root {roots}")
            )
        messages = await store.inbox(list(executions))
        inconsistencies = await store.check(effects_of_row)
        result_faults = await _result_faults(FileResults(files.home.results), executions, named_keys)
        return _StoreContents(executions, inconsistencies, messages, result_faults)
    finally:
        await store.close()


async def _result_faults(results: FileResults, executions: Iterable[str], named: Set[str]) -> list[str]:
    """What events name and is not there, and what lies there and is not all that was stored."""
    faults = []
    stored = {key for execution_id in executions for key in await results.keys(execution_id)}
    for key in sorted(named | stored):
        try:
            await results.get(key)
        except ResultError as error:
            faults.append(str(error))
    return faults


def _origin_name(record: ExecutionRecord, executions: dict[str, RecordedExecution], root: str) -> str:
    """Parents begin before their children, so they have their names already."""
    request = executions[record.execution_id].events[0].body
    if not isinstance(request, PlaybookExecutionRequested) or request.parent is None:
        return root
    parent = executions[request.parent.execution_id]
    run, _, task_path = request.parent.task_run_id.partition("/")
    steps = _steps_of_runs(parent.events)
    step_runs = [run_name for run_name, step in steps.items() if step == steps[run]]
    return f"{parent.name} > {steps[run]} {step_runs.index(run)}/{task_path}"


def _steps_of_runs(events: list[Event]) -> dict[str, str]:
    """The steps of the runs, by the ids of the runs."""
    bodies = [(event.seq, event.body) for event in events]
    return {run_id(seq): body.step for seq, body in bodies if isinstance(body, StepScheduled)}
