"""Documents with the position of every key and value."""

import json
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.document import source
from noetl.dsl.document.composer import compose
from noetl.dsl.document.source import Mapping, Scalar, Sequence, SourceError, SourceLines, node_value
from noetl.dsl.document.text_position import position_in_text
from noetl.model.json import Json


def tree(text: str) -> Mapping:
    root = compose(text)
    assert isinstance(root, Mapping)
    return root


def fault(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        compose(text)
    return caught.value


def composed(text: str) -> source.Node | SourceError | None:
    try:
        return compose(text)
    except SourceError as error:
        return error


def test_every_key_and_value_knows_its_line_and_column() -> None:
    root = tree("a: 1\nb:\n  - x\n  - {c: [y, z]}\n")
    assert (root.entries["b"].line, root.entries["b"].column) == (2, 1)
    items = root.get("b")
    assert isinstance(items, Sequence)
    assert [(item.line, item.column) for item in items.items] == [(3, 5), (4, 5)]
    inner = items.items[1]
    assert isinstance(inner, Mapping)
    assert (inner.entries["c"].line, inner.entries["c"].column) == (4, 6)
    letters = inner.get("c")
    assert isinstance(letters, Sequence)
    assert [(item.line, item.column) for item in letters.items] == [(4, 10), (4, 13)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0x1F", 31),
        ("0o17", 15),
        (f"0x{10**source.MAX_DIGITS - 1:x}", 10**source.MAX_DIGITS - 1),
        ("017", 17),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("'007'", "007"),
        ('"true"', "true"),
        ("!!str 5", "5"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: Json) -> None:
    document = node_value(tree(f"key: {text}"))
    assert document == {"key": value}
    assert isinstance(document, dict)
    assert type(document["key"]) is type(value)


def test_keys_are_always_text() -> None:
    assert node_value(tree("on: 1\n1: 2\ntrue: 3\nnull: 4")) == {"on": 1, "1": 2, "true": 3, "null": 4}


def test_an_empty_text_holds_no_document() -> None:
    assert compose("") is None
    assert compose("# nothing\n") is None


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("a: [1, 2", "yaml-syntax", 1, 4),
        ("a: 1\n b: 2", "yaml-syntax", 2, 3),
        ("a: *nowhere", "yaml-syntax", 1, 4),
        ("a: &x [*x]", "yaml-syntax", 1, 8),
        ("a: 1\nb: 2\na: 3", "duplicate-key", 3, 1),
        ("a: !!python/object:os.system x", "yaml-feature", 1, 4),
        ("a: !custom x", "yaml-feature", 1, 4),
        ("a: {{ x }}", "yaml-feature", 1, 5),
        ("b: &b {x: 1}\na:\n  <<: *b", "yaml-feature", 3, 3),
        ("a: 1\n---\nb: 2", "yaml-feature", 2, 1),
        ("a: .nan", "yaml-feature", 1, 4),
        ("a: -.inf", "yaml-feature", 1, 4),
        ("a: 1e999", "yaml-feature", 1, 4),
        ("a: " + "9" * 400, "yaml-limit", 1, 4),
        (f"a: 0x{10**source.MAX_DIGITS:x}", "yaml-limit", 1, 4),
        (f"a: 0o{10**source.MAX_DIGITS:o}", "yaml-limit", 1, 4),
        ("a: 0x" + "f" * 1_000_000, "yaml-limit", 1, 4),
        ("a: \x01", "yaml-syntax", 1, 4),
    ],
)
def test_what_is_no_playbook_is_refused_at_its_place(text: str, code: str, line: int, column: int) -> None:
    error = fault(text)
    assert (error.code, error.line, error.column) == (code, line, column)
    assert error.message


def test_a_duplicate_key_names_the_line_of_the_first() -> None:
    assert "line 1" in fault("a: 1\na: 2").message


def test_deep_nesting_is_refused() -> None:
    assert fault("a: " + "[" * 200_000).code == "yaml-limit"
    assert fault("a: " + "{a: " * 70 + "}" * 70).code == "yaml-limit"


@pytest.mark.no_cover
def test_too_many_values_are_refused() -> None:
    assert fault("a: [" + "1," * (source.MAX_NODES + 1) + "]").code == "yaml-limit"


