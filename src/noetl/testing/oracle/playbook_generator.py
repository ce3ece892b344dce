"""Abstract playbooks at random: the same for the same seed, always."""

from random import Random
from typing import Any

from msgspec.structs import replace

from noetl.testing.oracle.abstract_playbook import (
    AbstractArc,
    AbstractLoop,
    AbstractPlaybook,
    AbstractStep,
    Condition,
    Reducer,
    V,
    Write,
)

FAILED_ITERATION: Condition = ("failed", "iteration_failed")
FAILED_TASK: Condition = ("failed", "policy")

NUMBERS = (3, 1, 0, -2, 1.0, 0.5, 7, 3.0)
ALIKE = (
    1,
    True,
    1.0,
    0,
    False,
    "1",
    "",
    [1],
    [True],
    {"x": 1},
    {"x": True},
    {"x": [0]},
    {"x": [False]},
    None,
)
"""What a careless comparison takes for equal."""
TEXTS = ("x", "", "yz")
ITEMS: dict[Reducer, tuple[tuple[Any, ...], ...]] = {
    "sum": (NUMBERS,),
    "count": (ALIKE,),
    "min": (NUMBERS, ("b", "a", "B", "", "10", "9")),
    "max": (NUMBERS, ("b", "a", "B", "", "10", "9")),
    "append": (ALIKE, ([1], [], [2, 3])),
    "concat": (([1], [], [2, [3]], [1]), TEXTS),
    "merge": (({"x": 1}, {"y": {"a": 1}}, {"y": {"b": 2}}, {}, {"x": None}),),
    "union": (
        ALIKE,
        NUMBERS,
        ([[1]], [[True]], [[1.0], 1]),
        ({"x": [0]}, {"x": [False]}, {"x": 0}, {"x": False}),
    ),
    "first": (ALIKE[:-1],),
    "last": (ALIKE[:-1],),
}
BASES: dict[Reducer, tuple[Any, ...]] = {
    "sum": (10, 0.5),
    "count": (5,),
    "min": (2,),
    "max": (2,),
    "append": ([0], [[1]]),
    "concat": ([9],),
    "merge": ({"x": 9, "y": {"c": 3}},),
    "union": ([True, 0], [1, 1]),
    "first": (0, False),
    "last": ("old",),
}


def abstract_playbook(seed: int) -> AbstractPlaybook:
    """A playbook of a few steps that always ends: each way back adds to a number that bounds it."""
    playbook = _PlaybookMaker(Random(f"oracle {seed}")).playbook()  # noqa: S311 - it must be repeatable
    # Chances of their own, so that a seed has the playbook that it would have without.
    shares = Random(f"shares {seed}")  # noqa: S311 - likewise
    return replace(playbook, steps=tuple(_with_shared_loop(step, shares) for step in playbook.steps))


def _with_shared_loop(step: AbstractStep, shares: Random) -> AbstractStep:
    if step.loop is None or shares.random() < 0.5:
        return step
    return replace(step, loop=replace(step.loop, distributed=True))


