"""Random playbooks in two spellings: canonical, and as the language is in use."""

from random import Random
from typing import Any, NamedTuple

from tests.dsl.in_use.twin_reads import TwinStep, input_reads, routing_reads
from tests.dsl.in_use.twin_rules import PolicyWriter
from tests.dsl.in_use.twin_sections import EFFECTLESS, ENTRIES, cursor_twin, section_twins
from tests.dsl.in_use.twin_tasks import TaskTwin, Twin, task_twins

SUCCEEDED = "event.name != 'step.failed'"
_GUARD = "arc whose guard does not read `event`"
_INPUT = "step `input` beside `loop`"


class TwinDocument(NamedTuple):
    in_use: dict[str, Any]
    canonical: dict[str, Any]
    warns: set[str]
    """Codes of warnings that the document in use gets."""
    rows: set[str]
    """The rows of docs/dialects.md of which something is in it."""


class _Written(NamedTuple):
    step: TwinStep
    in_use: dict[str, Any]
    canonical: list[dict[str, Any]]
    """A cursor is two steps there."""


class TwinWriter:
    """Writes both forms of one playbook: steps one after the other, and routers whose branches meet."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._sure: list[TwinStep] = []
        """The steps that have surely run and succeeded where the next one begins."""
        self._unsure: list[TwinStep] = []
        self._written: list[_Written] = []
        self._first_parts: dict[str, str] = {}
        """By label, the first of the canonical tasks that a task stands for."""
        self._rows: set[str] = set()
        self._warns: set[str] = set()

    def document(self) -> TwinDocument:
        before: list[TwinStep] = []
        for _ in range(self._random.randint(1, 3)):
            before = self._random.choice([self._chain, self._chain, self._branches, self._cursor])(before)
        if before and self._chance():
            self._end(before)
        self._finish()
        old: dict[str, Any] = {"apiVersion": "noetl.io/v2", "kind": "Playbook"}
        new = dict(old)
        old["metadata"] = {"name": "twin", "path": "twin"}
        new["metadata"] = {**old["metadata"], "dialect": "canonical"}
        old["workload"] = new["workload"] = {"w": 1, "items": [1, 2], "single": {"a": 1}}
        for section in section_twins(self._written[0].step):
            if self._chance():
                old |= section.in_use
                new |= section.canonical
                self._rows.add(section.row)
                self._warns.update(section.warns)
        if self._chance():
            old["keychain"] = [entry.in_use for entry in ENTRIES]
            new["keychain"] = [twin for entry in ENTRIES for twin in entry.canonical]
            self._rows.update(entry.row for entry in ENTRIES)
        old["workflow"] = [written.in_use for written in self._written]
        new["workflow"] = [step for written in self._written for step in written.canonical]
        return TwinDocument(old, new, self._warns, self._rows)

    def _chance(self) -> bool:
        return self._random.random() < 0.4

    def _chain(self, before: list[TwinStep]) -> list[TwinStep]:
        for _ in range(self._random.randint(1, 3)):
            before = [self._step(before)]
        return before

    def _branches(self, before: list[TwinStep]) -> list[TwinStep]:
        """A router, its branches, and the step where they meet."""
        mode = self._random.choice(["inclusive", "exclusive"])
        router = self._step(before)
        for form in (self._written[-1].in_use, self._written[-1].canonical[0]):
            form["next"] = {"spec": {"mode": mode}}
        sure, unsure = list(self._sure), list(self._unsure)
        branches = []
        always_succeeded = True
        for _ in range(self._random.randint(2, 3)):
            self._sure, self._unsure = list(sure), list(unsure)
            branches.append(self._step([router]))
            always_succeeded = always_succeeded and router in self._sure
        self._sure = [*sure, router] if always_succeeded else sure
        self._unsure = [*unsure, *branches, *([] if always_succeeded else [router])]
        meeting = self._step(branches)
        if mode == "inclusive":
            spec = self._written[-1].canonical[0].setdefault("spec", {})
            spec["policy"] = {**spec.get("policy", {}), "join": "all"}
            self._rows.add("several tokens meet at a step")
        return [meeting]

    def _cursor(self, before: list[TwinStep]) -> list[TwinStep]:
        step = self._new_step(before)
        flight = self._random.choice([1, 3])
        twin = cursor_twin(step.source, by_frame=self._chance(), flight=flight)
        for form in (twin.claim, twin.work):
            form["step"] = form["step"].replace(step.source, step.name)
        for arc in (twin.claim["next"]["arcs"][0], twin.work["next"]["arcs"][0]):
            arc["step"] = arc["step"].replace(step.source, step.name)
        if step.source != step.name:
            twin.claim["desc"] = step.source
        self._written.append(_Written(step, twin.in_use, [twin.claim, twin.work]))
        self._rows.add("`mode: cursor`")
        return [step]

    def _end(self, before: list[TwinStep]) -> None:
        step = self._new_step(before)
        new = {"step": step.name, "tool": {"kind": "noop"}}
        if step.source != step.name:
            new["desc"] = step.source
        self._written.append(_Written(step, {"step": step.source}, [new]))
        self._rows.add("step with neither `tool` nor `next`")

    def _new_step(self, before: list[TwinStep]) -> TwinStep:
        """A step that arcs of these lead to."""
        number = len(self._written)
        step = TwinStep(f"s{number}", f"s{number}")
        if self._random.random() < 0.2:
            step.source, step.name = f"a/s{number}.b c", f"a_s{number}_b_c"
            self._rows.add("step names with `/`, `.` or spaces")
        step.before = before
        are_sure = [self._arc(other, step) for other in before]
        # Only a step before all others is surely done; branches exclude each other.
        if len(before) == 1 and are_sure[0] and before[0].kinds:
            self._sure.append(before[0])
        elif len(before) == 1 and before[0].kinds:
            self._unsure += before
            self._sure = [other for other in self._sure if other is not before[0]]
        return step

    def _arc(self, before: TwinStep, step: TwinStep) -> bool:
        """An arc; whether it fires after a success alone."""
        written = next(written for written in self._written if written.step is before)
        guard, is_sure = self._guard(before)
        old: dict[str, Any] = {"step": step.source}
        new: dict[str, Any] = {"step": step.name, "when": guard.canonical}
        if guard.in_use is not None:
            key, value = guard.in_use
            old[key] = value
        self._rows.update(guard.rows)
        if before.kinds and self._chance():
            read = self._random.choice(routing_reads(before))
            read.when_drawn()
            old["set"] = {"arg": f"{{{{ {read.in_use} }}}}", f"ctx.c{len(self._written)}": 1}
            new["set"] = {"arg": f"{{{{ {read.canonical} }}}}", f"ctx.c{len(self._written)}": 1}
            self._rows.update(read.rows)
        for form, arc in ((written.in_use, old), (written.canonical[0], new)):
            form.setdefault("next", {}).setdefault("arcs", []).append(arc)
        if not before.kinds and "call.error" in new["when"]:  # rows may fail, too
            written.canonical[1]["next"]["arcs"].append(dict(new))
        if before.kinds and self._chance() and "on_no_match" not in written.in_use["next"].get("spec", {}):
            written.in_use["next"]["spec"] = {
                **written.in_use["next"].get("spec", {}),
                "on_no_match": "quiet",
            }
            self._rows.add("`next.spec.on_no_match`")
        return is_sure

    def _guard(self, before: TwinStep) -> tuple[Twin, bool]:
        """The guard of an arc as an entry, and whether it holds after a success alone."""
        always = f"{{{{ {SUCCEEDED} }}}}"
        guards = [
            (Twin(None, always, (_GUARD,)), True),
            (Twin(("when", True), always, (_GUARD,)), True),
            (Twin(("when", "{{ w == 1 }}"), f"{{{{ {SUCCEEDED} and w == 1 }}}}", (_GUARD,)), True),
            (
                Twin(
                    ("when", "{{ w == 1 or w == 2 }}"),
                    f"{{{{ {SUCCEEDED} and (w == 1 or w == 2) }}}}",
                    (_GUARD,),
                ),
                True,
            ),
            (
                Twin(
                    ("when", "{{ event.name == 'call.error' }}"),
                    "{{ event.name == 'call.error' }}",
                    ("`call.done`, `call.error`",),
                ),
                False,
            ),
            (
                Twin(("when", "{{ output.status == 'error' }}"), "{{ event.status == 'error' }}"),
                False,
            ),
        ]
        read = self._random.choice(routing_reads(before)) if before.kinds else None
        if read is not None:
            guards.append(
                (
                    Twin(
                        ("when", f"{{{{ {read.in_use} == 1 }}}}"),
                        f"{{{{ {SUCCEEDED} and {read.canonical} == 1 }}}}",
                        read.rows,
                    ),
                    True,
                )
            )
            row = ("arc `cond: exit_code == 0`",)
            guards.append((Twin(("cond", "x == 0"), "{{ event.result.x == 0 }}", row), False))
        else:
            guards = guards[:5]
        guard, is_sure = self._random.choice(guards)
        if read is not None and guard.canonical.endswith(f"{read.canonical} == 1 }}}}"):
            read.when_drawn()
        return guard, is_sure

    def _step(self, before: list[TwinStep]) -> TwinStep:
        step = self._new_step(before)
        if self._random.random() < 0.1:
            return self._iterator_step(step)
        step.iterator = self._random.choice(["", "", "item", "run"])
        old: dict[str, Any] = {"step": step.source}
        new: dict[str, Any] = {"step": step.name}
        if step.source != step.name:
            new["desc"] = step.source
        if step.is_loop:
            self._loop(step, old, new)
        beside: dict[str, Any] = {}
        if self._chance():
            old["input"] = {"given": "{{ w + 1 }}"}
            if step.is_loop:
                beside = {"given": "{{ w + 1 }}"}
                self._rows.add(_INPUT)
            else:
                new["args"] = {"given": "{{ w + 1 }}"}
        labels = [f"t{len(self._written)}_{index}" for index in range(self._random.randint(1, 3))]
        tasks = [self._task(step, label, labels[at + 1 :], beside) for at, label in enumerate(labels)]
        old["tool"] = [task.in_use for task in tasks]
        new["tool"] = [part for task in tasks for part in task.canonical]
        if self._chance():
            old["output"] = {"inline_max_bytes": 9}
            new["spec"] = {"result": {"inline_max_bytes": 9}}
            self._rows.add("`output: {output_select, store, inline_max_bytes}` of a task or step")
        if self._chance():
            rules = {"rules": [{"else": {"then": {"allow": True}}}]}
            old["spec"] = {"policy": {"admit": {"mode": "all", **rules}}}
            new["spec"] = {**new.get("spec", {}), "policy": {"admit": rules}}
            self._rows.add(EFFECTLESS)
            self._warns.add("no-effect")
        self._written.append(_Written(step, old, [new]))
        if self._chance():
            self._step_set(step, old, new)
        return step

    def _iterator_step(self, step: TwinStep) -> TwinStep:
        """A python task with an iterator of its own, which reads what is called `context` there."""
        step.iterator = "item"
        task = {"name": "each", "kind": "python", "code": "result = item"}
        iterator = {"items": "{{ items }}", "item": "item"}
        old: dict[str, Any] = {"step": step.source, "tool": {**task, "iterator": iterator}}
        new: dict[str, Any] = {"step": step.name, "tool": {**task, "args": {"item": "{{ iter.item }}"}}}
        new["loop"] = {"in": "{{ items }}", "iterator": "item"}
        self._rows.add("python `iterator: {items, item}`")
        if not step.before:
            for form in (old, new):
                form["tool"]["code"] = "result = [item, context]"
            new["tool"]["args"]["context"] = {
                **{name: f"{{{{ workload.{name} }}}}" for name in ("w", "items", "single")},
                "execution_id": "{{ execution_id }}",
                "step": step.name,
                "args": "{{ args | default({}) }}",
                "workload": "{{ workload }}",
            }
            self._rows.add("python `context` in code")
        if step.source != step.name:
            new["desc"] = step.source
        step.labels.append("each")
        step.kinds.append("python")
        self._written.append(_Written(step, old, [new]))
        return step

    def _loop(self, step: TwinStep, old: dict[str, Any], new: dict[str, Any]) -> None:
        row = "`in:` gives a mapping or scalar; null"
        collections = [
            Twin("{{ items }}", "{{ items }}"),
            Twin([1, 2], [1, 2]),
            Twin("{{ single }}", "{{ single | as_list }}", (row,)),
            Twin("{{ w }}", "{{ w | as_list }}", (row,)),
            Twin("text", ["text"], (row,)),
            Twin({"a": 1}, [{"a": 1}], (row,)),
            Twin(None, [], (row,)),
        ]
        drawn = self._random.choice(collections)
        self._rows.update(drawn.rows)
        old["loop"] = {"in": drawn.in_use, "iterator": step.iterator}
        new["loop"] = {"in": drawn.canonical, "iterator": step.iterator}
        if self._chance():
            old["loop"]["spec"] = {"policy": {"results": {"a": 1}}}
            self._rows.add(EFFECTLESS)
            self._warns.add("no-effect")

    def _step_set(self, step: TwinStep, old: dict[str, Any], new: dict[str, Any]) -> None:
        read = self._random.choice(routing_reads(step))
        read.when_drawn()
        number = len(self._written)
        old["set"] = {f"k{number}": f"{{{{ {read.in_use} }}}}", f"step.r{number}": 1, f"ctx.l{number}": 2}
        new["set"] = {
            f"ctx.k{number}": f"{{{{ {read.canonical} }}}}",
            f"run.r{number}": 1,
            f"ctx.l{number}": 2,
        }
        self._rows.update([*read.rows, "`set: {step.x: …}`"])

    def _task(self, step: TwinStep, label: str, behind: list[str], beside: dict[str, Any]) -> Twin:
        """One task in use, and the canonical ones that it stands for."""
        twin = self._random.choice(task_twins(label, iterator=step.iterator))
        old: dict[str, Any] = {"name": label, "kind": twin.kind, **twin.in_use}
        new: dict[str, Any] = {"name": label, "kind": twin.kind, **twin.canonical}
        self._rows.update([twin.row] if twin.row else [])
        own_args: dict[str, Any] = {}
        takes_input = not {"input", "payload", "result"} & twin.in_use.keys() and not twin.before
        if takes_input and self._chance():
            read = self._random.choice(input_reads(step, self._sure, self._unsure)).draw(self._random)
            old["input"] = {"a": read.in_use}
            own_args = {"a": read.canonical}
            self._rows.update(read.rows)
        args = {**beside, **twin.canonical.get("args", {}), **own_args}
        if args:
            new["args"] = args
        if self._chance() and "pool" not in twin.in_use:
            old["timeout"] = 3
            new["spec"] = {**new.get("spec", {}), "timeout": 3}
            self._rows.add("`timeout`, `timeout_seconds`")
        self._policy(step, old, new, twin, behind)
        if twin.before:
            self._first_parts[label] = twin.before[0]["name"]
        parts = [
            {**part, **({"args": {**beside, **part.get("args", {})}} if beside else {})}
            for part in twin.before
        ]
        return Twin(old, [*parts, new])

    def _policy(
        self, step: TwinStep, old: dict[str, Any], new: dict[str, Any], twin: TaskTwin, behind: list[str]
    ) -> None:
        step.labels.append(old["name"])
        step.kinds.append(twin.kind)
        writer = PolicyWriter(self._random, step, is_last=not behind, targets=behind)
        policy = writer.write()
        self._rows.update(policy.rows)
        for form, part in ((old, policy.in_use), (new, policy.canonical)):
            spec = {**form.get("spec", {}), **part.pop("spec", {})}
            form.update(part)
            if spec:
                form["spec"] = spec

    def _finish(self) -> None:
        """What steps write because others read it, which is known only now."""
        for written in self._written:
            step, new = written.step, written.canonical[0]
            for task in new["tool"] if isinstance(new["tool"], list) else []:
                writes = {}
                if task["name"] in step.kept:
                    writes[f"ctx.task_results.{step.name}.{task['name']}"] = "{{ outcome.result }}"
                if task["name"] in step.kept_for_run:
                    writes[f"run.{task['name']}"] = "{{ outcome.result }}"
                if writes:
                    task["set"] = {**task.get("set", {}), **writes}
                for rule in task.get("spec", {}).get("policy", {}).get("rules", []):
                    then = rule.get("then", rule.get("else", {}))
                    then = then.get("then", then)
                    if "to" in then:
                        then["to"] = self._first_parts.get(then["to"], then["to"])
            targets = {other.step.name: other.step for other in self._written}
            for arc in new.get("next", {}).get("arcs", []):
                if step.keeps_reference:
                    arc["set"] = {
                        **arc.get("set", {}),
                        f"ctx.result_refs.{step.name}": "{{ event.result_ref }}",
                    }
                target = targets.get(arc["step"])
                if target is not None and target.wants_result:
                    arc["args"] = {"result": "{{ event.result }}", **arc.get("args", {})}
