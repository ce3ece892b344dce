"""Playbooks that do anything: cycles, parked tokens, timeouts, writes that race."""

from collections.abc import Callable
from random import Random

from noetl.testing.simulator.playbook_fragments import (
    CHILD,
    KINDS,
    LOOPS,
    NOOP,
    POLICIES,
    PYTHON,
    SPECS,
    WILD_GUARDS,
    join_entries,
)
from noetl.testing.simulator.playbook_pieces import (
    ArcPiece,
    SimulatedPlaybook,
    StepPiece,
    TaskPiece,
    playbook_of,
)


def wild_playbook(random: Random) -> SimulatedPlaybook:
    """Any small playbook that loads."""
    return first_valid(lambda: sketch_playbook(random))


def child_playbook(random: Random) -> SimulatedPlaybook:
    """A short playbook for others to start."""
    second = TaskPiece("t1", random.choice(KINDS[:3]), random.choice(POLICIES[:2]))
    tasks = (TaskPiece("t0", PYTHON), second)[: random.randint(1, 2)]
    return SimulatedPlaybook(CHILD, "max_step_runs: 25", (StepPiece("s0", tasks=tasks),))


def first_valid(make: Callable[[], SimulatedPlaybook]) -> SimulatedPlaybook:
    """The first of them that loads."""
    while True:
        document = make()
        if playbook_of(document.text) is not None:
            return document


def sketch_playbook(random: Random) -> SimulatedPlaybook:
    """Any small playbook; a few are not valid."""
    size = random.randint(1, 4)
    final = random.random() < 0.4
    steps = [_wild_step(random, number, size) for number in range(size)]
    if final:
        steps.append(StepPiece("last", tasks=(TaskPiece("t0", NOOP),)))
    timeout = random.choice(("", "", "", ", timeout: 90"))
    executor = "max_step_runs: 8" + (", final_step: last" if final else "") + timeout
    return SimulatedPlaybook("random/wild", executor, tuple(steps))


def _wild_step(random: Random, number: int, size: int) -> StepPiece:
    arcs = tuple(
        ArcPiece(
            f"s{random.randrange(size)}",
            join_entries(f"args: {{from: s{number}}}", random.choice(WILD_GUARDS)),
        )
        for _ in range(random.randint(0, 3))
    )
    tasks = tuple(
        TaskPiece(
            f"t{position}",
            random.choice((PYTHON, PYTHON, PYTHON, *KINDS)),
            random.choice(POLICIES).replace("KEY", f"k{number}"),
        )
        for position in range(random.randint(0 if arcs else 1, 2))
    )
    loop = random.choice(LOOPS).replace("KEY", f"k{number}") if tasks else ""
    spec = random.choice(SPECS)
    return StepPiece(f"s{number}", spec, loop, "", tasks, random.random() < 0.5, arcs)
