"""Every fast path of the flow analysis gives what its slow path gives."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.checks.concurrent_writes import _transpose, overlapping_steps, token_net
from noetl.dsl.checks.flow.guard_verdicts import step_routes
from noetl.dsl.checks.flow.name_reads import NameBits, NameRead, name_reads
from noetl.dsl.checks.flow.name_sources import NameSources, PathBits, PathSet
from noetl.dsl.checks.flow.pipeline_flow import NameEncoder, PipelineFlow, pipeline_flow, solve_pipeline
from noetl.dsl.checks.flow.playbook_flow import PlaybookFlow, playbook_flow
from noetl.dsl.checks.unset_names import _bits_of_earlier_writes, is_set
from noetl.dsl.document.composer import compose
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Guard, Playbook, Step, Write
from noetl.dsl.document.source import Mapping
from noetl.dsl.reader.playbook_reader import read_playbook
from noetl.expr.expression import Expression
from noetl.expr.use import Path
from noetl.loader import installed_kinds
from tests.checks.flow_playbooks import HEADER

NAMES = ("ctx.a", "ctx.a.b", "ctx.b", "run.a", "iter.a", "args.a", "a", "a.b", "b", "s1", "steps.s1.result")
PATHS = ("ctx.a", "ctx.a.b", "ctx.b", "run.a", "iter.a")
GUARDS = (
    "",
    "{{ ctx.a }}",
    "{{ not ctx.a }}",
    "{{ ctx.a is defined and a.b == 1 }}",
    "{{ b is defined or run.a is defined }}",
    "{{ steps.s1.result.n > 1 }}",
    "{{ workload.n == 1 }}",
    "{{ workload.n == 2 }}",
)
ENDINGS = (
    *[""] * 8,  # an arc that is taken in any case is the one that joins wait for
    *GUARDS,
    "{{ event.name == 'step.done' }}",
    "{{ event.name == 'step.failed' and ctx.a }}",
)
EXCLUSIVE = ("", "{{ workload.n == 1 }}", "{{ workload.n == 2 }}")
OUTCOMES = (*GUARDS, "{{ outcome.status == 'error' }}", "{{ outcome.status == 'ok' and iter.a }}")
DIAMOND = ((1, 2), (3,), (3,), ())
"""The arcs of a fork and a join, where guards that exclude each other and joins matter most."""
DIRECTIVES = ("continue", "break", "fail", "retry", "jump, to: t0")


class ReadDocument(NamedTuple):
    playbook: Playbook
    reads: tuple[NameRead, ...]

    def flow(self, reads: Iterable[NameRead], *, precise: bool) -> PlaybookFlow:
        routes = [step_routes(step) for step in self.playbook.workflow]
        return playbook_flow(self.playbook, routes, NameBits(reads), precise=precise)


@cache
def builtin_kinds() -> Kinds:
    return installed_kinds()


@st.composite
def documents(
    draw: st.DrawFn, *, endings: tuple[str, ...] = ENDINGS, shapes: tuple[str, ...] = ("any", "diamond")
) -> ReadDocument:
    """Workflows whose tasks and arcs read and write a few names, under guards that may prove them set."""
    is_diamond = draw(st.sampled_from(shapes)) == "diamond"
    size = 4 if is_diamond else draw(st.integers(2, 4))
    lines = ["workload: { n: 1 }", "workflow:"]
    for number in range(size):
        lines += [f"  - step: s{number}", f"    set: {{ {draw(writes())} }}"]
        if number == 3 if is_diamond else number and draw(st.booleans()):
            lines.append("    spec: { policy: { join: all } }")
        lines.append("    tool:")
        for index in range(draw(st.integers(1, 2))):
            lines += draw(tasks(index))
        mode = draw(st.sampled_from(("exclusive", "inclusive")))
        arcs = draw(st.lists(arc_texts(range(size), endings), max_size=3))
        if is_diamond:
            mode = "inclusive"
            arcs = [draw(arc_texts([target], endings)) for target in DIAMOND[number]]
        if arcs:
            lines.append(f"    next: {{ spec: {{ mode: {mode} }}, arcs: [{', '.join(arcs)}] }}")
    text = HEADER + "\n".join(lines) + "\n"
    root = compose(text)
    assert isinstance(root, Mapping)
    (read,) = read_playbook(root, "flow.yaml", text, builtin_kinds())
    assert read.playbook is not None
    assert not [problem for problem in read.context.problems if problem.severity == "error"]
    sources = NameSources(read.playbook, frozenset())
    reads = (reading for reading in name_reads(read.playbook, read.context, sources) if not reading.tolerant)
    return ReadDocument(read.playbook, tuple(reads))


@st.composite
def writes(draw: st.DrawFn) -> str:
    paths = draw(st.lists(st.sampled_from(PATHS), max_size=2, unique=True))
    return ", ".join(f'{path}: "{{{{ {draw(st.sampled_from(NAMES))} }}}}"' for path in paths)


@st.composite
def tasks(draw: st.DrawFn, index: int) -> list[str]:
    lines = [f"      - name: t{index}", "        kind: python", "        code: result = 1"]
    lines += [f'        args: {{ x: "{{{{ {draw(st.sampled_from(NAMES))} }}}}" }}']
    lines.append(f"        set: {{ {draw(writes())} }}")
    rules = []
    for guard in draw(st.lists(st.sampled_from(OUTCOMES), max_size=2)):
        then = f"{{ do: {draw(st.sampled_from(DIRECTIVES))}, set: {{ {draw(writes())} }} }}"
        rules.append(f'{{ when: "{guard or "{{ true }}"}", then: {then} }}')
    if rules:
        lines.append(f"        spec: {{ policy: {{ rules: [{', '.join(rules)}] }} }}")
    return lines


@st.composite
def arc_texts(draw: st.DrawFn, targets: Sequence[int], endings: tuple[str, ...]) -> str:
    guard = draw(st.sampled_from(endings))
    when = f', when: "{guard}"' if guard else ""
    args = draw(st.sampled_from(("", ", args: { a: 1 }", ", set: { ctx.b: 1 }")))
    return f"{{ step: s{draw(st.sampled_from(targets))}{when}{args} }}"


def guards_of(step: Step) -> Iterator[Guard]:
    for task in step.tasks:
        yield from (rule.when for rule in task.policy.rules) if task.policy else ()
    yield from (arc.when for arc in step.arcs)


def write_lists(step: Step) -> Iterator[tuple[Write, ...]]:
    yield step.writes
    for task in step.tasks:
        yield task.writes
        yield from (then.writes for then in task.thens)
    yield from (arc.writes for arc in step.arcs)


@settings(max_examples=60, deadline=None)
@given(documents())
def test_what_a_quick_look_finds_set_is_set(document: ReadDocument) -> None:
    quick = document.flow(document.reads, precise=False)
    close = document.flow(document.reads, precise=True)
    open_reads = [read for read in document.reads if not is_set(quick, read)]
    second = document.flow(open_reads, precise=True)
    unset = [read for read in document.reads if not is_set(close, read)]
    assert [read for read in open_reads if not is_set(second, read)] == unset


@settings(max_examples=60, deadline=None)
@given(documents(endings=EXCLUSIVE, shapes=("diamond",)))
def test_steps_that_a_quick_look_keeps_apart_never_run_at_once(document: ReadDocument) -> None:
    playbook = document.playbook
    quick = overlapping_steps(playbook, token_net(playbook, precise=False))
    close = overlapping_steps(playbook, token_net(playbook, precise=True))
    assert all(row & ~more == 0 for row, more in zip(close, quick, strict=True))


@settings(max_examples=60, deadline=None)
@given(documents(), st.data())
def test_a_pipeline_that_sets_no_name_is_solved_as_any_other(
    document: ReadDocument, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, 2))
    reads = data.draw(st.lists(st.sampled_from(document.reads), max_size=count)) if document.reads else []
    encoder = NameEncoder(NameBits(reads), prove=data.draw(st.booleans()))
    for step in document.playbook.workflow:
        quick, solved = pipeline_flow(step, encoder), solve_pipeline(step, encoder)
        if quick.matched is not None:
            assert quick == solved
            continue
        done = len(step.tasks)
        reached = reached_nodes(solved)
        for index in reached - {done, done + 1}:
            assert solved.before[index] == quick.before[index]
            assert not any(solved.matched[index].values() if solved.matched is not None else ())
        assert solved.failed == quick.failed
        assert done not in reached or solved.done == quick.done


def reached_nodes(pipeline: PipelineFlow) -> set[int]:
    reached, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        for edge in pipeline.edges[node] if node < len(pipeline.edges) else ():
            if edge.target not in reached:
                reached.add(edge.target)
                waiting.append(edge.target)
    return reached


@settings(max_examples=60, deadline=None)
@given(documents())
def test_a_guard_that_is_not_taken_apart_proves_nothing_that_is_read(document: ReadDocument) -> None:
    for read in document.reads:
        encoder = NameEncoder(NameBits([read]), prove=True)
        for step in document.playbook.workflow:
            for guard in guards_of(step):
                for holds in (True, False):
                    expected = 0
                    for path in guard.proves(holds=holds) if isinstance(guard, Expression) else ():
                        expected |= encoder._proof(path)
                    assert encoder.proof_bits(guard, holds=holds) == expected


@settings(max_examples=60, deadline=None)
@given(documents())
def test_writes_of_other_keys_do_not_set_a_name(document: ReadDocument) -> None:
    flow = document.flow(document.reads, precise=False)
    for read in document.reads:
        step_flow = flow.steps[flow.number[read.occurrence.part.step]]
        limit = read.occurrence.part.write
        for listed in write_lists(step_flow.step):
            earlier = (
                write
                for write in listed
                if limit is None or (write.position.line, write.position.column) < (limit.line, limit.column)
            )
            bit = flow.bits.bit_of(read)
            expected = step_flow.encoder.write_bits(earlier) & bit
            assert _bits_of_earlier_writes(step_flow, listed, read) & bit == expected


@given(
    st.integers(1, 9).flatmap(
        lambda size: st.lists(st.integers(0, 2**size - 1), min_size=size, max_size=size)
    )
)
def test_rows_become_columns(rows: list[int]) -> None:
    size = len(rows)
    expected = [sum((rows[row] >> column & 1) << row for row in range(size)) for column in range(size)]
    assert _transpose(rows) == expected


_PATHS = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple)


def is_start_of(path: Path, other: Path) -> bool:
    return other[: len(path)] == path


@given(st.lists(_PATHS, max_size=5), _PATHS)
def test_a_value_sets_its_keys_and_its_owners(paths: list[Path], path: Path) -> None:
    related = [is_start_of(path, other) or is_start_of(other, path) for other in paths]
    assert (path in PathSet(paths)) == any(related)
    bits = PathBits()
    for index, other in enumerate(paths):
        bits.add(other, 1 << index)
    assert bits.set_by(path) == sum(1 << index for index, is_related in enumerate(related) if is_related)
