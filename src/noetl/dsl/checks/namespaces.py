"""Namespaces exist in some places and not in others (000 §3.2)."""

from functools import cached_property

from noetl.dsl.checks.flow.name_reads import uses_beside_item
from noetl.dsl.checks.flow.name_sources import step_writes
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole
from noetl.dsl.document.playbook import Playbook, entry_reads
from noetl.dsl.document.shape_check import did_you_mean
from noetl.expr.runtime.scope import NAMESPACES
from noetl.expr.use import Use

_INPUT = frozenset({"workload", "execution_id"})
_STATE = _INPUT | {"ctx", "steps"}
_RUN = _STATE | {"args", "joined", "run"}
_PIPELINE = _RUN | {"iter", "_prev", "_task", "_attempt"}
_ATTEMPT = _PIPELINE | {"_idempotency_key"}
_OUTCOME = _PIPELINE | {"outcome"}
_ROUTING = _RUN | {"event"}

VISIBLE: dict[ExpressionRole, frozenset[str]] = {
    ExpressionRole.WORKLOAD: _INPUT,
    ExpressionRole.KEYCHAIN: _INPUT,
    ExpressionRole.OUTPUT: _STATE,
    ExpressionRole.ADMIT: _STATE | {"args"},
    ExpressionRole.STEP_ARGS: _STATE | {"args", "joined"},
    ExpressionRole.LOOP: _RUN,
    ExpressionRole.TASK_ARGS: _ATTEMPT,
    ExpressionRole.INPUT: _ATTEMPT,
    ExpressionRole.SPEC: _ATTEMPT,
    ExpressionRole.POLICY: _OUTCOME,
    ExpressionRole.POLICY_WRITE: _OUTCOME,
    ExpressionRole.TASK_WRITE: _OUTCOME,
    ExpressionRole.STEP_WRITE: _ROUTING,
    ExpressionRole.ARC: _ROUTING,
    ExpressionRole.ARC_ARGS: _ROUTING,
    ExpressionRole.ARC_WRITE: _ROUTING,
}

KEYCHAIN_ROLES = frozenset({ExpressionRole.INPUT, ExpressionRole.TASK_ARGS, ExpressionRole.KEYCHAIN})

NAMESPACE_HOMES = {
    "outcome": "it exists in task policies and in a task's `set`",
    "output": "it exists in task policies and in a task's `set`",
    "event": "it exists in arcs and in a step's `set`",
    "iter": "it exists while the pipeline runs",
    "joined": "it exists in steps with `spec.policy.join`",
    "run": "it exists while a step runs, and in its arcs",
    "args": "a token brings it to a step",
    "_prev": "it exists inside a pipeline",
    "_task": "it exists inside a pipeline",
    "_attempt": "it exists inside a pipeline",
    "_idempotency_key": "it exists in what a tool gets: inputs, args, spec",
}

_INSTEAD = {
    ("outcome", _ROUTING): "use `event.result` or `event.error`",
    ("output", _ROUTING): "use `event.result` or `event.error`",
    ("_prev", _ROUTING): "use `event.result`",
    ("iter", _ROUTING): "keep it with `set_run` and read `run`, or read `event.result`",
    ("outcome", _ATTEMPT): "use `_prev` or the label of an earlier task",
    ("output", _ATTEMPT): "use `_prev` or the label of an earlier task",
    ("event", _OUTCOME): "use `outcome`",
}

_ENVELOPE = frozenset({"status", "result", "data", "error", "meta", "http", "pg", "py"})


def check_namespaces(playbook: Playbook, context: DocumentContext) -> None:
    """Every namespace that an expression reads exists where the expression stands."""
    names = _Names(playbook)
    for occurrence in context.occurrences:
        role = occurrence.part.role
        visible = VISIBLE[role]
        if role is ExpressionRole.SPEC and occurrence.part.task < 0 and occurrence.part.step:
            visible = VISIBLE[ExpressionRole.STEP_ARGS]
        for use in uses_beside_item(occurrence, playbook.steps.get(occurrence.part.step)):
            name = use.path[0]
            if name == "keychain":
                _check_keychain(playbook, context, occurrence, use)
            elif name in NAMESPACES:
                if name not in visible:
                    _report(context, occurrence, use, visible)
                elif name == "joined" and not use.optional:
                    _check_joined(playbook, context, occurrence, use)
            elif name == "output" and "outcome" not in visible and names.lack_output(use):
                _report(context, occurrence, use, visible)