def test_a_text_that_is_too_long_is_refused() -> None:
    assert fault("a: " + "x" * source.MAX_CHARACTERS).code == "yaml-limit"


def test_aliases_that_expand_without_end_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert fault("\n".join(lines)).code == "yaml-limit"


def test_an_alias_gives_the_anchored_value() -> None:
    assert node_value(tree("a: &x {n: [1, 2]}\nb: *x")) == {"a": {"n": [1, 2]}, "b": {"n": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "offset", "position"),
    [
        ("a: hello", 0, (1, 4)),
        ("a: hello", 2, (1, 6)),
        ("a: 'it''s {{ x'", 5, (1, 11)),
        ('a: "tab\\t{{ x"', 4, (1, 10)),
        ('a: "\\u00e9\\x41{{ x"', 2, (1, 15)),
        ("a: |\n  one\n  two", 4, (3, 3)),
        ("a: |\n  one\n    two", 6, (3, 5)),
        ("a: |\n\n  one", 1, (3, 3)),
        ("a: |2\n    one", 2, (2, 5)),
        ("a: >\n  one\n  two", 4, (3, 3)),
        ("a: >\n  one\n\n  two", 4, (4, 3)),
        ("a: one\n  two", 4, (2, 3)),
        ('a: "one\n\n   two"', 4, (3, 4)),
        ('a: "one\\\n   two"', 3, (2, 4)),
        ("- - k: '{{ x'", 3, (1, 12)),
    ],
)
def test_a_character_of_a_value_is_found_in_the_text(
    text: str, offset: int, position: tuple[int, int]
) -> None:
    scalar = next(_scalars(compose(text)))
    assert position_in_text(SourceLines(text), scalar, offset) == position


def _scalars(node: source.Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _scalars(item)
    elif isinstance(node, Mapping):
        for entry in node:
            yield from _scalars(entry.value)


_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")) | st.sampled_from("\n '\"{}")
)


@given(value=_TEXTS, style=st.sampled_from([None, "'", '"', "|", ">"]), width=st.integers(10, 80))
def test_every_visible_character_is_found_whatever_the_style(
    value: str, style: str | None, width: int
) -> None:
    text = yaml.dump({"key": {"text": value}}, default_style=style, width=width, allow_unicode=True)
    scalar = next(_scalars(compose(text)))
    if not isinstance(scalar.value, str):
        return
    lines = text.split("\n")
    for offset, character in enumerate(scalar.value):
        line, column = position_in_text(SourceLines(text), scalar, offset)
        source_character = lines[line - 1][column - 1 : column]
        if character.isalnum() and source_character != "\\":
            assert source_character == character, (text, offset)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    outcome = composed(text)
    if isinstance(outcome, SourceError):
        assert outcome.line >= 1
        assert outcome.column >= 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), _JSON, max_size=5))
def test_json_documents_are_read_as_they_are(document: dict[str, Json]) -> None:
    root = composed(json.dumps(document))
    if isinstance(root, SourceError):
        assert root.code in ("yaml-feature", "yaml-syntax"), root.message
    else:
        assert root is not None
        assert node_value(root) == document


@pytest.mark.parametrize(
    ("character", "name"), [("\x1b", "U+001B"), ("\0", "U+0000"), ("\ud800", "U+D800"), ("\ufffe", "U+FFFE")]
)
def test_a_character_that_yaml_cannot_hold_is_shown_where_it_stands(character: str, name: str) -> None:
    with pytest.raises(SourceError) as raised:
        compose(f"a: é中😀\r\nb:\r\n  c: é{character}\n")
    assert (raised.value.line, raised.value.column) == (3, 7)
    assert raised.value.message == f"the character {name} cannot stand in a YAML file"


