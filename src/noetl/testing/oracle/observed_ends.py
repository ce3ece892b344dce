"""The end that the engine comes to, and the one it comes to in the simulator, where much goes wrong."""

import json
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
from noetl.testing.oracle.loop_model import loop_problem
from noetl.testing.oracle.playbook_generator import abstract_playbook
from noetl.testing.oracle.playbook_model import PlaybookModel, TooManyStates
from noetl.testing.simulator.audit import AuditFailure
from noetl.testing.simulator.scenario import SimulatedScenario, random_faults
from noetl.testing.simulator.simulated_world import SimulatedWorld
from noetl.testing.simulator.simulation import Simulator


class ObservedEnd(Struct, frozen=True):
    """How an execution ended, in the words of the model."""

    end: dict[str, Any]
    loops: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
    """Of each run of a loop its step, and how its iterations began and ended, in that order."""


async def engine_end(local: Local, store: SqliteStore, playbook: AbstractPlaybook) -> ObservedEnd:
    """What the engine makes of it. Raises PlaybookInvalid."""
    text = canonical_document(playbook).text
    name = await local.start(PlaybookSource(text, "oracle.yaml", "", None))
    state = await local.wait_for_end(name)
    return _observe(state, decode_rows(name, await store.read(name, limit=100_000)))


def simulated_end(simulator: Simulator, playbook: AbstractPlaybook, seed: int) -> ObservedEnd | None:
    """What comes of it when much goes wrong; None if so many workers were lost that a task was given up.

    Raises AuditFailure.
    """
    random = Random(f"faults {seed}")  # noqa: S311 - it must be repeatable
    scenario = SimulatedScenario(
        seed=seed,
        outcomes=0,
        errors=0,
        document=canonical_document(playbook, timed=True),
        faults=random_faults(random),
        operations=((random.uniform(0, 8), "pause"),) if random.random() < 0.3 else (),
    )
    world = SimulatedWorld(scenario, simulator.playbooks)
    world.run()
    if world.root is None:
        raise AuditFailure("it never began")
    if world.audit.lost_workers:
        return None
    return _observe(world.root, world.audit.histories[world.root.execution_id])


def _observe(state: ExecutionState, events: Sequence[Event]) -> ObservedEnd:
    execution = execution_of(state)
    end = {
        "status": execution.status,
        "result": execution.result,
        "ctx": execution.ctx,
        "steps": {name: [step["status"], step["runs"]] for name, step in execution.steps.items()},
        "discarded": sorted(token["step"] for token in execution.discarded),
        "waiting": sorted(token["step"] for token in execution.waiting),
    }
    steps: dict[str, str] = {}
    moves: dict[str, list[tuple[int, str]]] = {}
    for event in events:
        match event.body:
            case StepScheduled() as body:
                steps[run_id(event.seq)] = body.step
            case LoopIterationStarted() as body:
                moves.setdefault(body.run, []).append((body.index, "begins"))
            case LoopIterationCompleted() as body:
                moves.setdefault(body.run, []).append((body.index, body.status))
            case _:
                pass
    return ObservedEnd(end, tuple((steps[run], tuple(made)) for run, made in moves.items()))


class Oracle:
    """All that may come of one playbook. Raises TooManyStates where that is too much to tell."""

    def __init__(self, playbook: AbstractPlaybook) -> None:
        model = PlaybookModel(playbook)
        self._loops = {name: step.loop for name, step in model.steps.items()}
        # As text: Python takes 1 for true.
        self._ends = {_text_of(end) for end in model.possible_ends()}

    def problem(self, observed: ObservedEnd) -> str:
        """What is wrong with an end; empty if nothing is."""
        if (ended := _text_of(observed.end)) not in self._ends:
            return "\n".join((f"it ended as\n  {ended}\nand not as", *(f"  {end}" for end in self._ends)))
        for step, moves in observed.loops:
            loop = self._loops[step]
            problem = loop_problem(loop, moves) if loop is not None else "it has none"
            if problem:
                return f"the loop of {step}: {problem}; {moves}"
        return ""


def _text_of(end: dict[str, Any]) -> str:
    return json.dumps(end, sort_keys=True)


class SeedCheck:
    """Checks seeds, one after the other. An async context manager, since it keeps an engine."""

    def __init__(self) -> None:
        self._store = SqliteStore.in_memory()
        self._local = Local(self._store)
        self._simulator = Simulator()

    async def __aenter__(self) -> "SeedCheck":
        await self._local.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._local.__aexit__(None, None, None)
        await self._store.close()

    async def check(self, seed: int) -> str:
        """What is wrong, with the document and how to see it again; empty if nothing is."""
        playbook = abstract_playbook(seed)
        try:
            oracle = Oracle(playbook)
        except TooManyStates:
            return ""
        where, problem = "", oracle.problem(await engine_end(self._local, self._store, playbook))
        if not problem:
            where = ", in the simulator"
            problem = self._simulated_problem(oracle, seed)
        if not problem:
            return ""
        again = f"python -m noetl.testing.oracle --seed {seed}"
        return f"seed {seed}{where}: {problem}\n\n{canonical_document(playbook).text}\nagain: {again}"

    def _simulated_problem(self, oracle: Oracle, seed: int) -> str:
        try:
            observed = simulated_end(self._simulator, abstract_playbook(seed), seed)
        except AuditFailure as finding:
            return str(finding)
        return oracle.problem(observed) if observed is not None else ""
