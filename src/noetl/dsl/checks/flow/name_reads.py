"""The places where names are read that something has to set."""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from noetl.dsl.checks.flow.name_sources import Sources, own_args
from noetl.dsl.checks.flow.path_sets import Path
from noetl.dsl.document.playbook import Playbook, Step
from noetl.dsl.reader.reader_context import Context, Role, Site
from noetl.expr import BUILTIN_ITER, NAMESPACES, Use


class Space(enum.Enum):
    """Where a name lives. Bare names are looked for in several places."""

    CTX = "ctx"
    ARGS = "args"
    ITER = "iter"
    RUN = "run"
    STEPS = "steps"
    BARE = ""


class Read(NamedTuple):
    """One name in one expression. `path` begins after the namespace."""

    site: Site
    use: Use
    space: Space
    path: Path

    @property
    def name(self) -> str:
        """The name as it is written; of a bare one the first key."""
        return self.path[0] if self.space is Space.BARE else ".".join((self.space.value, *self.path))

    @property
    def tolerant(self) -> bool:
        """Whether an unset name does no harm here, or nobody knows which steps came before."""
        return self.site.guard or self.site.where.role is Role.OUTPUT


_IN_PIPELINE = frozenset(
    {Role.TASK_ARGS, Role.INPUT, Role.SPEC, Role.POLICY, Role.POLICY_WRITE, Role.TASK_WRITE}
)
_AFTER_TASK = frozenset({Role.POLICY, Role.POLICY_WRITE, Role.TASK_WRITE})
_SPACES = {space.value: space for space in Space if space is not Space.BARE}
_ALWAYS = frozenset({"job"})
"""Bare names that every execution has."""


def in_pipeline(site: Site) -> bool:
    """Whether it is evaluated while the pipeline runs; a step's own timeout is not."""
    return site.where.role in _IN_PIPELINE and site.where.task >= 0


def reads_of(playbook: Playbook, context: Context, sources: Sources) -> Iterator[Read]:
    """Every read of a name that could be unset, in the order of reading."""
    steps = playbook.steps
    for site in context.sites:
        where = site.where
        if where.role is Role.WORKLOAD or (where.step not in steps and where.role is not Role.OUTPUT):
            continue
        for use in site.expression.uses:
            if use.optional:
                continue
            head = use.path[0]
            space = _SPACES.get(head)
            if space is not None:
                read = Read(site, use, space, use.path[1:])
                if read.path and not _is_provided(read, playbook):
                    yield read
            elif head not in NAMESPACES and head not in sources.workload and head not in _ALWAYS:
                read = Read(site, use, Space.BARE, use.path)
                if not _is_provided(read, playbook):
                    yield read


def _is_provided(read: Read, playbook: Playbook) -> bool:
    """Names that the engine sets, and namespaces that do not exist here: another check speaks of those."""
    role, step = read.site.where.role, playbook.steps.get(read.site.where.step)
    match read.space:
        case Space.CTX:
            return read.path[0] == "signals"
        case Space.ITER:
            return read.path[0] in BUILTIN_ITER or not in_pipeline(read.site) or _is_item(read, step)
        case Space.RUN:
            return role in (Role.ADMIT, Role.STEP_ARGS, Role.OUTPUT, Role.SPEC) and not in_pipeline(read.site)
        case Space.ARGS:
            return step is None or step.name == playbook.executor.final_step
        case Space.STEPS:
            return read.path[0] not in playbook.steps
        case Space.BARE:
            return (read.path[0] == "output" and role in _AFTER_TASK) or _is_item(read, step)


def _is_item(read: Read, step: Step | None) -> bool:
    """Whether it is what the loop runs over."""
    loop = step.loop if step is not None else None
    return loop is not None and read.path[0] == loop.iterator and in_pipeline(read.site)


def can_be_set(read: Read, playbook: Playbook, sources: Sources) -> bool:
    """Whether anything sets the name: for this place, or in a guard for any place at all."""
    local = sources.everywhere if read.tolerant else sources.of_step(read.site.where.step)
    match read.space:
        case Space.CTX:
            return read.path in sources.ctx
        case Space.ITER:
            return read.path in local.iter
        case Space.RUN:
            return read.path in local.run
        case Space.ARGS:
            return read.path in local.args or _is_own_arg(read, playbook)
        case Space.STEPS:
            return True
        case Space.BARE:
            head = read.path[0]
            if head in playbook.steps or read.path in sources.ctx or read.path in local.args:
                return True
            if not read.tolerant and not in_pipeline(read.site):
                return False
            return head in local.labels or read.path in local.iter or _is_own_arg(read, playbook)


def _is_own_arg(read: Read, playbook: Playbook) -> bool:
    where = read.site.where
    if not in_pipeline(read.site) or where.role is Role.TASK_ARGS:
        return False
    return any(path[0] == read.path[0] for path in own_args(playbook.steps[where.step].tasks[where.task]))
