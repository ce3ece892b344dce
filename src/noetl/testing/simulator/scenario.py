"""What a seed stands for: a playbook, what its tools give, and what goes wrong."""

from random import Random
from typing import Literal, TypeAlias

from msgspec import Struct

from noetl.testing.simulator.playbook_overlay import overlay_playbook
from noetl.testing.simulator.playbook_pieces import SimulatedPlaybook
from noetl.testing.simulator.steady_playbooks import THEMES, steady_playbook
from noetl.testing.simulator.wild_playbooks import child_playbook, wild_playbook

SEEDS_PER_PLAYBOOK = 4
"""So many seeds in a row share a playbook, whose loading costs as much as a run of it."""

PLAYBOOKS_PER_ROUND = 10
"""Of so many playbooks in a row, one is made for each theme; the others are wild."""

Operation: TypeAlias = Literal["pause", "cancel", "signal"]


class Faults(Struct, frozen=True, kw_only=True):
    """What goes wrong until `until` seconds. Numbers from 0 to 1 are chances, the others are counts."""

    until: float = 0
    workers: int = 1
    cut: float = 0
    """Messages with which the connection breaks."""
    duplicate: float = 0
    reorder: float = 0
    """Messages that may overtake others, as requests of their own do."""
    jitter: float = 0
    """Messages that take up to half a second."""
    late: float = 0
    """Messages that may come later than a lease lasts."""
    slow: float = 0
    """Tools that take longer than a lease lasts."""
    slow_disk: float = 0
    crash_before_commit: float = 0
    crash_after_commit: float = 0
    server_crashes: int = 0
    server_stalls: int = 0
    """Times that the server stands still, also for longer than a lease lasts, and then goes on."""
    worker_crashes: int = 0
    zombies: int = 0
    """Workers that stand still for longer than their lease lasts, and then go on."""
    skewed_clocks: bool = False
    snapshots: bool = False
    """States are kept often."""
    short_appends: bool = False
    """The server decides only a few events at once."""
    short_messages: bool = False
    """A report has room for an event or two."""


NO_FAULTS = Faults()


class SimulatedScenario(Struct, frozen=True, kw_only=True):
    seed: int
    outcomes: int
    """What tools give follows from this number and the attempt of the task alone."""
    errors: float
    """How often they fail."""
    document: SimulatedPlaybook
    children: tuple[SimulatedPlaybook, ...] = ()
    faults: Faults = NO_FAULTS
    operations: tuple[tuple[float, Operation], ...] = ()
    retry: bool = False
    """Whether a failed execution is retried, once."""
    comparable: bool = False
    """Whether the end does not depend on the order in which things happen."""


def scenario_of(seed: int) -> SimulatedScenario:
    """The same for the same seed, always."""
    group = seed // SEEDS_PER_PLAYBOOK
    random = Random(f"playbook {group}")  # noqa: S311 - it must be repeatable
    theme = group % PLAYBOOKS_PER_ROUND
    comparable = theme < len(THEMES)
    document = steady_playbook(random, THEMES[theme]) if comparable else wild_playbook(random)
    overlay = Random(f"overlay {group}")  # noqa: S311 - it must be repeatable
    errors = random.choice((0.0, 0.1, 0.2, 0.3))
    retry = random.random() < 0.6
    schedule = Random(f"schedule {seed}")  # noqa: S311 - it must be repeatable
    operations = _operations(schedule, comparable=comparable)
    return SimulatedScenario(
        seed=seed,
        outcomes=group,
        errors=errors,
        document=overlay_playbook(overlay, document),
        children=(child_playbook(random),),
        faults=random_faults(schedule),
        operations=operations,
        retry=retry,
        comparable=comparable,
    )


def random_faults(random: Random) -> Faults:
    """Some seeds have everything, some only one kind of fault: those are easier to understand."""
    wanted = random.choice((0.3, 0.6, 0.9))

    def chance(high: float) -> float:
        return random.uniform(0, high) if random.random() < wanted else 0

    def count(high: int) -> int:
        return random.randint(1, high) if random.random() < wanted else 0

    return Faults(
        until=random.uniform(8, 24),
        workers=random.randint(1, 3),
        cut=chance(0.06),
        duplicate=chance(0.3),
        reorder=chance(0.7) if random.random() < 0.3 else 0,
        jitter=chance(0.6),
        late=chance(0.02),
        slow=chance(0.25),
        slow_disk=chance(0.6),
        crash_before_commit=chance(0.03),
        crash_after_commit=chance(0.03),
        server_crashes=count(2),
        server_stalls=count(1),
        worker_crashes=count(3),
        zombies=count(2),
        skewed_clocks=random.random() < wanted,
        snapshots=random.random() < 0.25,
        short_appends=random.random() < 0.2,
        short_messages=random.random() < 0.2,
    )


def _operations(random: Random, *, comparable: bool) -> tuple[tuple[float, Operation], ...]:
    kinds: tuple[Operation, ...] = ("pause", "pause", "signal")
    if not comparable:
        kinds = ("pause", "signal", "cancel")
    count = random.choice((0, 0, 1, 1, 2))
    return tuple((random.uniform(0, 8), random.choice(kinds)) for _ in range(count))
