"""Results at the tool boundary are JSON values."""

import math
from collections import Counter, OrderedDict, UserDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.model import normalisation
from noetl.model.normalisation import MAX_DEPTH, MAX_VALUES, NotJson, normalise

Point = namedtuple("Point", "x y")


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("ä€😀", "ä€😀"),
        (2**100, 2**100),
        (-(2**63) - 1, -(2**63) - 1),
        (0.1, 0.1),
        ((1, (2, 3)), [1, [2, 3]]),
        (Point(1, 2), [1, 2]),
        ({"a": {"b": ()}}, {"a": {"b": []}}),
        (OrderedDict(a=1), {"a": 1}),
        (UserDict(a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (Colour.RED, "red"),
        ({Colour.RED: Level.HIGH}, {"red": 3}),
        (
            {1: 1, -2.5: 2, 1e100: 3, True + 0.5: 4, Level.HIGH: 5, Decimal("0.10"): 6},
            {"1": 1, "-2.5": 2, "1e+100": 3, "1.5": 4, "3": 5, "0.1": 6},
        ),
        ({True: 1, False: 2, None: 3}, {"true": 1, "false": 2, "null": 3}),
        (datetime(2030, 1, 31, 9, 5, tzinfo=UTC), "2030-01-31T09:05:00+00:00"),
        (datetime(2030, 1, 31, 9, 5, 0, 12), "2030-01-31T09:05:00.000012"),
        (datetime(2030, 1, 31, tzinfo=timezone(timedelta(hours=2))), "2030-01-31T00:00:00+02:00"),
        (date(2030, 1, 31), "2030-01-31"),
        (time(9, 5), "09:05:00"),
    ],
)
def test_values_take_their_form_in_json(value: object, expected: object) -> None:
    normalised = normalise(value)
    assert normalised == expected
    assert msgspec.json.decode(msgspec.json.encode(normalised)) == normalised


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1", 1),
        ("1.00", 1),
        ("-0", 0),
        ("0E+30", 0.0),
        ("1E+3", 1000),
        ("1.10", 1.1),
        ("999999999999999", 999999999999999),
        ("1E+20", 1e20),
        ("0.1234567890123450", 0.123456789012345),
        ("9999999999999999", "9999999999999999"),
        ("0.12345678901234567", "0.12345678901234567"),
        ("1E+400", "1E+400"),
        ("1E-400", "1E-400"),
    ],
)
def test_a_decimal_is_a_number_where_fifteen_digits_hold_it(number: str, expected: object) -> None:
    normalised = normalise(Decimal(number))
    assert normalised == expected
    assert type(normalised) is type(expected)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_never_changes_its_value(number: Decimal) -> None:
    normalised = normalise(number)
    assert not isinstance(normalised, list | dict)
    assert Decimal(str(normalised)) == number


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1, 2}, "$"),
        (b"x", "$"),
        (object(), "$"),
        (math.nan, "$"),
        ([0, math.inf], "$[1]"),
        ({"rows": [{"price": Decimal("NaN")}]}, "$.rows[0].price"),
        ({"a b": {"c": {1j}}}, "$['a b'].c"),
        ({"a": {(1,): 2}}, "$.a"),
        ({"a": {1: 2, "1": 2}}, "$.a"),
        ({"a": {math.nan: 2}}, "$.a"),
        ({"a": {1: {1j}}}, "$.a['1']"),
        ([timedelta(1)], "$[0]"),
        ({"half": "\ud800"}, "$.half"),
        ({"\ud800": 1}, "$['\\ud800']"),
        ([1 << 5000], "$[0]"),
        ((number for number in [1]), "$"),
    ],
)
def test_what_has_no_form_is_refused_with_its_path(value: object, path: str) -> None:
    with pytest.raises(NotJson) as caught:
        normalise(value)
    assert caught.value.path == path
    assert f"`{path}`" in str(caught.value)


def test_a_cycle_is_refused() -> None:
    value: dict[str, Any] = {"a": []}
    value["a"].append(value)
    with pytest.raises(NotJson, match=r"`\$\.a\[0\]` contains itself"):
        normalise(value)


def test_shared_parts_are_no_cycle() -> None:
    part = {"a": 1}
    assert normalise([part, part]) == [part, part]


def test_depth_is_bounded() -> None:
    value: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert normalise(value) == value
    with pytest.raises(NotJson, match="deeper than 100 levels"):
        normalise([value])


@pytest.mark.no_cover
def test_parts_shared_again_and_again_are_refused_before_they_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(normalisation, "MAX_VALUES", MAX_VALUES // 20)  # by as much sooner
    value: list[Any] = [0] * 1000
    for _ in range(4):
        value = [value] * 1000
    with pytest.raises(NotJson, match="number of values over 1,000,000"):
        normalise(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_values_stay_as_they_are(value: object) -> None:
    assert normalise(value) == value


@given(st.text(st.characters(exclude_categories=())))
def test_text_is_refused_where_utf_8_cannot_hold_it(text: str) -> None:
    """Though most text is looked at only to see that it is ASCII."""
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(NotJson):
            normalise(text)
    else:
        assert normalise(text) == text
