"""An abstract playbook as a document."""

import json
from typing import Any

from noetl.testing.oracle.abstract_playbook import (
    AbstractArc,
    AbstractLoop,
    AbstractPlaybook,
    AbstractStep,
    Condition,
    Write,
)
from noetl.testing.simulator.playbook_fragments import join_entries
from noetl.testing.simulator.playbook_pieces import ArcPiece, SimulatedPlaybook, StepPiece, TaskPiece

V_NOW = "(args.v | default(0))"


def canonical_document(playbook: AbstractPlaybook, *, timed: bool = False) -> SimulatedPlaybook:
    """`timed`: steps that take time wait for it. Their ends are the same."""
    executor = ["max_step_runs: 500"]
    steps = [_step(step, timed=timed) for step in playbook.steps]
    if playbook.final is not None:
        executor.append(f"final_step: {playbook.final.name}")
        summary = '"{{ [args.status, args.waiting | length, args.discarded | length] }}"'
        tasks = [TaskPiece("tell", "kind: noop", f"set: {{ctx.final: {summary}}}")]
        tasks += [_check("true")] if playbook.final.failing else []
        steps.append(StepPiece(playbook.final.name, tasks=tuple(tasks)))
    if playbook.output:
        executor.append(f"output: \"{{{{ ctx.{playbook.output} | default('none') }}}}\"")
    if playbook.no_next_is_error:
        executor.append("no_next_is_error: true")
    return SimulatedPlaybook("random/oracle", ", ".join(executor), tuple(steps))


def _step(step: AbstractStep, *, timed: bool) -> StepPiece:
    tasks = [TaskPiece("sleep", f"kind: wait, seconds: {step.seconds}")] if timed and step.seconds else []
    if step.loop is not None:
        tasks += _iteration(step.loop)
    elif step.tool != "none":
        tasks += _tasks(step)
    join = json.dumps({"count": step.join}) if isinstance(step.join, int) else step.join
    return StepPiece(
        step.name,
        spec=f"policy: {{join: {join}}}" if step.join else "",
        loop=_loop(step.loop) if step.loop is not None else "",
        writes=_writes(step.ending_writes),
        tasks=tuple(tasks),
        exclusive=not step.inclusive,
        arcs=tuple(_arc(step, arc) for arc in step.arcs),
    )


def _tasks(step: AbstractStep) -> list[TaskPiece]:
    entries = []
    if step.tool == "value":
        entries = [f"step: {step.name}", 'args: "{{ args }}"']
        if step.join:
            entries.append("joined: \"{{ joined | map(attribute='step') | list }}\"")
        if step.reads:
            entries.append(f"seen: \"{{{{ ctx.{step.reads} | default('none') }}}}\"")
    args = f"args: {{{', '.join(entries)}}}" if entries else ""
    writes = f"set: {{{_writes(step.writes)}}}" if step.writes else ""
    tasks = [TaskPiece("work", "kind: noop", join_entries(args, writes))]
    if step.failing:
        tasks.append(_check(f"{V_NOW} in {sorted(step.failing)}"))
    return tasks


def _iteration(loop: AbstractLoop) -> list[TaskPiece]:
    write = f'set: {{ctx.{loop.key}: "{{{{ iter.item }}}}"}}' if loop.key else ""
    tasks = [TaskPiece("write", "kind: noop", write)]
    tasks += [TaskPiece("again", "kind: noop", write)] if loop.twice else []
    seen = f'seen: "{{{{ ctx.{loop.key} }}}}"' if loop.key else ""
    entries = join_entries('index: "{{ iter.index }}"', 'item: "{{ iter.item }}"', seen)
    tasks.append(TaskPiece("work", "kind: noop", f"args: {{{entries}}}"))
    return [*tasks, _check(f"iter.index in {sorted(loop.failing)}")] if loop.failing else tasks


def _check(condition: str) -> TaskPiece:
    rule = f'{{when: "{{{{ {condition} }}}}", then: {{do: fail}}}}'
    return TaskPiece("check", "kind: noop", f"spec: {{policy: {{rules: [{rule}]}}}}")


def _loop(loop: AbstractLoop) -> str:
    mode = (
        f"parallel, max_in_flight: {loop.in_flight}, window: {loop.window}" if loop.parallel else "sequential"
    )
    share = "distributed" if loop.distributed else "local"
    failure = "best_effort" if loop.best_effort else "fail_fast"
    policy = f"policy: {{exec: {share}, failure: {{mode: {failure}}}}}"
    reduce = f"reduce: {{{loop.key}: {loop.reducer}}}" if loop.reducer else ""
    spec = join_entries(f"mode: {mode}", policy, reduce)
    return f"in: {json.dumps(loop.items)}, iterator: item, spec: {{{spec}}}"


def _arc(step: AbstractStep, arc: AbstractArc) -> ArcPiece:
    guard = "" if arc.condition == ("always",) else f'when: "{{{{ {_guard(arc.condition)} }}}}"'
    summary = '"-"'
    if step.loop is not None:
        counts = ", ".join(f"'{name}': event.loop.{name}" for name in ("total", "succeeded", "failed"))
        summary = f"\"{{{{ {{{counts}}} if event.name == 'loop.done' else '-' }}}}\""
    args = f'args: {{v: "{{{{ {V_NOW} + {arc.more} }}}}", of_{step.name}: {summary}}}'
    writes = f"set: {{{_writes(arc.writes)}}}" if arc.writes else ""
    return ArcPiece(arc.target, join_entries(guard, args, writes))


def _guard(condition: Condition) -> str:
    match condition:
        case ("name", name):
            return f"event.name == '{name}'"
        case ("status", status):
            return f"event.status == '{status}'"
        case ("failed", kind):
            return f"event.error.kind == '{kind}'"
        case ("v", least):
            return f"{V_NOW} >= {least}"
        case ("below", limit):
            return f"{V_NOW} < {limit}"
        case ("ctx", key, value):
            return f"(ctx.{key} | default(0)) == {value}"
        case ("result", value):
            return f"event.result.args.v == {value}"
        case ("some failed",):
            return "event.loop.failed > 0"
        case _:
            raise ValueError(condition)


def _writes(writes: tuple[Write, ...]) -> str:
    return ", ".join(f"ctx.{key}: {_value(value)}" for key, value in writes)


def _value(value: Any) -> str:
    match value:
        case ("v",):
            return f'"{{{{ {V_NOW} }}}}"'
        case ("next", key):
            return f'"{{{{ (ctx.{key} | default(0)) + 1 }}}}"'
        case _:
            return json.dumps(value)
