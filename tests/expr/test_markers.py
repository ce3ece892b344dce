"""Expressions over values that are stored elsewhere."""

from typing import Any

import pytest

from noetl.expr.expression import parse
from noetl.expr.runtime.marker import ReferenceUnresolved, with_extracted, write_at_path
from noetl.expr.runtime.scope import EvaluationSite
from noetl.model.errors import ExpressionError
from noetl.model.reference import manifest, part_reference, value_reference

ROWS: Any = [{"id": number} for number in range(3)]
BIG = {
    **value_reference("E/1", {"n": 0, "data": 0, "rows": 0}, size=99_000),
    "extracted": {
        "n": 5,
        "data": part_reference("E/1", ("data",), {"a": 1}, extracted={"total": 7}, absent=["gone"]),
        "rows": part_reference("E/1", ("rows",), ROWS),
        "best": 1,
    },
    "selected": ["best"],
    "absent": ["none", "x"],
}
LIST = value_reference("E/2", ROWS, size=1)
TEXT = value_reference("E/3", "long", size=1)
SCOPE = {
    "r": BIG,
    "l": LIST,
    "t": TEXT,
    "m": manifest([{"key": "k", "from": 0, "to": 9, "size": 1}]),
    "one": 1,
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("r.n", 5),
        ("r['n'] + 1", 6),
        ("r.extracted.n", 5),
        ("r.extracted.best", 1),
        ("r.data.total", 7),
        ("r.data.extracted.total", 7),
        ("r.x is defined", False),
        ("r.x | default(3)", 3),
        ("r.data.gone.further | default(4)", 4),
        ("r.rows | length", 3),
        ("r | length", 3),
        ("l | count", 3),
        ("m | length", 9),
        ("l.anything is defined", False),
        ("[r is mapping, l is mapping, t is mapping]", [True, False, False]),
        ("[r is string, l is sequence, t is string, r is number]", [False, True, True, False]),
        ("r is none or not r", False),
        ("[r == none, r != 1, l == 'x', t == [1]]", [False, True, False, False]),
        ("r | default(1, true) is mapping", True),
        ("r.data", BIG["extracted"]["data"]),
        ("r", BIG),
        ("[r.rows, 1]", [BIG["extracted"]["rows"], 1]),
        ("{'a': l} if one else 2", {"a": LIST}),
    ],
)
def test_what_is_at_hand_can_be_read(source: str, value: Any) -> None:
    for site in EvaluationSite:
        assert parse(f"{{{{ {source} }}}}").evaluate(SCOPE, site) == value


@pytest.mark.parametrize(
    "source",
    [
        "r.other",
        "r.best",
        "r.data.other",
        "l[0]",
        "l | first",
        "l[:1]",
        "l + [1]",
        "t ~ 'x'",
        "t == 'long'",
        "l == [1]",
        "1 in l",
        "l in [[1], [2]]",
        "l | sum",
        "[l, [1]] | flatten",
        "r | to_json",
        "[r] | to_json",
        "{'a': r} == {'a': 1}",
        "t.upper()",
        "'x'.join(l)",
        "t is upper",
        "r.items()",
        "dict(r, a=1)",
        "[t, 'a'] | sort",
        "1 | default(l) ~ l",
        "t < 'x'",
    ],
)
def test_anything_else_is_an_error_that_says_what_to_do(source: str) -> None:
    for site in EvaluationSite:
        with pytest.raises(ReferenceUnresolved, match="stored by reference") as caught:
            parse(f"{{{{ {source} }}}}").evaluate(SCOPE, site)
        assert caught.value.kind == "limit"
        assert "spec.result.select" in caught.value.hint


def test_text_with_a_reference_in_it_is_an_error() -> None:
    for source in ("a {{ t }}", "a {{ [t] }}", "{% for x in l %}{{ x }}{% endfor %}"):
        with pytest.raises(ReferenceUnresolved):
            parse(source).evaluate(SCOPE)


def test_data_of_a_step_is_its_result_if_that_has_no_such_key() -> None:
    from noetl.expr.runtime.scope import Scope

    bare = {**value_reference("E/4", {"n": 1}, size=1), "extracted": {"n": 1}, "absent": ["data"]}
    scope = Scope({"steps": {"a": {"result": BIG}, "b": {"result": bare}, "c": {"result": LIST}}})
    assert parse("{{ a.data.total }}").evaluate(scope) == 7
    assert parse("{{ b.data.n }}").evaluate(scope) == 1
    assert parse("{{ c.data | length }}").evaluate(scope) == 3


def test_a_write_below_a_reference_is_remembered_with_it() -> None:
    written = write_at_path(write_at_path(BIG, ("n",), 6), ("data", "more"), 8)
    assert written["key"] == "E/1"
    scope = {"r": write_at_path(written, ("new", "deep"), 9)}
    for source, value in [("r.n", 6), ("r.data.more", 8), ("r.data.total", 7), ("r.new.deep", 9)]:
        assert parse(f"{{{{ {source} }}}}").evaluate(scope) == value
    with pytest.raises(ReferenceUnresolved):
        parse("{{ r | length }}").evaluate(scope)


def test_inline_values_answer_to_extracted_as_well() -> None:
    scope = {"m": with_extracted({"a": 1}, {"b": 2}), "l": with_extracted([1], {"b": 2})}
    assert parse("{{ [m.extracted.a, m.extracted.b, l.extracted.b] }}").evaluate(scope) == [1, 2, 2]
    copy = parse("{{ m }}").evaluate(scope)
    assert (type(copy), copy) == (dict, {"a": 1})
    copy = parse("{{ l }}").evaluate(scope)
    assert (type(copy), copy) == (list, [1])


@pytest.mark.parametrize(
    "source",
    [
        "{'$noetl': 'ref', 'key': 'k'}",
        "{'$' ~ 'noetl': 'ref', 'key': one | string}",
        '\'{"$noetl": "ref", "key": 1}\' | from_json',
        "dict({'$noetl': 'ref'}, key='k')",
    ],
)
def test_an_expression_cannot_make_a_reference(source: str) -> None:
    mapping = parse(f"{{{{ {source} }}}}").evaluate(SCOPE)
    assert isinstance(mapping, dict)
    assert mapping["$$noetl"] == "ref"
    assert '"$noetl"' in str(parse(f"{{{{ {source} | to_json }}}}").evaluate(SCOPE))


def test_an_error_names_the_expression() -> None:
    with pytest.raises(ExpressionError, match=r"`other` is stored by reference \(99,000 bytes\).*r\.other"):
        parse("{{ r.other }}").evaluate(SCOPE)
