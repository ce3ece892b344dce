"""The end that the engine comes to, and the one that it comes to in the simulator, whatever goes wrong there."""

import json
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec import Struct

from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.lookup import decode_rows
from noetl.engine.summary import execution_of
from noetl.events.bodies import LoopIterationCompleted, LoopIterationStarted, StepScheduled
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.oracle.abstract_playbook import AbstractPlaybook
from noetl.testing.oracle.document_writer import canonical_document
from noetl.testing.oracle.playbook_model import PlaybookModel, loop_counts
from noetl.testing.simulator.audit import AuditFailure
from noetl.testing.simulator.scenario import SimulatedScenario, random_faults
from noetl.testing.simulator.simulated_world import SimulatedWorld
from noetl.testing.simulator.simulation import Simulator


class ObservedEnd(Struct, frozen=True):
    """How an execution ended, in the words of the model; `loops` are step, begun and failed iterations of each run."""

    end: dict[str, Any]
    loops: tuple[tuple[str, int, int], ...] = ()


async def engine_ends(texts: Sequence[str]) -> list[ObservedEnd]:
    """What the engine makes of documents, with a store in memory."""
    store = SqliteStore.in_memory()
    observed = []
    try:
        async with Local(store) as local:
            for text in texts:
                name = await local.start(PlaybookSource(text, "random.yaml", "", None))
                state = await local.wait_for_end(name)
                events = decode_rows(name, await store.read(name, limit=100_000))
                observed.append(ObservedEnd(end_of(state), _loops(events)))
    finally:
        await store.close()
    return observed


def end_of(state: ExecutionState) -> dict[str, Any]:
    execution = execution_of(state)
    return {
        "status": execution.status,
        "result": execution.result,
        "ctx": execution.ctx,
        "steps": {name: (step["status"], step["runs"]) for name, step in sorted(execution.steps.items())},
        "discarded": sorted(token["step"] for token in execution.discarded),
        "waiting": sorted(token["step"] for token in execution.waiting),
    }


def _loops(events: Sequence[Event]) -> tuple[tuple[str, int, int], ...]:
    steps: dict[str, str] = {}
    begun: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for event in events:
        match event.body:
            case StepScheduled() as body:
                steps[run_id(event.seq)] = body.step
            case LoopIterationStarted() as body:
                begun[body.run] += 1
            case LoopIterationCompleted(status="error") as body:
                failed[body.run] += 1
            case _:
                pass
    return tuple((steps[run], begun[run], failed[run]) for run in begun)


def simulated_end(simulator: Simulator, playbook: AbstractPlaybook, seed: int) -> ObservedEnd | None:
    """What comes of it when much goes wrong; None if so many workers were lost that a task was given up.

    Raises AuditFailure.
    """
    random = Random(f"faults {seed}")  # noqa: S311 - it must be repeatable
    pauses = tuple((random.uniform(0, 8), "pause") for _ in range(random.choice((0, 0, 1))))
    scenario = SimulatedScenario(
        seed=seed,
        outcomes=0,
        errors=0,
        document=canonical_document(playbook, timed=True),
        faults=random_faults(random),
        operations=pauses,
    )
    world = SimulatedWorld(scenario, simulator.plan_of)
    world.run()
    if world.root is None:
        raise AuditFailure("it never began")
    return None if world.audit.lost_workers else ObservedEnd(end_of(world.root))


def canonical_text(end: dict[str, Any]) -> str:
    """Python takes 1 for true; text does not."""
    return json.dumps(end, sort_keys=True)


def oracle_problem(playbook: AbstractPlaybook, observed: ObservedEnd) -> str:
    """What is wrong with an end; empty if nothing is. Raises TooManyStates."""
    model = PlaybookModel(playbook)
    ends = model.possible_ends()
    expected = {canonical_text(end) for end in ends}
    if canonical_text(observed.end) not in expected:
        lines = "\n".join(sorted(expected))
        return f"ended as\n{canonical_text(observed.end)}\nand not as (one of {len(ends)})\n{lines}"
    for step, begun, failed in observed.loops:
        loop = model.steps[step].loop
        if loop is None or (begun, failed) not in loop_counts(loop):
            return f"the loop of {step} began {begun} iterations, of which {failed} failed"
    return ""