class _PlaybookMaker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.size = random.choice((2, 3, 4, 4, 5, 5, 6))
        self.shape = random.choice(("fan", "fan", "chain", "mesh", "mesh", "cycle", "cycle", "knot"))
        self.size = max(self.size, 4) if self.shape == "knot" else self.size
        self.bases: dict[str, Any] = {}
        """What the first step writes, for reducers to begin with."""

    def _chance(self, chance: float) -> bool:
        return self.random.random() < chance

    def playbook(self) -> AbstractPlaybook:
        targets = self._targets()
        steps = [self._step(number, targets[number]) for number in range(self.size)]
        if self.bases and steps[0].tool == "value" and steps[0].loop is None:
            steps[0] = replace(steps[0], writes=(*steps[0].writes, *self.bases.items()))
        steps = [self._joined(step, steps) for step in steps]
        final = None
        if self._chance(0.2):
            final = AbstractStep(name="last", failing=frozenset({0}) if self._chance(0.3) else frozenset())
        return AbstractPlaybook(
            steps=tuple(steps),
            final=final,
            output="a" if self._chance(0.1) else "",
            no_next_is_error=self._chance(0.1),
        )

    def _targets(self) -> list[list[int]]:
        random, size = self.random, self.size
        if self.shape == "fan" and size > 2:
            last = size - 1
            targets = [list(range(1, last)), *([last] for _ in range(1, last)), []]
            if self._chance(0.3):
                targets[random.randrange(1, last)].append(random.randrange(1, size))
                targets[0].append(random.randrange(1, size))
        elif self.shape == "knot":
            # Two joins that wait for each other, and others behind them.
            targets = [[1, 2], [2, 3], [1, 3], *([] for _ in range(3, size))]
            targets[0] += [3] * random.choice((0, 1))
            random.shuffle(targets[0])
            targets[3] += [4] * (size > 4)
        elif self.shape == "chain":
            targets = [[number + 1] for number in range(size - 1)] + [[]]
        else:
            targets = [
                random.choices(range(number + 1, size), k=random.choice((1, 1, 2, 3)))
                if number + 1 < size
                else []
                for number in range(size)
            ]
        if self.shape == "cycle":
            for _ in range(random.choice((1, 1, 2))):
                source = random.randrange(size)
                targets[source].append(random.randrange(source + 1))
        return targets

    def _step(self, number: int, targets: list[int]) -> AbstractStep:
        random = self.random
        loop = self._loop(number) if self._chance(0.35 if number else 0.1) else None
        tools = ("value", "value", "pass", "none") if targets else ("value", "value", "pass")
        tool = "value" if loop else random.choice(tools)
        fails = tool != "none" and loop is None and self._chance(0.3)
        failing = (
            frozenset(random.sample(range(3), k=random.choice((1, 2, 3)))) if fails else frozenset[int]()
        )
        may_fail = bool(failing) or (loop is not None and bool(loop.failing) and not loop.best_effort)
        writes: tuple[Write, ...] = ()
        if tool != "none" and loop is None and self._chance(0.4):
            key = random.choice(("a", "a", f"k{number}"))
            writes = ((key, random.choice((V, number, ("next", key)))),)
        ending = ((random.choice(("a", f"e{number}")), number + 10),) if self._chance(0.15) else ()
        arcs = tuple(self._arc(number, target, loop, may_fail=may_fail) for target in targets)
        return AbstractStep(
            name=f"s{number}",
            tool=tool,  # type: ignore[arg-type]  # one of the three words above
            inclusive=len(arcs) > 1 and self._chance(0.75),
            failing=failing,
            writes=writes,
            ending_writes=ending,
            reads="a" if tool == "value" and loop is None and self._chance(0.3) else "",
            seconds=random.choice((1, 3, 9)) if tool == "value" and self._chance(0.3) else 0,
            loop=loop,
            arcs=arcs,
        )

    def _joined(self, step: AbstractStep, steps: list[AbstractStep]) -> AbstractStep:
        """A join where several arcs lead, mostly; of any only where no token comes round again."""
        arcs = sum(arc.target == step.name for other in steps for arc in other.arcs)
        if self.shape == "knot" and step.name in ("s1", "s2") and self._chance(0.9):
            return replace(step, join="all")
        if not self._chance(0.75 if arcs > 1 else 0.15):
            return step
        kinds: list[Any] = ["all", "all", "any", 2, 2, 3]
        join = self.random.choice(kinds)
        return step if join == "any" and _comes_round(step, steps) else replace(step, join=join)

    def _arc(self, number: int, target: int, loop: AbstractLoop | None, *, may_fail: bool) -> AbstractArc:
        random = self.random
        writes: tuple[Write, ...] = ()
        if self._chance(0.15):
            writes = ((random.choice(("a", f"r{number}")), number + 20),)
        name = f"s{target}"
        if target <= number:
            condition: Condition = ("below", random.choice((1, 2)))
            return AbstractArc(target=name, condition=condition, more=random.choice((1, 1, 2)), writes=writes)
        conditions: list[Condition] = [("always",)] * 6
        conditions += [("v", 1), ("v", 2), ("ctx", "a", random.choice((0, 1, 2))), ("status", "success")]
        conditions += [("name", "loop.done" if loop else "step.done")]
        conditions += [("some failed",)] * 2 if loop else [("result", random.choice((0, 1)))]
        if may_fail:
            conditions += [("name", "step.failed"), ("status", "error")] * 2
            conditions += [FAILED_ITERATION if loop else FAILED_TASK]
        return AbstractArc(
            target=name, condition=random.choice(conditions), more=random.choice((0, 0, 0, 1)), writes=writes
        )

    def _loop(self, number: int) -> AbstractLoop:
        random = self.random
        parallel = self._chance(0.5)
        reducer = random.choice([*ITEMS]) if parallel or self._chance(0.5) else None
        shared = reducer is not None and self._chance(0.4)
        pools = ITEMS[reducer] if reducer else (ALIKE,)
        pool = pools[0] if shared else random.choice(pools)
        items = tuple(random.choice(pool) for _ in range(random.choice((0, 1, 2, 3, 4, 4, 5))))
        # Of loops that share a key, each must reduce onto what the others have left.
        key = f"t_{reducer}" if shared else f"l{number}" if self._chance(0.8) else ""
        failing = frozenset(index for index in range(len(items)) if self._chance(0.4))
        bases = BASES[reducer] if reducer and key and pool is pools[0] else ()
        if key and pool == TEXTS:
            bases = ("old",)
        if bases and self._chance(0.7):
            self.bases[key] = random.choice(bases)
        return AbstractLoop(
            items=items,
            parallel=parallel,
            in_flight=random.choice((1, 2, 3, 10)),
            window=random.choice((1, 2, 1_000)),
            best_effort=self._chance(0.5),
            failing=failing if self._chance(0.5) else frozenset(),
            key=key,
            reducer=reducer if key else None,
            twice=self._chance(0.3),
        )


def _comes_round(step: AbstractStep, steps: list[AbstractStep]) -> bool:
    arcs = {other.name: [arc.target for arc in other.arcs] for other in steps}
    ahead, seen = [*arcs[step.name]], set[str]()
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += arcs[name]
    return step.name in seen
