"""Laws that hold for all expressions."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment, nodes

from noetl.expr.expression import parse
from noetl.expr.language.lexer import tokenize
from noetl.expr.language.parser import parse_syntax
from noetl.expr.runtime.scope import EvaluationSite
from noetl.model.errors import ExpressionError

BOUNDED = settings(max_examples=100, deadline=None)
"""A machine that is busy is not a failure."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)
PIECES = st.sampled_from(
    [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "-",
        "+",
        "if",
        "else",
        "for",
        "in",
        "set",
        "endfor",
        "endif",
        "raw",
        "endraw",
        "a",
        "b.c",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "'",
        '"',
        "|",
        "upper",
        "d(",
        ",",
        ":",
        ".",
        "==",
        "~",
        "**",
        "not",
        "is",
        "defined",
        "1",
        "0x",
        "1.5",
        "\\",
        "\n",
        "\x00",
        "é",
        "{",
        "}",
        "loop",
        *(
            "macro",
            "endmacro",
            "call",
            "endcall",
            "filter",
            "endfilter",
            "with",
            "endwith",
            "endset",
            "a()",
            "=",
        ),
        "namespace()",
    ]
)
NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.builds(
    lambda name, keys: name + "".join(keys),
    NAMES,
    st.lists(st.sampled_from([".x", "['y']", "[0]", "[b]"]), max_size=3),
)


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(
        ["and", "or", "==", "<", "in", "not in", "~", "+", "-", "*", "//", "%", "**", "if true else"]
    )
    return st.one_of(
        st.builds("{} {} {}".format, parts, operators, parts),
        st.builds("({})".format, parts),
        st.builds("(not {})".format, parts),
        st.builds("(-({}))".format, parts),
        st.builds("[{}, {}]".format, parts, parts),
        st.builds("{{'k': {}}}".format, parts),
        st.builds("(({}) | default({}))".format, parts, parts),
        st.builds("(({}) is defined)".format, parts),
        st.builds("({}) | length".format, parts),
        st.builds("({}).get('x')".format, parts),
        st.builds("({} if ({}) else {})".format, parts, parts, parts),
    )


EXPRESSIONS = st.recursive(PATHS | st.sampled_from(["1", "'t'", "none", "1.5"]), _combined, max_leaves=8)


@settings(BOUNDED)
@given(JSON)
def test_native_values_pass_through_unchanged(value: Any) -> None:
    assert parse("{{ x }}").evaluate({"x": value}) is value
    computed = parse("{{ x if true else y }}").evaluate({"x": value})
    assert repr(computed) == repr(value)


@settings(BOUNDED, max_examples=300)
@given(st.text() | st.lists(PIECES, max_size=25).map(" ".join) | st.lists(PIECES, max_size=25).map("".join))
def test_any_text_is_an_expression_or_an_expression_error(source: str) -> None:
    for text in (source, "{{" + source + "}}", "{%" + source + "%}"):
        try:
            expression = parse(text)
        except ExpressionError:
            continue
        assert "".join(token.text for token in tokenize(text)) == text
        with suppress(ExpressionError):
            expression.evaluate({"a": 1, "b": {"c": "x"}}, EvaluationSite.GUARD)


@settings(BOUNDED)
@given(EXPRESSIONS)
def test_an_expression_is_read_as_jinja_reads_it(source: str) -> None:
    template = "{{ " + source + " }}"
    output = Environment(autoescape=True).parse(template).body[0]
    assert isinstance(output, nodes.Output)
    assert parse_syntax(template).expression == output.nodes[0]


class Tracking(Mapping[str, Any]):
    """A mapping of mappings that notes every path read from it."""

    def __init__(self, seen: set[tuple[str, ...]], path: tuple[str, ...] = ()) -> None:
        self.seen = seen
        self.path = path

    def __getitem__(self, key: str) -> Any:
        if key not in ("a", "b", "c", "x", "y") or len(self.path) > 2:
            raise KeyError(key)
        path = (*self.path, key)
        self.seen.add(path)
        return Tracking(self.seen, path)

    def __contains__(self, key: object) -> bool:
        return key in ("a", "b", "c", "x", "y") and len(self.path) <= 2

    def __iter__(self) -> Iterator[str]:
        return iter(("x", "y"))

    def __len__(self) -> int:
        return 2


@settings(BOUNDED)
@given(EXPRESSIONS)
def test_only_paths_among_the_uses_are_read(source: str) -> None:
    expression = parse("{{ " + source + " }}")
    seen: set[tuple[str, ...]] = set()
    with suppress(ExpressionError):
        expression.evaluate(Tracking(seen), EvaluationSite.GUARD)
    uses = [use.path for use in expression.uses]
    for path in seen:
        assert any(use[: len(path)] == path or path[: len(use)] == use for use in uses), (path, uses)
