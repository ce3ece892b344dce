"""Names that nothing has set, at all or on some way to where they are read."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from noetl.dsl.checks.flow.guard_verdicts import step_routes
from noetl.dsl.checks.flow.name_reads import NameBits, NameRead, can_be_set, name_reads, uses_beside_item
from noetl.dsl.checks.flow.name_sources import NameSources, task_arg_paths
from noetl.dsl.checks.flow.playbook_flow import PlaybookFlow, StepFlow, playbook_flow
from noetl.dsl.checks.unset_messages import maybe_unset_message, never_set_message
from noetl.dsl.document.context import DocumentContext, ExpressionRole
from noetl.dsl.document.playbook import Playbook, Position, Write
from noetl.dsl.document.shape_check import did_you_mean

LIMIT = 100
"""Most findings of one playbook: whoever has more starts with these."""

_HARMLESS = frozenset(
    {
        "bad-input",
        "expression-syntax",
        "final-step-arcs",
        "guard-form",
        "join-any-cycle",
        "keychain-scope",
        "namespace-scope",
        "parallel-set-ctx",
        "unknown-keychain",
        "unknown-kind",
        "unknown-name",
        "unknown-step",
    }
)
"""Errors that lose nothing that could set a name."""


class UnsetName(NamedTuple):
    read: NameRead
    message: str
    hint: str


def check_step_names(playbook: Playbook, context: DocumentContext) -> None:
    """`steps.NAME` of a step that does not exist."""
    for occurrence in context.occurrences:
        for use in uses_beside_item(occurrence, playbook.steps.get(occurrence.part.step)):
            if len(use.path) > 1 and use.path[0] == "steps" and use.path[1] not in playbook.steps:
                hint = did_you_mean(use.path[1], playbook.steps) or "steps are declared under `workflow`"
                context.report_inside(
                    "unknown-name", occurrence.scalar, use.offset, f"there is no step `{use.path[1]}`", hint
                )


def check_unset_names(playbook: Playbook, context: DocumentContext) -> None:
    """Names that are read where they may be unset. Says nothing of a document that was not read whole."""
    if is_incomplete(context):
        return
    sources = NameSources(playbook, context.workload_keys)
    never: list[NameRead] = []
    sometimes: list[NameRead] = []
    for read in name_reads(playbook, context, sources):
        if not can_be_set(read, playbook, sources):
            never.append(read)
        elif not read.tolerant:
            sometimes.append(read)
    findings = [UnsetName(read, *never_set_message(read, playbook, sources)) for read in _first_reads(never)]
    findings += _maybe_unset(playbook, sometimes, sources)
    findings.sort(
        key=lambda finding: (finding.read.occurrence.scalar.line, finding.read.occurrence.scalar.column)
    )
    for finding in findings[:LIMIT]:
        occurrence, use = finding.read.occurrence, finding.read.use
        context.report_inside("unset-name", occurrence.scalar, use.offset, finding.message, finding.hint)


def _maybe_unset(playbook: Playbook, reads: list[NameRead], sources: NameSources) -> Iterator[UnsetName]:
    """Looks closely only at what a quick look could not settle."""
    # Without `precise` fewer names are set, never more: what the quick look finds set is set. It saves
    # proofs and joins where nothing is wrong, which is nearly always.
    routes = [step_routes(step) for step in playbook.workflow] if reads else []
    for precise in (False, True):
        if not reads:
            return
        flow = playbook_flow(playbook, routes, NameBits(reads), precise=precise)
        reads = [read for read in reads if not is_set(flow, read)]
    for read in _first_reads(reads):
        yield UnsetName(read, *maybe_unset_message(read, flow, sources))


def is_incomplete(context: DocumentContext) -> bool:
    """Whether an error may have kept something out of the playbook that sets names."""
    return any(problem.severity == "error" and problem.code not in _HARMLESS for problem in context.problems)


def _first_reads(reads: Iterable[NameRead]) -> Iterator[NameRead]:
    """One for each name in each step, and for each position: others say nothing new. At most LIMIT."""
    seen: set[object] = set()
    count = 0
    for read in reads:
        occurrence = read.occurrence
        name = (occurrence.part.step, read.name)
        position = (occurrence.scalar.line, occurrence.scalar.column, read.name)
        if name not in seen and position not in seen:
            seen.update((name, position))
            count += 1
            yield read
        if count == LIMIT:
            return


def is_set(flow: PlaybookFlow, read: NameRead) -> bool:
    """Whether every way to the place sets the name."""
    bit = flow.bits.bit_of(read)
    return _bits_at(flow, read) & bit == bit


def _bits_at(flow: PlaybookFlow, read: NameRead) -> int:
    part = read.occurrence.part
    index = flow.number[part.step]
    step_flow = flow.steps[index]
    begun = flow.state[index]
    if part.task >= 0:
        return begun | _bits_in_pipeline(step_flow, read)
    match part.role:
        case ExpressionRole.STEP_WRITE:
            return (
                begun
                | step_flow.pipeline.done
                | step_flow.encoder.bits.step(part.step, succeeded=True)
                | _bits_of_earlier_writes(step_flow, step_flow.step.writes, read)
            )
        case ExpressionRole.ARC_ARGS | ExpressionRole.ARC_WRITE:
            taken = step_flow.arcs[part.arc]
            if taken is None:
                return flow.bits.all
            return (
                begun | taken | _bits_of_earlier_writes(step_flow, step_flow.step.arcs[part.arc].writes, read)
            )
        case _:
            return begun


def _bits_in_pipeline(step_flow: StepFlow, read: NameRead) -> int:
    part = read.occurrence.part
    task = step_flow.step.tasks[part.task]
    state = step_flow.pipeline.before[part.task]
    if part.role is not ExpressionRole.TASK_ARGS:
        for path in task_arg_paths(task):
            state |= step_flow.encoder.bits.arg(path)
    match part.role:
        case ExpressionRole.TASK_WRITE:
            return (
                state
                | step_flow.encoder.bits.label(task.label)
                | _bits_of_earlier_writes(step_flow, task.writes, read)
            )
        case ExpressionRole.POLICY | ExpressionRole.POLICY_WRITE:
            if step_flow.pipeline.matched is None:
                return state
            matched = step_flow.pipeline.matched[part.task].get(part.rule)
            if matched is None:
                return step_flow.encoder.bits.all
            return state | matched | _bits_of_earlier_writes(step_flow, task.thens[part.rule].writes, read)
        case _:
            return state


def _bits_of_earlier_writes(step_flow: StepFlow, writes: Sequence[Write], read: NameRead) -> int:
    """What the writes set that are made before the one whose value is read; all, if it is none of them."""
    write_position = read.occurrence.part.write
    # Fast path: a write whose first key differs cannot set the name, so leaving it out changes nothing.
    # Each of many writes may read names, and encoding all before it for each would be quadratic.
    return step_flow.encoder.write_bits(
        write
        for write in writes
        if write.path[0] == read.path[0]
        and (write_position is None or _order(write.position) < _order(write_position))
    )


def _order(position: Position) -> tuple[int, int]:
    return position.line, position.column
