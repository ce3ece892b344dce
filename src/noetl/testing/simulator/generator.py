"""Random playbooks: steady ones, whose end is the same in every order of events, and wild ones."""

from collections.abc import Callable, Sequence
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from noetl.testing.simulator.document import ArcPiece, Document, StepPiece, TaskPiece, playbook_of

CHILD = "random/child"
FAILED = "{{ outcome.status == 'error' }}"
PYTHON = "kind: python, code: '1'"
NOOP = "kind: noop"

GUARDS = (
    "",
    "when: \"{{ event.name == 'step.failed' }}\"",
    "when: \"{{ event.status == 'success' }}\"",
    'when: "{{ (event.result | default(0, true)) is number and event.result > 1 }}"',
)
WILD_GUARDS = (*GUARDS, 'when: "{{ ctx.flag | default(false) }}"')


def _rules(*rules: str) -> str:
    return f"spec: {{policy: {{rules: [{', '.join(rules)}]}}}}"


def _retry(when: str, more: str = "") -> str:
    return f'{{when: "{when}", then: {{do: retry{more}}}}}'


POLICIES = (
    "",
    _rules(_retry(FAILED, ", attempts: 2, delay: 1")),
    _rules(
        _retry(FAILED, ", attempts: 2, delay: 12"),
        '{else: {then: {do: continue, set_ctx: {KEY: "{{ outcome.result }}"}}}}',
    ),
    _rules(
        _retry("{{ outcome.result == 2 and _attempt == 1 }}"), f'{{when: "{FAILED}", then: {{do: break}}}}'
    ),
    'set: {ctx.flag: "{{ outcome.result is number and outcome.result > 0 }}"}',
)
KINDS = (
    PYTHON,
    NOOP,
    "kind: wait, seconds: 9",
    "kind: wait, signal: go",
    f"kind: playbook, path: {CHILD}",
)
LOOPS = (
    "",
    'in: "{{ [1, 2, 3] }}", iterator: item',
    (
        'in: "{{ [1, 2, 3, 4] }}", iterator: item, '
        "spec: {mode: parallel, max_in_flight: 2, reduce: {KEY: append, flag: last}}"
    ),
    'in: "{{ [1, 2] }}", iterator: item, spec: {policy: {failure: {mode: best_effort}}}',
)
_FLAG = 'rules: [{when: "{{ ctx.flag }}", then: {allow: true}}]'
_SIGNALLED = 'rules: [{when: "{{ ctx.signals.go }}", then: {allow: true}}]'
SPECS = (
    "",
    "policy: {join: all}",
    "policy: {join: any}",
    "policy: {join: {count: 2}}",
    f"policy: {{admit: {{{_FLAG}}}}}",
    f"policy: {{admit: {{{_FLAG}, on_deny: fail}}}}",
    f"policy: {{join: all, admit: {{{_FLAG}, on_deny: drop}}}}",
    f"policy: {{admit: {{{_SIGNALLED}, timeout: 30}}}}",
    "timeout: 20",
)


def wild(random: Random) -> Document:
    """Any small playbook: cycles, parked tokens, timeouts, writes that race."""
    return _valid(lambda: _wild(random))


def steady(random: Random) -> Document:
    """A playbook without cycles in which no run sees what another one happens to have written by then."""
    return _valid(lambda: Steady(random).document())


def child(random: Random) -> Document:
    """A short playbook for others to start."""
    tasks = tuple(
        TaskPiece(f"t{number}", random.choice(KINDS[:3]), random.choice(POLICIES[:2]))
        for number in range(random.randint(1, 2))
    )
    return Document(CHILD, "max_step_runs: 25", (StepPiece("s0", tasks=tasks),))


def _valid(make: Callable[[], Document]) -> Document:
    """The first of them that loads."""
    while True:
        document = make()
        if playbook_of(document.text) is not None:
            return document


def _wild(random: Random) -> Document:
    size = random.randint(1, 4)
    final = random.random() < 0.4
    steps = [_wild_step(random, number, size) for number in range(size)]
    if final:
        steps.append(StepPiece("last", tasks=(TaskPiece("t0", NOOP),)))
    timeout = random.choice(("", "", "", ", timeout: 90"))
    executor = "max_step_runs: 8" + (", final_step: last" if final else "") + timeout
    return Document("random/wild", executor, tuple(steps))


