"""From a scenario that fails to a small one that still fails: try everything smaller, greedily."""

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from noetl.testing.simulator.playbook_fragments import NOOP, PYTHON
from noetl.testing.simulator.playbook_pieces import SimulatedPlaybook, StepPiece, playbook_of
from noetl.testing.simulator.scenario import Faults, SimulatedScenario
from noetl.testing.simulator.simulation import SimulationVerdict, Simulator

MOST_TRIES = 400


def shrink(simulator: Simulator, failed: SimulationVerdict, tries: int = MOST_TRIES) -> SimulationVerdict:
    """The smallest that was found; the same for the same verdict."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller_scenarios(failed.scenario):
            if not tries:
                return failed
            tries -= 1
            verdict = simulator.check(candidate)
            if verdict.problem:
                failed, smaller = verdict, True
                break
    return failed


def _smaller_scenarios(scenario: SimulatedScenario) -> Iterator[SimulatedScenario]:
    """Large cuts first."""
    for document in _smaller_playbooks(scenario.document, keep_steady=scenario.comparable):
        if playbook_of(document.text) is not None:
            yield replace(scenario, document=document)
    for position in range(len(scenario.operations)):
        fewer = scenario.operations[:position] + scenario.operations[position + 1 :]
        yield replace(scenario, operations=fewer)
    if scenario.retry:
        yield replace(scenario, retry=False)
    if scenario.errors:
        yield replace(scenario, errors=0.0)
    for faults in _fewer_faults(scenario.faults):
        yield replace(scenario, faults=faults)


def _fewer_faults(faults: Faults) -> Iterator[Faults]:
    for name, value in zip(faults.__struct_fields__, faults.__struct_defaults__, strict=True):
        if name != "until" and getattr(faults, name) != value:
            yield replace(faults, **{name: value})


def _smaller_playbooks(document: SimulatedPlaybook, *, keep_steady: bool) -> Iterator[SimulatedPlaybook]:
    """The same playbook without a step, or with a smaller one. A steady one stays steady."""
    steps = document.steps
    arrivals = Counter(arc.step for step in steps for arc in step.arcs)
    for position, step in enumerate(steps):
        if len(steps) > 1 and step.name != "last":
            remaining = steps[:position] + steps[position + 1 :]
            yield replace(
                document,
                steps=tuple(_without_arcs_to(remaining_step, step.name) for remaining_step in remaining),
            )
    for position, step in enumerate(steps):
        must_stay_steady = keep_steady and arrivals[step.name] > 1
        for smaller in _smaller_steps(step):
            if must_stay_steady and (
                smaller.spec != step.spec or all(task.kind == NOOP for task in smaller.tasks)
            ):
                continue
            yield replace(document, steps=(*steps[:position], smaller, *steps[position + 1 :]))
    plain = "max_step_runs: 200"
    if document.executor != plain and steps[-1].name != "last":
        yield replace(document, executor=plain)
    if steps[-1].name == "last":
        yield replace(document, steps=steps[:-1], executor=plain)


def _without_arcs_to(step: StepPiece, name: str) -> StepPiece:
    return replace(step, arcs=tuple(arc for arc in step.arcs if arc.step != name))


def _smaller_steps(step: StepPiece) -> Iterator[StepPiece]:
    for position in range(len(step.arcs)):
        yield replace(step, arcs=step.arcs[:position] + step.arcs[position + 1 :])
    if len(step.tasks) > 1:
        for position in range(len(step.tasks)):
            yield replace(step, tasks=step.tasks[:position] + step.tasks[position + 1 :])
    for name in ("loop", "spec", "writes"):
        if getattr(step, name):
            yield replace(step, **{name: ""})
    for position, task in enumerate(step.tasks):
        plainer = [replace(task, more="")] if task.more else []
        plainer += [replace(task, kind=PYTHON)] if task.kind != PYTHON else []
        for piece in plainer:
            yield replace(step, tasks=(*step.tasks[:position], piece, *step.tasks[position + 1 :]))
    for position, arc in enumerate(step.arcs):
        if arc.more:
            yield replace(
                step, arcs=(*step.arcs[:position], replace(arc, more=""), *step.arcs[position + 1 :])
            )
