"""The places where names are read that something has to set."""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from noetl.dsl.checks.flow.name_sources import NameSources, task_arg_paths
from noetl.dsl.checks.flow.path_sets import Path
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole
from noetl.dsl.document.playbook import Playbook, Step
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, ITERATOR_NAMESPACES, NAMESPACES
from noetl.expr.use import Use


class NameScope(enum.Enum):
    """Where a name lives. Bare names are looked for in several places."""

    CTX = "ctx"
    ARGS = "args"
    ITER = "iter"
    RUN = "run"
    STEPS = "steps"
    BARE = ""


class NameRead(NamedTuple):
    """One name in one expression. `path` begins after the namespace."""

    occurrence: ExpressionOccurrence
    use: Use
    scope: NameScope
    path: Path

    @property
    def name(self) -> str:
        """The name as it is written; of a bare one the first key."""
        return self.path[0] if self.scope is NameScope.BARE else ".".join((self.scope.value, *self.path))

    @property
    def tolerant(self) -> bool:
        """Whether an unset name does no harm here, or nobody knows which steps came before."""
        return self.occurrence.guard or self.occurrence.part.role is ExpressionRole.OUTPUT


_IN_PIPELINE = frozenset(
    {
        ExpressionRole.TASK_ARGS,
        ExpressionRole.INPUT,
        ExpressionRole.SPEC,
        ExpressionRole.POLICY,
        ExpressionRole.POLICY_WRITE,
        ExpressionRole.TASK_WRITE,
    }
)
_AFTER_TASK = frozenset({ExpressionRole.POLICY, ExpressionRole.POLICY_WRITE, ExpressionRole.TASK_WRITE})
_SCOPES = {scope.value: scope for scope in NameScope if scope is not NameScope.BARE}
_ALWAYS = frozenset({"job"})
"""Bare names that every execution has."""


def is_in_pipeline(occurrence: ExpressionOccurrence) -> bool:
    """Whether it is evaluated while the pipeline runs; a step's own timeout is not."""
    return occurrence.part.role in _IN_PIPELINE and occurrence.part.task >= 0


def uses_beside_item(occurrence: ExpressionOccurrence, step: Step | None) -> Iterator[Use]:
    """The uses without those of the loop's item where its name is that of a namespace."""
    loop = step.loop if step is not None else None
    uses = occurrence.expression.uses
    if loop is None or loop.iterator not in ITERATOR_NAMESPACES or not is_in_pipeline(occurrence):
        return iter(uses)
    return (use for use in uses if use.path[0] != loop.iterator)


def name_reads(playbook: Playbook, context: DocumentContext, sources: NameSources) -> Iterator[NameRead]:
    """Every read of a name that could be unset, in the order of reading."""
    steps = playbook.steps
    for occurrence in context.occurrences:
        part = occurrence.part
        if part.role is ExpressionRole.WORKLOAD or (
            part.step not in steps and part.role is not ExpressionRole.OUTPUT
        ):
            continue
        for use in uses_beside_item(occurrence, steps.get(part.step)):
            if use.optional:
                continue
            head = use.path[0]
            scope = _SCOPES.get(head)
            if scope is not None:
                read = NameRead(occurrence, use, scope, use.path[1:])
                if read.path and not _is_provided(read, playbook):
                    yield read
            elif head not in NAMESPACES and head not in sources.workload and head not in _ALWAYS:
                read = NameRead(occurrence, use, NameScope.BARE, use.path)
                if not _is_provided(read, playbook):
                    yield read


def _is_provided(read: NameRead, playbook: Playbook) -> bool:
    """Names that the engine sets, and namespaces that do not exist here: another check speaks of those."""
    role, step = read.occurrence.part.role, playbook.steps.get(read.occurrence.part.step)
    match read.scope:
        case NameScope.CTX:
            return read.path[0] == "signals"
        case NameScope.ITER:
            return (
                read.path[0] in BUILTIN_ITER_KEYS
                or not is_in_pipeline(read.occurrence)
                or _is_item(read, step)
            )
        case NameScope.RUN:
            return role in (
                ExpressionRole.ADMIT,
                ExpressionRole.STEP_ARGS,
                ExpressionRole.OUTPUT,
                ExpressionRole.SPEC,
            ) and not is_in_pipeline(read.occurrence)
        case NameScope.ARGS:
            return step is None or step.name == playbook.executor.final_step
        case NameScope.STEPS:
            return read.path[0] not in playbook.steps
        case NameScope.BARE:
            return (read.path[0] == "output" and role in _AFTER_TASK) or _is_item(read, step)


def _is_item(read: NameRead, step: Step | None) -> bool:
    """Whether it is what the loop runs over."""
    loop = step.loop if step is not None else None
    return loop is not None and read.path[0] == loop.iterator and is_in_pipeline(read.occurrence)


def can_be_set(read: NameRead, playbook: Playbook, sources: NameSources) -> bool:
    """Whether anything sets the name: for this place, or in a guard for any place at all."""
    local = sources.everywhere if read.tolerant else sources.of_step(read.occurrence.part.step)
    match read.scope:
        case NameScope.CTX:
            return read.path in sources.ctx
        case NameScope.ITER:
            return read.path in local.iter
        case NameScope.RUN:
            return read.path in local.run
        case NameScope.ARGS:
            return read.path in local.args or _is_own_arg(read, playbook)
        case NameScope.STEPS:
            return True
        case NameScope.BARE:
            head = read.path[0]
            if head in playbook.steps or read.path in sources.ctx or read.path in local.args:
                return True
            if not read.tolerant and not is_in_pipeline(read.occurrence):
                return False
            return head in local.labels or read.path in local.iter or _is_own_arg(read, playbook)


def _is_own_arg(read: NameRead, playbook: Playbook) -> bool:
    part = read.occurrence.part
    if not is_in_pipeline(read.occurrence) or part.role is ExpressionRole.TASK_ARGS:
        return False
    return any(path[0] == read.path[0] for path in task_arg_paths(playbook.steps[part.step].tasks[part.task]))
