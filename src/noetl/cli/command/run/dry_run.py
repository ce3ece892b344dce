"""What a run would do, without running anything."""

from collections.abc import Iterator
from typing import Any

from noetl.cli.command_failure import CommandFailure
from noetl.cli.console import visible
from noetl.cli.format import yaml_lines
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Arc, Loop, Playbook, Step, Task
from noetl.expr.expression import Expression
from noetl.expr.template import Constant, template_uses
from noetl.kernel.net.execution_request import render_workload
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import new_state
from noetl.model.errors import ExpressionError
from noetl.tools.host.worker_tools import unrunnable_tasks
from noetl.tools.python.lib_modules import tasks_without_modules

NO_EXECUTION = "00000000-0000-7000-8000-000000000000"
"""What `execution_id` is where there is none yet."""


def plan_json(
    playbook: Playbook,
    workload: dict[str, Any],
    ctx: dict[str, Any],
    kinds: Kinds,
    now: int,
    *,
    folder: str,
) -> dict[str, Any]:
    """The merged workload, and the steps in order. Raises CommandFailure if a default cannot be rendered.

    `folder` is that of the playbook.
    """
    try:
        merged = render_workload(new_state(Plan(playbook), NO_EXECUTION), workload, now)
    except ExpressionError as error:
        raise CommandFailure("expression", f"workload: {error.message}", hint=error.hint) from None
    return {
        "playbook": playbook.metadata.path,
        "version": playbook.metadata.version,
        "entry": playbook.entry,
        "final_step": playbook.executor.final_step,
        "workload": merged,
        "ctx": ctx,
        "keychain": [
            {"name": name, "kind": playbook.keychain[name].kind}
            if name in playbook.keychain
            else {"name": name}
            for name in _credential_names(playbook)
        ],
        "cannot_run": [
            {
                "step": task.step,
                "task": task.task,
                "kind": task.kind,
                "reason": task.reason,
                "hint": task.hint,
            }
            for task in (
                *unrunnable_tasks(playbook, kinds),
                *tasks_without_modules(playbook.workflow, folder),
            )
        ],
        "steps": [_step_json(step) for step in playbook.workflow],
    }


def _step_json(step: Step) -> dict[str, Any]:
    document: dict[str, Any] = {
        "step": step.name,
        "line": step.position.line,
        "tasks": [{"task": task.label, "kind": task.kind, "line": task.position.line} for task in step.tasks],
        "arcs": [_arc_json(arc) for arc in step.arcs],
    }
    if step.desc:
        document["desc"] = step.desc
    if step.arcs:
        document["mode"] = "exclusive" if step.is_exclusive else "inclusive"
    if step.loop is not None:
        document["loop"] = _loop_json(step.loop)
    if step.join is not None:
        document["join"] = step.join.mode if step.join.count is None else {"count": step.join.count}
    if step.admit is not None:
        document["on_deny"] = step.admit.on_deny
    return document


def _arc_json(arc: Arc) -> dict[str, Any]:
    return {"step": arc.step, "when": arc.when.source if isinstance(arc.when, Expression) else arc.when}


def _loop_json(loop: Loop) -> dict[str, Any]:
    items = loop.items
    over: Any = items.source if isinstance(items, Expression) else None
    if isinstance(items, Constant):
        over = items.value
    most = loop.max_in_flight
    document = {"in": over, "iterator": loop.iterator, "mode": loop.mode}
    if loop.mode == "parallel":
        document["max_in_flight"] = most.source if isinstance(most, Expression) else most
    return document


def _credential_names(playbook: Playbook) -> list[str]:
    """The names that tasks read from the keychain or name in `auth`, in document order."""
    return list(
        dict.fromkeys(
            name for step in playbook.workflow for task in step.tasks for name in _credentials_of(task)
        )
    )


def _credentials_of(task: Task) -> Iterator[str]:
    for data in (*task.inputs.values(), *(task.args or {}).values()):
        for use in template_uses(data):
            if use.path[0] == "keychain" and len(use.path) > 1:
                yield str(use.path[1])
    auth = task.inputs.get("auth")
    if isinstance(auth, Constant) and isinstance(auth.value, str):
        yield auth.value


def plan_text(plan: dict[str, Any]) -> str:
    """The plan as people read it."""
    lines = [f"{visible(plan['playbook'])}, begins at step `{plan['entry']}`; nothing was run", ""]
    for name in ("workload", "ctx"):
        if plan[name]:
            lines += [f"{name}:", *yaml_lines(plan[name], "  "), ""]
    if plan["keychain"]:
        lines.append("keychain:")
        lines += [
            f"  {entry['name']}  {entry.get('kind', 'from the credential store')}"
            for entry in plan["keychain"]
        ]
        lines.append("")
    if plan["cannot_run"]:
        lines.append("cannot run here:")
        for entry in plan["cannot_run"]:
            lines.append(f"  step {entry['step']}, task {entry['task']}: {visible(entry['reason'])}")
            lines.append(f"    hint: {visible(entry['hint'])}")
        lines.append("")
    lines.append("steps:")
    for step in plan["steps"]:
        lines += _step_lines(step, plan["final_step"])
    return "\n".join(lines) + "\n"


def _step_lines(step: dict[str, Any], final: str | None) -> Iterator[str]:
    about = [step["desc"]] if "desc" in step else []
    if step["step"] == final:
        about.append("runs at the end")
    if "join" in step:
        join = step["join"]
        about.append(f"waits for {join['count']} tokens" if isinstance(join, dict) else f"joins {join}")
    if "on_deny" in step:
        about.append(f"is guarded, else {step['on_deny']}")
    yield f"  {step['step']}" + (f"  ({visible('; '.join(about))})" if about else "")
    if "loop" in step:
        loop = step["loop"]
        most = f", up to {loop['max_in_flight']} at a time" if "max_in_flight" in loop else ""
        yield f"    for {loop['iterator']} in {_short_text(loop['in'])}, {loop['mode']}{visible(most)}"
    width = max((len(task["task"]) for task in step["tasks"]), default=0)
    for task in step["tasks"]:
        yield f"    {task['task']:<{width}}  {task['kind']}"
    for arc in step["arcs"]:
        yield f"    → {arc['step']}" + ("" if arc["when"] is True else f"  when {_short_text(arc['when'])}")


def _short_text(value: Any) -> str:
    text = visible(value if isinstance(value, str) else next(yaml_lines(value), ""))
    if isinstance(value, list | dict) and len(value) > 1:
        text = f"{len(value):,} items"
    return text if len(text) <= 80 else text[:79] + "…"
