"""Playbooks whose end is the same in every order of events."""

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from noetl.testing.simulator.playbook_fragments import (
    FAILED,
    KINDS,
    NOOP,
    POLICIES,
    PYTHON,
    SIGNALLED,
    STEADY_GUARDS,
    join_entries,
    policy_rules,
    retry_rule,
)
from noetl.testing.simulator.playbook_pieces import ArcPiece, SimulatedPlaybook, StepPiece, TaskPiece
from noetl.testing.simulator.wild_playbooks import first_valid


class PlaybookTheme(Struct, frozen=True, kw_only=True):
    """What a playbook has much of. Numbers are chances."""

    waits: float = 0.1
    passes: float = 0.2
    sequential: float = 0.2
    parallel: float = 0.35
    fan: bool = False
    """One step, several after it, and one that joins them."""


MIXED = PlaybookTheme()
THEMES = (
    PlaybookTheme(parallel=0.8, sequential=0.1),
    PlaybookTheme(fan=True, passes=0.7, parallel=0.1),
    PlaybookTheme(waits=0.8, passes=0, parallel=0.2, sequential=0),
    PlaybookTheme(sequential=0.7, parallel=0.1, passes=0),
    MIXED,
    PlaybookTheme(waits=0.8, passes=0, parallel=0.2, sequential=0),
    PlaybookTheme(fan=True, passes=0.9, parallel=0.1),
)


def steady_playbook(random: Random, theme: PlaybookTheme) -> SimulatedPlaybook:
    """A playbook without cycles in which no run sees what another one happens to have written by then."""
    return first_valid(lambda: _PlaybookMaker(random, theme).document())


class _StepDraft(Struct):
    """What is known about a step of a steady playbook while it is made."""

    sources: list[int]
    single: bool = True
    """It runs once at most."""
    looped: bool = False
    waits: bool = False
    """It does nothing but wait: its tasks are suspended one after the other."""
    labels: Sequence[str] = ()