def _wild_step(random: Random, number: int, size: int) -> StepPiece:
    arcs = tuple(
        ArcPiece(
            f"s{random.randrange(size)}", _joined(f"args: {{from: s{number}}}", random.choice(WILD_GUARDS))
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


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


class _Place(Struct):
    """What is known about a step of a steady playbook while it is made."""

    sources: list[int]
    single: bool = True
    """It runs once at most."""
    looped: bool = False
    labels: Sequence[str] = ()


class Steady:
    """Makes one steady playbook.

    Each task writes a key of its own. A run reads what others wrote only where they must have ended:
    in the one step before it. What a pass-through step passes on must not depend on who came first.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.size = random.choice((1, 2, 3, 3, 4, 5, 6))
        self.places = [_Place([]) for _ in range(self.size)]
        for number in range(1, self.size):
            # more than one way in: that is where joins are
            ways = random.choice((1, 1, 2, 3))
            self.places[number].sources = sorted(random.choices(range(number), k=ways))

    def document(self) -> Document:
        steps = [self._step(number) for number in range(self.size)]
        executor = ["max_step_runs: 200"]
        if self.random.random() < 0.2:
            executor.append("final_step: last")
            steps.append(
                StepPiece("last", tasks=(TaskPiece("t0", PYTHON, 'args: {seen: "{{ args.status }}"}'),))
            )
        if self.random.random() < 0.15:
            executor.append("no_next_is_error: true")
        if self.random.random() < 0.2:
            executor.append('output: "{{ ctx.k0t0 | default(0) }}"')
        return Document("random/steady", ", ".join(executor), tuple(steps))

    def _step(self, number: int) -> StepPiece:
        random, place = self.random, self.places[number]
        spec = self._spec(number)
        loop, reduce = self._loop(number)
        place.looped = bool(loop)
        count = random.choice((1, 1, 2, 2, 3))
        place.labels = [f"t{position}" for position in range(count)]
        tasks = tuple(self._task(number, position, reduce) for position in range(count))
        may_pass = (len(set(place.sources)) < 2 or place.single) and "any" not in spec
        if not loop and may_pass and random.random() < 0.15:
            tasks = random.choice(((), (TaskPiece("t0", NOOP),)))
        elif not loop and not may_pass and all(task.kind == NOOP for task in tasks):
            tasks = (TaskPiece("t0", PYTHON),)
        arcs = [
            ArcPiece(f"s{target}", _joined(self._arc_args(number), random.choice(GUARDS)))
            for target in range(number + 1, self.size)
            for _ in range(self.places[target].sources.count(number))
        ]
        random.shuffle(arcs)
        if not tasks and not arcs:
            tasks = (TaskPiece("t0", PYTHON),)
        writes = f'ctx.w{number}: "{{{{ event.result }}}}"' if tasks and random.random() < 0.15 else ""
        return StepPiece(f"s{number}", spec, loop, writes, tasks, random.random() < 0.25, tuple(arcs))

    def _arc_args(self, number: int) -> str:
        value = '"{{ event.result }}"'
        write = self.random.choice(("", "", "", f", set: {{ctx.a{number}: {value}}}"))
        return f"args: {{v: {value}, s{number}: {value}}}{write}"

    def _spec(self, number: int) -> str:
        random, place = self.random, self.places[number]
        join = ""
        if len(place.sources) > 1:
            join = random.choice(("", "join: all", "join: all", "join: any", "join: {count: 2}"))
        elif random.random() < 0.1:
            join = "join: all"
        before = bool(place.sources) and all(self.places[source].single for source in place.sources)
        place.single = (
            number == 0 or join in ("join: all", "join: any") or (before and len(place.sources) == 1)
        )
        rules = 'rules: [{when: "{{ args.v is number and args.v > 0 }}", then: {allow: true}}]'
        deny = "fail" if len(set(place.sources)) < 2 and random.random() < 0.5 else "drop"
        admit = random.choice(("",) * 5 + (f"{rules}, on_deny: {deny}", _SIGNALLED))
        policy = _joined(join, f"admit: {{{admit}}}" if admit else "")
        return f"policy: {{{policy}}}" if policy else ""

    def _loop(self, number: int) -> tuple[str, str]:
        """The loop, and the reducer of what its tasks write."""
        random = self.random
        kind = random.choice(("", "", "", "sequential", "parallel", "parallel"))
        if not kind:
            return "", ""
        items = f'in: "{{{{ range({random.randint(0, 4)}) | list }}}}", iterator: item'
        if kind == "sequential":
            failure = random.choice(("", ", spec: {policy: {failure: {mode: best_effort}}}"))
            return items + failure, ""
        reduce = random.choice(("append", "append", "sum", "count", "min", "max", "union", "first", "last"))
        keys = ", ".join(f"ctx.k{number}t{position}: {reduce}" for position in range(3))
        knobs = f"mode: parallel, max_in_flight: {random.randint(1, 4)}, reduce: {{{keys}, run.acc: append}}"
        if random.random() < 0.3:
            knobs += ", window: 2"
        return f"{items}, spec: {{{knobs}, policy: {{failure: {{mode: best_effort}}}}}}", reduce

    def _task(self, number: int, position: int, reduce: str) -> TaskPiece:
        random = self.random
        kind = random.choice((PYTHON,) * 9 + KINDS[1:])
        label = f"t{position}"
        if kind != PYTHON:
            return TaskPiece(label, kind, "")
        seen = ", ".join(
            f"{name}: {value}" for name, value in zip("xyz", self._readable(number, position), strict=False)
        )
        args = f"args: {{{seen}}}" if seen else ""
        value = "outcome.result" if not reduce else "outcome.result if outcome.result is number else 7"
        writes = self._writes(number, label, value)
        return TaskPiece(label, kind, _joined(args, writes, self._policy(position)))

    def _writes(self, number: int, label: str, value: str) -> str:
        keys = {f"ctx.k{number}{label}": value} if self.random.random() < 0.5 else {}
        if self.random.random() < 0.3:
            keys["iter.acc"] = "[iter.acc | default(0), outcome.result] | tojson"
        if self.random.random() < 0.3:
            keys["run.acc"] = value
        written = ", ".join(f'{key}: "{{{{ {what} }}}}"' for key, what in keys.items())
        return f"set: {{{written}}}" if written else ""

    def _readable(self, number: int, position: int) -> list[str]:
        """Values that are the same whatever happens at the same time."""
        place = self.places[number]
        found = ["_prev", "iter.index", "_attempt", "iter.acc | default(0)", "run.acc | default(0)"]
        found += [f"{label} | default(0)" for label in place.labels[:position]]
        if place.looped:
            found.append("iter.item")
        if len(place.sources) == 1:
            source = place.sources[0]
            before = self.places[source]
            found += ["args.v", f"steps.s{source}.result | default(0)"]
            if before.single and not before.looped:
                found += [f"ctx.k{source}{label} | default(-1)" for label in before.labels]
        chosen = self.random.sample(found, k=min(self.random.randint(0, 3), len(found)))
        return [f'"{{{{ {value} }}}}"' for value in chosen]

    def _policy(self, position: int) -> str:
        failed = f'{{when: "{FAILED}", then: {{do: DO}}}}'
        polling = _retry("{{ outcome.status == 'ok' and outcome.result == 3 }}", ", attempts: 4")
        jump = f'{{when: "{{{{ outcome.result == 4 }}}}", then: {{do: jump, to: t{max(position - 1, 0)}}}}}'
        end = self.random.choice(
            (
                "",
                failed.replace("DO", "break"),
                failed.replace("DO", "continue"),
                failed.replace("DO", "fail"),
            )
        )
        delay = self.random.choice((0, 1, 4, 12))
        again = _retry(FAILED, f", attempts: {self.random.randint(2, 4)}, delay: {delay}")
        first = self.random.choice(("", "", again, again, polling, jump))
        rules = [rule for rule in (first, end if first != again else "") if rule]
        return _rules(*rules) if rules else ""


def with_steps(document: Document, steps: Sequence[StepPiece]) -> Document:
    """The same playbook with other steps."""
    return replace(document, steps=tuple(steps))
