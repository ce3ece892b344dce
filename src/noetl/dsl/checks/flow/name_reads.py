"""The places where names are read that something has to set, and those names as bits of a number."""

import enum
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noetl.dsl.checks.flow.name_sources import NameSources, PathBits, task_arg_paths
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole
from noetl.dsl.document.playbook import Playbook, Step, Write
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, ITERATOR_NAMESPACES, NAMESPACES
from noetl.expr.use import Path, Use


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


class NameBits:
    """Gives each name that is read its bits, and each thing that sets names the bits it sets.

    Sets of names are so cheap to combine. A bare name has three bits, because what it is found in lasts for
    different times: in the execution (`ctx`, results of steps), in the run of the step (`args` too), in the
    pipeline (`iter`, labels too).
    """

    def __init__(self, reads: Iterable[NameRead]) -> None:
        paths_by_scope: dict[NameScope, dict[Path, None]] = {scope: {} for scope in NameScope}
        for read in reads:
            paths_by_scope[read.scope][_path_key(read)] = None
        self._paths = {scope: PathBits() for scope in NameScope}
        bits = 0
        # The order makes every question one mask or shift: first what lasts, then what is gone after the
        # run (`args` and two copies of the bare names), last what begins only with the step.
        for scope in (
            NameScope.BARE,
            NameScope.CTX,
            NameScope.STEPS,
            NameScope.ARGS,
            NameScope.ITER,
            NameScope.RUN,
        ):
            if scope is NameScope.ARGS:
                lasting = bits
                bits += 2 * len(paths_by_scope[NameScope.BARE])
            if scope is NameScope.ITER:
                self.before_step = (1 << bits) - 1
                """Bits of names that may be set before a step begins."""
            for path in paths_by_scope[scope]:
                self._paths[scope].add(path, 1 << bits)
                bits += 1
        bare = len(paths_by_scope[NameScope.BARE])
        self._bare_mask = (1 << bare) - 1
        self._run_shift, self._pipeline_shift = lasting, lasting + bare
        self.lasting = (1 << lasting) - 1
        """Bits of names that stay set for the rest of the execution."""
        self.all = (1 << bits) - 1

    def bit_of(self, read: NameRead) -> int:
        """The bit that is on where the name is set."""
        bit = self._paths[read.scope].get(_path_key(read)) or 0
        if read.scope is NameScope.BARE:
            return bit << (self._pipeline_shift if is_in_pipeline(read.occurrence) else self._run_shift)
        return bit

    def lasting_bit_of(self, read: NameRead) -> int:
        """The bit that is on where the name is set for the rest of the execution, if it can be."""
        if read.scope is NameScope.BARE:
            return self._paths[NameScope.BARE].get(_path_key(read)) or 0
        return self.bit_of(read) & self.lasting

    def carry_over(self, bits: int) -> int:
        """What of a finished step's names the next one begins with."""
        lasting = bits & self.lasting
        bare = lasting & self._bare_mask
        return lasting | bare << self._run_shift | bare << self._pipeline_shift

    def ctx(self, path: Path) -> int:
        return self._paths[NameScope.CTX].set_by(path) | self._in_execution(path)

    def step(self, name: str, *, succeeded: bool) -> int:
        """What a run of the step sets by ending: its status and error, and after success its result."""
        ended = self._paths[NameScope.STEPS].get((name,)) or 0
        if not succeeded:
            return ended
        return ended | (self._paths[NameScope.STEPS].get((name, "result")) or 0) | self._in_execution((name,))

    def arg(self, path: Path) -> int:
        return self._paths[NameScope.ARGS].set_by(path) | self._in_run(path)

    def iter(self, path: Path) -> int:
        return self._paths[NameScope.ITER].set_by(path) | self._in_pipeline(path)

    def run(self, path: Path) -> int:
        return self._paths[NameScope.RUN].set_by(path)

    def label(self, label: str) -> int:
        return self._in_pipeline((label,))

    def write(self, write: Write) -> int:
        match write.scope:
            case "ctx":
                return self.ctx(write.path)
            case "iter":
                return self.iter(write.path)
            case "run":
                return self.run(write.path)
            case _:
                return self.arg(write.path)

    def bare(self, path: Path) -> int:
        """A bare name of which only is known that it is set now."""
        return self._in_run(path)

    def _in_execution(self, path: Path) -> int:
        bare = self._paths[NameScope.BARE].set_by(path)
        return bare | bare << self._run_shift | bare << self._pipeline_shift if bare else 0

    def _in_run(self, path: Path) -> int:
        bare = self._paths[NameScope.BARE].set_by(path)
        return bare << self._run_shift | bare << self._pipeline_shift if bare else 0

    def _in_pipeline(self, path: Path) -> int:
        bare = self._paths[NameScope.BARE].set_by(path)
        return bare << self._pipeline_shift if bare else 0


def _path_key(read: NameRead) -> Path:
    """The part of a path that is set as one. Of a step that is its result, or the rest of it."""
    if read.scope is NameScope.STEPS:
        return read.path[:2] if read.path[1:2] == ("result",) else read.path[:1]
    return read.path