class _PlaybookMaker:
    """Makes one steady playbook.

    Each task writes a key of its own. A run reads what others wrote only where they must have ended:
    in the one step before it. What a pass-through step passes on must not depend on who came first.
    """

    def __init__(self, random: Random, theme: PlaybookTheme) -> None:
        self.random = random
        self.theme = theme
        self.size = random.choice((2, 3, 3, 4, 4, 5))
        self.drafts = [_StepDraft([]) for _ in range(self.size)]
        for number in range(1, self.size):
            # More than one arc in: that is where joins are.
            arc_count = random.choice((1, 1, 2, 3))
            self.drafts[number].sources = sorted(random.choices(range(number), k=arc_count))
        if theme.fan:
            self.size = random.choice((4, 5))
            middle = list(range(1, self.size - 1))
            self.drafts = [_StepDraft([]), *(_StepDraft([0]) for _ in middle), _StepDraft(middle)]

    def document(self) -> SimulatedPlaybook:
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
        return SimulatedPlaybook("random/steady", ", ".join(executor), tuple(steps))

    def _step(self, number: int) -> StepPiece:
        random, draft = self.random, self.drafts[number]
        spec = self._spec(number)
        may_pass = (len(set(draft.sources)) < 2 or draft.single) and "any" not in spec
        chance = self.theme.passes if len(draft.sources) > 1 else self.theme.passes / 3
        passes = may_pass and random.random() < chance
        loop, reduce = ("", "") if passes else self._loop(number)
        draft.looped = bool(loop)
        draft.waits = random.random() < self.theme.waits
        count = random.choice((2, 3) if draft.waits else (1, 1, 2, 2, 3))
        draft.labels = [f"t{position}" for position in range(count)]
        tasks = tuple(self._task(number, position, reduce) for position in range(count))
        if passes:
            leads_on = any(number in later.sources for later in self.drafts)
            tasks = () if leads_on and random.random() < 0.5 else (TaskPiece("t0", NOOP),)
        elif not loop and not may_pass and all(task.kind == NOOP for task in tasks):
            tasks = (TaskPiece("t0", PYTHON),)
        arcs = [
            ArcPiece(f"s{target}", join_entries(self._arc_args(number), random.choice(STEADY_GUARDS)))
            for target in range(number + 1, self.size)
            for _ in range(self.drafts[target].sources.count(number))
        ]
        random.shuffle(arcs)
        writes = f'ctx.w{number}: "{{{{ event.result }}}}"' if tasks and random.random() < 0.15 else ""
        return StepPiece(f"s{number}", spec, loop, writes, tasks, random.random() < 0.1, tuple(arcs))

    def _arc_args(self, number: int) -> str:
        value = '"{{ event.result }}"'
        write = self.random.choice(("", "", "", f", set: {{ctx.a{number}: {value}}}"))
        return f"args: {{v: {value}, s{number}: {value}}}{write}"

    def _spec(self, number: int) -> str:
        random, draft = self.random, self.drafts[number]
        join = ""
        if len(draft.sources) > 1:
            joins = ("", "join: all", "join: all", "join: all", "join: any", "join: {count: 2}")
            join = "join: all" if self.theme.fan else random.choice(joins)
        elif random.random() < 0.1:
            join = "join: all"
        source_single = bool(draft.sources) and all(self.drafts[source].single for source in draft.sources)
        draft.single = (
            number == 0 or join in ("join: all", "join: any") or (source_single and len(draft.sources) == 1)
        )
        when = 'rules: [{when: "{{ args.v is not number or args.v > 0 }}", then: {allow: true}}]'
        deny = "fail" if len(set(draft.sources)) < 2 and random.random() < 0.5 else "drop"
        admit = random.choice(("",) * 8 + (f"{when}, on_deny: {deny}", SIGNALLED))
        if self.theme.fan and join and random.random() < 0.3:
            admit = SIGNALLED
        policy = join_entries(join, f"admit: {{{admit}}}" if admit else "")
        return f"policy: {{{policy}}}" if policy else ""

    def _loop(self, number: int) -> tuple[str, str]:
        """The loop, and the reducer of what its tasks write."""
        random = self.random
        chance = random.random() - self.theme.sequential
        if chance > self.theme.parallel:
            return "", ""
        items = f'in: "{{{{ range({random.choice((0, 2, 3, 3, 4))}) | list }}}}", iterator: item'
        if chance < 0:
            failure = random.choice(("", ", spec: {policy: {failure: {mode: best_effort}}}"))
            return items + failure, ""
        orderly = ("append", "append", "append", "union", "first", "last")
        reduce = random.choice((*orderly, *orderly, "sum", "count", "min", "max"))
        keys = ", ".join(f"ctx.k{number}t{position}: {reduce}" for position in range(3))
        most = random.choice((1, 2, 3, 4, 4))
        options = f"mode: parallel, max_in_flight: {most}, reduce: {{{keys}, run.acc: append}}"
        if random.random() < 0.3:
            options += ", window: 2"
        return f"{items}, spec: {{{options}, policy: {{failure: {{mode: best_effort}}}}}}", reduce

    def _task(self, number: int, position: int, reduce: str) -> TaskPiece:
        random = self.random
        waits = (*KINDS[2:], KINDS[-1])
        kind = random.choice(waits if self.drafts[number].waits else (PYTHON,) * 12 + KINDS[1:])
        label = f"t{position}"
        if kind != PYTHON:
            return TaskPiece(label, kind, POLICIES[1] if kind == KINDS[-1] else "")
        seen = ", ".join(
            f"{name}: {value}" for name, value in zip("xyz", self._readable(number, position), strict=False)
        )
        args = f"args: {{{seen}}}" if seen else ""
        value = "outcome.result" if not reduce else "outcome.result if outcome.result is number else 7"
        writes = self._writes(number, label, value)
        return TaskPiece(label, kind, join_entries(args, writes, self._policy(position)))

    def _writes(self, number: int, label: str, value: str) -> str:
        keys = {f"ctx.k{number}{label}": value} if self.random.random() < 0.7 else {}
        if self.random.random() < 0.3:
            keys["iter.acc"] = "[iter.acc | default(0), outcome.result] | tojson"
        if self.random.random() < 0.3:
            keys["run.acc"] = value
        written = ", ".join(f'{key}: "{{{{ {expression} }}}}"' for key, expression in keys.items())
        return f"set: {{{written}}}" if written else ""

    def _readable(self, number: int, position: int) -> list[str]:
        """Values that are the same whatever happens at the same time."""
        draft = self.drafts[number]
        readable = ["_prev", "iter.index", "_attempt", "iter.acc | default(0)", "run.acc | default(0)"]
        readable += [f"{label} | default(0)" for label in draft.labels[:position]]
        if draft.looped:
            readable.append("iter.item")
        if len(draft.sources) == 1:
            source = draft.sources[0]
            source_draft = self.drafts[source]
            readable += ["args.v", f"steps.s{source}.result | default(0)"]
            if source_draft.single and not source_draft.looped:
                readable += [f"ctx.k{source}{label} | default(-1)" for label in source_draft.labels]
        chosen = self.random.sample(readable, k=min(self.random.choice((0, 2, 3, 3)), len(readable)))
        return [f'"{{{{ {value} }}}}"' for value in chosen]

    def _policy(self, position: int) -> str:
        failed = f'{{when: "{FAILED}", then: {{do: DO}}}}'
        polling = retry_rule("{{ outcome.status == 'ok' and outcome.result == 3 }}", ", attempts: 4")
        jump = f'{{when: "{{{{ outcome.result == 4 }}}}", then: {{do: jump, to: t{max(position - 1, 0)}}}}}'
        last_rule = self.random.choice(
            (
                "",
                failed.replace("DO", "break"),
                failed.replace("DO", "continue"),
                failed.replace("DO", "fail"),
            )
        )
        delay = self.random.choice((0, 1, 4, 12))
        retrying = retry_rule(FAILED, f", attempts: {self.random.randint(2, 4)}, delay: {delay}")
        first_rule = self.random.choice(("", "", retrying, retrying, polling, jump))
        policies = [rule for rule in (first_rule, last_rule if first_rule != retrying else "") if rule]
        return policy_rules(*policies) if policies else ""