def _report(
    context: DocumentContext, occurrence: ExpressionOccurrence, use: Use, visible: frozenset[str]
) -> None:
    name = use.path[0]
    if occurrence.part.role is ExpressionRole.KEYCHAIN:
        hint = "the keychain sees `workload`, `execution_id` and the entries before this one"
    elif visible == _INPUT:
        hint = "defaults see `workload` and `execution_id` alone"
    else:
        hint = _INSTEAD.get((name, visible)) or NAMESPACE_HOMES.get(name, "")
    context.report_inside(
        "namespace-scope",
        occurrence.scalar,
        use.offset,
        f"there is no `{name}` in {occurrence.part.role.value}",
        hint,
    )


def _check_joined(
    playbook: Playbook, context: DocumentContext, occurrence: ExpressionOccurrence, use: Use
) -> None:
    step = playbook.steps.get(occurrence.part.step)
    if step is not None and step.join is None:
        context.report_inside(
            "namespace-scope",
            occurrence.scalar,
            use.offset,
            f"there is no `joined` in `{step.name}`, which has no join",
            "add `spec.policy.join`, or use `args`",
        )


def _check_keychain(
    playbook: Playbook, context: DocumentContext, occurrence: ExpressionOccurrence, use: Use
) -> None:
    if occurrence.part.role not in KEYCHAIN_ROLES:
        context.report_inside(
            "keychain-scope",
            occurrence.scalar,
            use.offset,
            f"`keychain` cannot be used in {occurrence.part.role.value}",
            "use it in tool inputs, a task's `args` or `auth` alone",
        )
    elif occurrence.part.role is ExpressionRole.KEYCHAIN and (
        fault := _order_fault(playbook, occurrence, use)
    ):
        context.report_inside("keychain-order", occurrence.scalar, use.offset, *fault)
    elif len(use.path) > 1 and use.path[1] not in playbook.keychain:
        context.report_inside(
            "unknown-keychain",
            occurrence.scalar,
            use.offset,
            f"the keychain has no entry `{use.path[1]}`",
            did_you_mean(use.path[1], playbook.keychain) or "declare it under `keychain`",
        )


def _order_fault(playbook: Playbook, occurrence: ExpressionOccurrence, use: Use) -> tuple[str, str] | None:
    """Why an entry cannot read this one: only those before it are known by then."""
    name = occurrence.part.key
    if len(use.path) == 1:
        return "which entry this reads is known only when it is read", "name it: `keychain.NAME.FIELD`"
    read = use.path[1]
    if read == name:
        return f"the entry `{name}` reads itself", "give the value another name"
    names = list(playbook.keychain)
    if read not in names or names.index(read) < names.index(name):
        return None
    back = _reads_back(playbook, read, name)
    problem = "and that reads this one" if back else "which comes after it"
    hint = "leave out one of the two reads" if back else f"declare `{read}` before `{name}`"
    return f"the entry `{name}` reads `{read}`, {problem}", hint


def _reads_back(playbook: Playbook, start: str, target: str) -> bool:
    """Whether an entry reads another one, also by way of others."""
    waiting, seen = [start], {start}
    for name in waiting:  # which grows meanwhile
        for read in entry_reads(playbook.keychain[name]):
            if read == target:
                return True
            if read in playbook.keychain and read not in seen:
                seen.add(read)
                waiting.append(read)
    return False


class _Names:
    """Whether `output` may be somebody's own name: it is an alias only where `outcome` exists."""

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook

    def lack_output(self, use: Use) -> bool:
        return len(use.path) > 1 and use.path[1] in _ENVELOPE and not self._has_output

    @cached_property
    def _has_output(self) -> bool:
        playbook = self.playbook
        names: set[str] = {*playbook.workload, *playbook.steps}
        for step in playbook.workflow:
            names.update(step.args)
            names.update(write.path[0] for write in step_writes(step))
            names.update(name for arc in step.arcs for name in arc.args)
            if step.loop is not None:
                names.add(step.loop.iterator)
            for task in step.tasks:
                names.update((task.label, *(task.args or ())))
        return "output" in names
