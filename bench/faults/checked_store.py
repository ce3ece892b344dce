"""What the store says after the faults: checked, and every history decided again."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from bench.faults.laws import RecordedExecution
from noetl.engine.history.history_views import verify_history
from noetl.engine.history.read import History, read_history
from noetl.engine.history.store_check import check_store
from noetl.events.bodies import LoopDone, StepDone, StepScheduled, TaskProcessed
from noetl.events.identifiers import run_id, task_run_id
from noetl.ports.store import ExecutionQuery
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.results.file_backend import FileResults

PAGE = 500


class CheckedStore(NamedTuple):
    executions: list[RecordedExecution]
    events: int
    verified: int
    problems: list[str]


async def read_store(folder: Path) -> CheckedStore:
    """Of a home whose server has ended."""
    home = Home(folder)
    store = open_store(f"sqlite:///{home.store}")
    executions: list[RecordedExecution] = []
    events = verified = 0
    try:
        check = await check_store(store)
        problems = [f"store check: {problem.execution_id} {problem.message}" for problem in check.problems]
        cursor, more = "", True
        while more:
            page = await store.executions(ExecutionQuery(cursor=cursor, limit=PAGE))
            for record in page.executions:
                history = await read_history(store, record.execution_id)
                executions.append(_recorded(history))
                events += len(history.events)
                verification = await verify_history(history, FileResults(home.results))
                verified += not verification.differences
                problems += [
                    f"{record.execution_id} event {difference.seq}: {difference.why}"
                    for difference in verification.differences
                ]
            cursor, more = page.next, bool(page.next)
    finally:
        await store.close()
    return CheckedStore(executions, events, verified, problems)


def _recorded(history: History) -> RecordedExecution:
    error = history.state.error
    bodies = [event.body for event in history.events]
    steps = {
        run_id(event.seq): event.body.step
        for event in history.events
        if isinstance(event.body, StepScheduled)
    }
    return RecordedExecution(
        int(history.request.workload["number"]),
        history.record.status,
        f"{error.kind}: {error.message}" if error else "",
        Counter(_attempt(body) for body in bodies if isinstance(body, TaskProcessed)),
        Counter(steps[body.run] for body in bodies if isinstance(body, StepDone | LoopDone)),
    )


def _attempt(body: TaskProcessed) -> str:
    return task_run_id(body.run, body.iteration, body.task, body.visit, body.attempt)
