import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from noetl.cli.console import _visible_character, plain_paint, visible
from noetl.cli.problem_text import WIDTH, excerpt, problems_text
from noetl.dsl.document.source import SourceLines
from noetl.loader import examine


def width(text: str) -> int:
    """How many cells a terminal gives to the text."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def character_above_caret(line: str, column: int) -> str:
    """What a terminal shows in the cell that the caret points at."""
    excerpt_text, before = excerpt(line, column)
    cells = "".join(character * width(character) for character in excerpt_text)
    return cells[before : before + 1]


def test_the_caret_stands_under_the_column() -> None:
    assert excerpt("  step: X", 9) == ("  step: X", 8)
    assert character_above_caret("  step: X", 9) == "X"


def test_tabs_are_spread_before_the_caret_is_placed() -> None:
    assert excerpt("\ta\tX", 4) == ("    a   X", 8)


def test_wide_and_combining_characters_count_as_the_terminal_counts_them() -> None:
    assert character_above_caret("日本語: X", 6) == "X"
    assert excerpt("e\N{COMBINING ACUTE ACCENT}X", 3)[1] == 1


def test_control_characters_and_direction_marks_are_made_visible() -> None:
    excerpt_text, before = excerpt("a\x1b\N{RIGHT-TO-LEFT OVERRIDE}X", 4)
    assert (excerpt_text, before) == ("a\N{SYMBOL FOR ESCAPE}\N{REPLACEMENT CHARACTER}X", 3)


@given(st.text(st.characters(codec=None)) | st.text("ab \t\n\x1b\x7f\u202e"))
def test_a_text_is_made_visible_as_each_of_its_characters_is(text: str) -> None:
    assert visible(text) == "".join(map(_visible_character, text))


def test_a_column_behind_the_end_points_behind_the_end() -> None:
    assert excerpt("ab", 3) == ("ab", 2)
    assert excerpt("ab", 30) == ("ab", 2)


def test_a_long_line_is_cut_around_the_caret() -> None:
    line = "-" * 300 + "X" + "-" * 300
    excerpt_text, before = excerpt(line, 301)
    assert excerpt_text.startswith("…")
    assert excerpt_text.endswith("…")
    assert width(excerpt_text) <= WIDTH + 2
    assert excerpt_text[before] == "X"


def test_lines_are_those_that_yaml_counts() -> None:
    assert list(SourceLines("a\nb\r\nc\rd\x85e\u2028f")) == ["a", "b", "c", "d", "e", "f"]


@given(
    st.text(st.characters(categories=["L", "N", "P", "Zs", "Cc"], include_characters="\t日"), max_size=300),
    st.text(st.characters(categories=["L", "N", "P", "Zs", "Cc"], include_characters="\t日"), max_size=300),
)
def test_the_caret_never_misses(before: str, after: str) -> None:
    line = f"{before}\N{BLACK STAR}{after}"
    assert character_above_caret(line, len(before) + 1) == "\N{BLACK STAR}"
    assert width(excerpt(line, len(before) + 1)[0]) <= WIDTH + 2


def test_a_file_of_one_long_line_is_shown_without_reading_it_again_and_again() -> None:
    steps = [{"step": f"s{number}", "tool": {"kind": "none", "x": "y" * 100}} for number in range(3000)]
    head = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}
    text = json.dumps({**head, "workflow": steps})
    problems = examine(text, "long.yaml").problems
    excerpt_text = problems_text(problems, text, paint=plain_paint)
    assert excerpt_text.count("\n    1 | ") == len(problems) >= 3000
