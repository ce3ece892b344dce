"""What is measured on every side: each workload with its size, its figures and its goal.

Peers' workers import this, too: sizes stand once. Only the standard library is used here.
"""

from dataclasses import dataclass, field, replace

RUN = "run"
"""The figure that is compared: the code or document is known to the engine and its process."""
NEW = "new"
"""The same with a document that neither the store nor the process has seen: loaded, planned and stored."""
BARE = "bare"
FIRST_STEP, END = "first step", "end"

FLIGHT = 10
"""How many iterations of a loop are in flight at once."""
FIB = 10
FIB_RESULT = 55


@dataclass(frozen=True)
class Workload:
    """One shot of it is `laps` laps, one after the other; a lap is `runs` runs at once of `steps` steps each.

    `waits` says whether each of our steps waits for the disk; where it does not, its twin with a `b` does.
    `goal` is how many times as long the fastest durable peer should take, `served_goal` the same where we are
    a server with a worker, `database_goal` the same where all keep their state in one PostgreSQL.
    """

    name: str
    title: str
    shape: str
    steps: int = 1
    runs: int = 1
    laps: int = 1
    waits: bool = True
    goal: float = 0.0
    served_goal: float = 0.0
    database_goal: float = 0.0
    figures: dict[str, str] = field(default_factory=lambda: {RUN: "", NEW: "new document"})
    ours_only: bool = False

    @property
    def steps_of_lap(self) -> int:
        return self.steps * self.runs

    def shrunk(self, divisor: int) -> "Workload":
        """The same with fewer steps, runs and laps, for trying out."""
        return replace(
            self,
            steps=max(self.steps // divisor, min(self.steps, 2)),
            runs=max(self.runs // divisor, min(self.runs, 2)),
            laps=max(self.laps // divisor, min(self.laps, 2)),
        )


_ALL = (
    Workload("w1", "a chain of 100 no-op steps", "chain", 100, waits=False, served_goal=2, database_goal=3),
    Workload("w1b", "a chain of 100 steps that write", "chain", 100, goal=3, served_goal=2, database_goal=3),
    Workload(
        "w2",
        "a loop of 1,000 no-ops, 10 in flight",
        "loop",
        1_000,
        waits=False,
        served_goal=3,
        database_goal=5,
    ),
    Workload(
        "w2b", "a loop of 1,000 writes, 10 in flight", "loop", 1_000, goal=5, served_goal=3, database_goal=5
    ),
    Workload(
        "w3",
        "500 runs of 3 no-op steps at once",
        "chain",
        3,
        runs=500,
        waits=False,
        served_goal=3,
        database_goal=5,
    ),
    Workload(
        "w3b",
        "500 runs of 3 steps that write at once",
        "chain",
        3,
        runs=500,
        goal=5,
        served_goal=3,
        database_goal=5,
    ),
    Workload("w4", "a run of one no-op step, warm", "chain", laps=100, waits=False, goal=5, served_goal=2),
    Workload("w4b", "a run of one step that writes, warm", "chain", laps=100, goal=5, served_goal=2),
    Workload(
        "w5", "40 python tasks in a row, fib(10)", "tasks", 40, waits=False, served_goal=2, database_goal=3
    ),
    Workload(
        "w5b", "40 python tasks that import os, fib(10)", "tasks", 40, goal=2, served_goal=2, database_goal=3
    ),
    Workload(
        "w6",
        "hello world from the shell",
        "hello",
        waits=False,
        figures={RUN: "noetl run", BARE: "python -c pass"},
        ours_only=True,
    ),
    Workload(
        "w7",
        "a loop of 100,000 no-ops",
        "long loop",
        100_000,
        waits=False,
        figures={RUN: ""},
        ours_only=True,
    ),
    Workload("w9", "100 chains of 100 steps that write, at once", "chain", 100, runs=100),
    Workload(
        "w10",
        "kill -9 at step 50 of 100, then a new process",
        "resume",
        100,
        figures={FIRST_STEP: "to the first step", END: "to the end"},
    ),
)

WORKLOADS = {workload.name: workload for workload in _ALL}
"""In the order of the tables. w8 is `bench.append`."""


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)
