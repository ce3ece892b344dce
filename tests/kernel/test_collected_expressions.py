"""The expressions of a playbook are collected once, by type: none is missed, none is found where none is."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.expr.expression import Expression
from noetl.kernel.expression_reads import expressions_in
from noetl.kernel.plan import Plan
from noetl.kernel.server_reads import Needs, StepExpressions, playbook_expressions
from tests.golden.golden_files import history
from tests.golden.golden_scenarios import RECORDED
from tests.playbook_parts import EVERYTHING, EXAMPLES
from tests.playbooks import playbook_of

RECORDINGS = sorted(path.stem for path in RECORDED.glob("*.yaml"))


def walk(value: object) -> Iterator[Expression]:
    """The slow path: every part of everything, whatever its type."""
    match value:
        case Expression():
            yield value
        case Struct():
            for name in value.__struct_fields__:
                if name != "document":
                    yield from walk(getattr(value, name))
        case Mapping():
            for item in value.values():
                yield from walk(item)
        case tuple() | list():
            for item in value:
                yield from walk(item)


def check_expressions(playbook: Playbook) -> None:
    assert expressions_in(playbook) == list(walk(playbook))
    steps = [StepExpressions(step) for step in playbook.workflow]
    for step, collected in zip(playbook.workflow, steps, strict=True):
        server = [*walk((step.router, step.admit, step.args, step.writes, step.timeout))]
        assert collected.of_server == server
        assert Counter([*collected.of_server, *collected.of_worker]) == Counter(walk(step))
    outside = playbook_expressions(playbook)
    assert Counter([*outside, *walk(playbook.workflow)]) == Counter(
        walk((playbook.workflow, playbook.executor, playbook.workload, playbook.keychain, playbook.metadata))
    )


def check_kept_results(playbook: Playbook) -> None:
    """A step keeps its result if some expression, wherever it stands, may read it."""
    uses = [use.path for expression in walk(playbook) for use in expression.uses]
    names = set(playbook.steps)
    if ("steps",) in uses:
        read = names
    else:
        read = {path[1] for path in uses if path[0] == "steps"} | {path[0] for path in uses}
    plan = Plan(playbook)
    assert {step.name for step in plan.by_number if step.keeps_result} == read & names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_in_every_example(path: Path) -> None:
    playbook = playbook_of(path.read_text())
    check_expressions(playbook)
    check_kept_results(playbook)


@pytest.mark.parametrize("name", RECORDINGS)
def test_in_every_recorded_playbook(name: str) -> None:
    playbook = history(name).plan.playbook
    check_expressions(playbook)
    check_kept_results(playbook)


def test_in_every_part_of_the_language() -> None:
    playbook = playbook_of(EVERYTHING)
    check_expressions(playbook)
    check_kept_results(playbook)
    assert len(expressions_in(playbook)) > 15


def test_what_is_kept_beside_a_reference_has_the_order_of_the_reads() -> None:
    playbook = playbook_of(
        "- step: start\n  tool: {kind: noop}\n  set: {ctx.w: '{{ event.result.second }}'}\n"
        "  next: {arcs: [{step: end, when: '{{ event.result.first }}'}]}\n"
        "- step: end\n  tool: {kind: noop}\n"
    )
    needs = Plan(playbook).needs
    assert isinstance(needs, Needs)
    assert list(needs.result.below) == ["first", "second"]
