"""Filters, tests and methods."""

from typing import Any

import pytest

from noetl.expr.expression import parse
from noetl.model.errors import ExpressionError

ROWS = [{"id": 2, "tag": "b"}, {"id": 1, "tag": "A"}, {"id": 3, "tag": "b"}]


def value(source: str) -> Any:
    return parse("{{ " + source + " }}").evaluate(
        {"rows": ROWS, "text": "Hello World", "map": {"b": 1, "a": 2}}
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("rows | map(attribute='id') | sort", [1, 2, 3]),
        ("rows | map(attribute='x', default=0)", [0, 0, 0]),
        ("rows | sort(attribute='id', reverse=true) | map(attribute='id')", [3, 2, 1]),
        ("rows | selectattr('tag', 'eq', 'b') | map(attribute='id')", [2, 3]),
        ("rows | rejectattr('id', 'in', [1, 2]) | first", ROWS[2]),
        ("[0, 1, 2] | select | list", [1, 2]),
        ("[1, 2, 3] | select('odd')", [1, 3]),
        ("[1, 2, 3] | reject('>', 1)", [1]),
        ("rows | groupby('tag') | map('first')", ["A", "b"]),
        ("rows | unique(attribute='tag') | length", 2),
        ("rows | sum(attribute='id')", 6),
        ("[[1], [2]] | sum(start=[])", [1, 2]),
        ("rows | map(attribute='id') | join('-')", "2-1-3"),
        ("rows | join(',', attribute='tag')", "b,A,b"),
        ("rows | max(attribute='id')", ROWS[2]),
        ("[3, 1, 2] | min", 1),
        ("['b', 'A', 'c'] | sort", ["A", "b", "c"]),
        ("['b', 'A'] | sort(case_sensitive=true)", ["A", "b"]),
        ("map | dictsort", [["a", 2], ["b", 1]]),
        ("map | dictsort(by='value')", [["b", 1], ["a", 2]]),
        ("map | items", [["b", 1], ["a", 2]]),
        ("map | list", ["b", "a"]),
        ("[1, 2, 3] | last", 3),
        ("map | last", "a"),
        ("[1, [2, [3]]] | flatten", [1, 2, [3]]),
        ("[1, [2, [3]]] | flatten(2)", [1, 2, 3]),
        ("[1, 2] | zip('ab')", [[1, "a"], [2, "b"]]),
        ("[1, 2, 3] | batch(2, 0)", [[1, 2], [3, 0]]),
        ("[1, 2, 3] | slice(2)", [[1, 2], [3]]),
        ("[1, 2, 3] | slice(2, 0)", [[1, 2], [3, 0]]),
        ("[1, 2] | reverse", [2, 1]),
        ("'ab' | reverse", "ba"),
        ("'ab' | list", ["a", "b"]),
        ("map | length", 2),
        ("[1, true, 1.0, '1'] | unique", [1, True, "1"]),
    ],
)
def test_filters_over_lists(source: str, expected: object) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("text | upper", "HELLO WORLD"),
        ("text | lower | title", "Hello World"),
        ("'aB' | capitalize", "Ab"),
        ("' a ' | trim", "a"),
        ("'xxaxx' | trim('x')", "a"),
        ("text | replace('l', 'L', 2)", "HeLLo World"),
        ("text | truncate(8)", "Hello..."),
        ("text | truncate(8, true, '')", "Hello Wo"),
        ("text | wordcount", 2),
        ("'a\\nb' | indent(2)", "a\n  b"),
        ("'a\\n\\nb' | indent(2, true)", "  a\n\n  b"),
        ("'a' | center(3)", " a "),
        ("'<a&b>' | e", "&lt;a&amp;b&gt;"),
        ("'a b/c?' | urlencode", "a%20b/c%3F"),
        ("{'a b': 1, 'c': 'é'} | urlencode", "a+b=1&c=%C3%A9"),
        ("1 | string", "1"),
        ("'é' | b64encode", "w6k="),
        ("'w6k=' | b64decode", "é"),
        ("'a' | md5", "0cc175b9c0f1b6a831c399e269772661"),
        ("'a' | sha1", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("('a' | sha256)[:8]", "ca978112"),
        ("{'b': [1, none, 'é']} | to_json", '{"b": [1, null, "é"]}'),
        ("{'b': 1} | tojson(indent=2)", '{\n  "b": 1\n}'),
        ("'{\"a\": [1, true]}' | from_json", {"a": [1, True]}),
        ("'12' | int + 1", 13),
        ("'x' | int(7)", 7),
        ("'1.9' | int", 1),
        ("'ff' | int(0, 16)", 255),
        ("none | int", 0),
        ("'1.5' | float", 1.5),
        ("'nan' | float(0)", 0),
        ("-2 | abs", 2),
        ("2.567 | round(2)", 2.57),
        ("2.1 | round(method='ceil')", 3.0),
        ("2.9 | round(0, 'floor') | int", 2),
        ("' No ' | bool", False),
        ("'a,b'.split(',') | length", 2),
        ("'a'.join(['1', 2])", "1a2"),
        ("'a-b'.partition('-')", ["a", "-", "b"]),
        ("'7'.zfill(3) ~ 'a'.ljust(2) ~ '.'", "007a ."),
        ("'a\\nb'.splitlines()", ["a", "b"]),
        ("[1, 2, 1].count(1) + [1, 2].index(2)", 3),
        ("map.get('z', 5)", 5),
    ],
)
def test_filters_and_methods_over_text_and_numbers(source: str, expected: object) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'2024-02-28' | date_add(days=2)", "2024-03-01T00:00:00Z"),
        ("'2024-02-28T10:00:00+02:00' | date_add(hours=-1, minutes=30)", "2024-02-28T09:30:00+02:00"),
        ("'2024-02-28T10:00:00Z' | date_format('%d.%m.%Y %H:%M')", "28.02.2024 10:00"),
        ("'2024-02-28' | date_format", "2024-02-28"),
        ("'1970-01-02' | timestamp", 86400.0),
        ("86400 | from_timestamp", "1970-01-02T00:00:00Z"),
        ("'28/02/2024' | to_datetime('%d/%m/%Y')", "2024-02-28T00:00:00Z"),
        ("'2024-02-28 10:00' | to_datetime", "2024-02-28T10:00:00Z"),
    ],
)
def test_dates_are_iso_text(source: str, expected: object) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "1 is number and 1 is integer and 1.5 is float and not '1' is number",
        "'a' is string and [] is sequence and {} is mapping and {} is iterable",
        "none is none and true is true and false is false and true is boolean",
        "4 is even and 3 is odd and 9 is divisibleby(3)",
        "1 is eq 1 and 1 is ne 2 and 1 is lt 2 and 2 is ge 2 and 2 is in [2] and 1 is sameas 1",
        "'a' is lower and 'A' is upper and not 1 is upper",
        "1 is not none and x is undefined",
    ],
)
def test_tests_say_what_a_value_is(source: str) -> None:
    assert value(source) is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'{' | from_json", "cannot read the text"),
        ("1 | from_json", "reads text, not a number"),
        ("'soon' | date_format", "is not an ISO 8601 date"),
        ("5 | date_format", "a date is ISO 8601 text, not a number"),
        ("'x' | to_datetime('%Y')", "does not look like"),
        ("'a' | abs", "`abs` needs a number, not text"),
        ("[1, 'a'] | sort", "only numbers, or only text, can be ordered"),
        ("rows | sort", "a mapping cannot be ordered"),
        ("rows | map(text)", "there is no filter `Hello World`"),
        ("rows | selectattr('id', text)", "there is no test `Hello World`"),
        ("rows | sort(attribute='x')", "`x` is undefined"),
        ("[] | first", "`first` is undefined"),
    ],
)
def test_filters_say_what_they_cannot_do(source: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(source)
    assert message in caught.value.message