@pytest.mark.parametrize("ending", ["", "\n", "\n\n   \n"])
@pytest.mark.parametrize("text", ["a: 1\nb: {", "a: 1\nb: [1,", "a: 1\nb: 'x", "a: 1\nb: {c: 1"])
def test_what_the_file_ends_in_is_shown_inside_it(text: str, ending: str) -> None:
    with pytest.raises(SourceError) as raised:
        compose(text + ending)
    assert raised.value.line == 2
    assert 4 <= raised.value.column <= len(text.splitlines()[1]) + 1


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_positions_count_the_lines_of_the_text(line_break: str) -> None:
    text = line_break.join(["a: 1", "b: x {{ y }}", "c: 'x {{ y }}'", "d: |", "  x", "   {{ y }}", ""])
    root = compose(text)
    assert isinstance(root, Mapping)
    for key, line, column in (("b", 2, 9), ("c", 3, 10), ("d", 6, 7)):
        scalar = root.get(key)
        assert isinstance(scalar, Scalar)
        assert position_in_text(SourceLines(text), scalar, str(scalar.value).index("y")) == (line, column)


UNALIGNED = "it is indented by {}, and what it could belong to by {}: line it up with that"
TABS = "YAML is indented with spaces, never with tabs"


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a:\n\tb: 1\n", 2, TABS),
        ("a:\n  b: 1\n\tc: 2\n", 3, TABS),
        ("a:\n  - b: 1\n\t  c: 2\n", 3, TABS),
        ("a:\n  -\tb: 1\n  -\tc: 2\n", 2, TABS),
        ("a:\r\n  b: 1\r\n \tc: 2\r\n", 3, TABS),
        ("a:\n    b: 1\n  c: 2\n", 3, UNALIGNED.format(2, "0 or 4")),
        ("a:\n    b: 1\n# c\n\n  c: 2\n", 5, UNALIGNED.format(2, "0 or 4")),
        ("a:\n  - b: 1\n   - c: 2\n", 3, UNALIGNED.format(3, "0 or 2 or 4")),
        ("a:\n  - b: 1\n - c: 2\n", 3, UNALIGNED.format(1, "0 or 2 or 4")),
        ("a:\n  - b:\n      c: 1\n  - d: 1\n   e: 3\n", 5, UNALIGNED.format(3, "0 or 2 or 4")),
        (
            "a:\n  b: 1\n    c: 2\n",
            3,
            "it is indented further than line 2, which has a value already: line them up",
        ),
        (
            "a:\n  - b: 1\n     c: 2\n",
            3,
            "it is indented further than line 2, which has a value already: line them up",
        ),
        ("a:\n  b:1\n  c: 2\n", 3, "put a blank after the colon in line 2"),
        ("a: b: c\n", 1, "quote a value that holds a colon and a blank"),
        ("a:\n  - b: c: d\n", 2, "quote a value that holds a colon and a blank"),
        ("a:\n  b: 1\n  c\n  d: 2\n", 4, "line 3 is neither a key with a colon nor an item with `-`"),
        (
            "a:\n  b: 1\n  - c\n",
            3,
            "an item with `-` stands among keys: indent it further, or give it a key of its own",
        ),
        (
            "a:\n  - b\n  c: 1\n",
            3,
            "a key stands among items with `-`: line it up with the keys of the item above",
        ),
        ("a: @x\n", 1, "quote a value that begins with this character"),
        ("a: 'x' y\nb: 1\n", 1, ""),
        ("a: [1, 2", 1, ""),
        ("a: 'x\nb: 2\n", 1, ""),
    ],
)
def test_text_that_is_not_yaml_gets_a_hint(text: str, line: int, hint: str) -> None:
    with pytest.raises(SourceError) as raised:
        compose(text)
    assert (raised.value.code, raised.value.line, raised.value.hint) == ("yaml-syntax", line, hint)


def test_what_a_dialect_wrote_anew_has_the_lines_of_what_it_was_made_of() -> None:
    text = "a: |\n  one\n    two\nb: three\n"
    root = compose(text)
    assert isinstance(root, Mapping)
    block, line = root.get("a"), root.get("b")
    assert isinstance(block, Scalar)
    assert isinstance(line, Scalar)
    lines = SourceLines(text)
    assert position_in_text(lines, Scalar("1\n  22\n", 1, 4, origin=block), 5) == (3, 5)
    assert position_in_text(lines, Scalar("1\n2\n3\n4", 1, 4, origin=block), 6) == (1, 4)
    assert position_in_text(lines, Scalar("much more", 4, 4, origin=line), 6) == (4, 4)
