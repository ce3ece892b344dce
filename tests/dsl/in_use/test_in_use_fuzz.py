"""Random canonical playbooks, written in the dialect in use, are themselves again when lowered."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.dialects.yaml_writer import to_yaml
from noetl.loader import examine, upgrade
from tests.dsl.in_use.spelling_rows import lower_text, rows_of, tables
from tests.dsl.in_use.twin_documents import TwinWriter
from tests.new_seeds import new_seeds

UNDRAWN = {"http result `body`", "result with numeric keys"}
"""What results are like, which no document says."""


def check_twins(random: Random) -> None:
    twin = TwinWriter(random).document()
    text = to_yaml(twin.in_use)
    lowered = lower_text(text)
    assert lowered.document == twin.canonical
    assert set(lowered.codes) == twin.warns
    loaded = examine(to_yaml(twin.canonical), "canonical.yaml")
    assert [problem for problem in loaded.problems if problem.severity == "error"] == []
    assert examine(upgrade(text, "twin.yaml", dialect="in_use"), "again.yaml").document == loaded.document


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_a_playbook_written_in_the_dialect_is_lowered_to_itself(random: Random) -> None:
    check_twins(random)


def test_so_is_one_that_no_run_has_tried_before() -> None:
    for seed in new_seeds(20):
        check_twins(Random(seed))  # noqa: S311 - no secret


def test_the_playbooks_have_something_of_every_row() -> None:
    drawn = set().union(*(TwinWriter(Random(seed)).document().rows for seed in range(150)))  # noqa: S311 - no secret
    assert drawn | UNDRAWN == {row.spelling for table in tables() for row in rows_of(table)}
