"""What a tool gives, as JSON values: the same live as read back from the log."""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal

from noetl.model.errors import NoetlError, quoted_text
from noetl.model.json import Json

MAX_DEPTH = 100
"""Lists and mappings inside one another; expressions take no more."""
MAX_VALUES = 20_000_000
"""Values in all, a shared one as often as it appears."""
MAX_INTEGER_BITS = 4096
"""Of one integer; expressions compute no longer ones."""
EXACT_DIGITS = 15
"""Decimal digits that a float keeps."""


class NotJson(NoetlError):
    """A value has no form in JSON. `path` says which: `$.rows[3].price`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trail: list[str] = []
        """The steps of the path, innermost first."""

    @property
    def path(self) -> str:
        return "$" + "".join(reversed(self.trail))

    def __str__(self) -> str:
        return f"`{self.path}` {self.reason}"


def normalise(value: object, fallback: Callable[[object], Json] | None = None) -> Json:
    """The value in plain JSON types; NotJson if there is no faithful form.

    Tuples become lists; dates and times ISO text; a Decimal a number if 15 digits hold it, else text.
    Keys that are numbers, booleans or None become the text that JSON writes for them.
    `fallback` is asked for a form of what has none.
    """
    return _Normaliser(fallback).value(value)


class _Normaliser:
    """One pass over a value. `open` holds the containers around the place it is at."""

    __slots__ = ("fallback", "left", "open")

    def __init__(self, fallback: Callable[[object], Json] | None) -> None:
        self.fallback = fallback
        self.open: set[int] = set()
        self.left = MAX_VALUES

    def value(self, value: object) -> Json:
        kind = type(value)
        if kind is str:
            return _text(value)  # type: ignore[arg-type]  # mypy does not narrow by `type(…) is`
        if value is None or kind is bool:
            return value  # type: ignore[return-value]  # likewise
        match value:
            case int():
                return _integer(value)
            case float():
                return _number(value)
            case Mapping():
                return self.mapping(value)
            case list() | tuple():
                return self.items(value)
            case str():
                return _text(str.__str__(value))
            case Decimal():
                return _decimal(value)
            case datetime() | date() | time():
                return _moment_text(value)
        if self.fallback is not None:
            return self.fallback(value)
        raise NotJson(f"is of type `{kind.__name__}`, which JSON has no form for")

    def items(self, values: list[object] | tuple[object, ...]) -> list[Json]:
        self.enter(values, len(values))
        normalised = []
        for index, item in enumerate(values):
            try:
                normalised.append(self.value(item))
            except NotJson as fault:
                fault.trail.append(f"[{index}]")
                raise
        self.open.discard(id(values))
        return normalised

    def mapping(self, values: Mapping[object, object]) -> dict[str, Json]:
        self.enter(values, len(values))
        normalised: dict[str, Json] = {}
        for key, item in values.items():
            text = str.__str__(key) if isinstance(key, str) else _key_text(key)
            if text in normalised:
                raise NotJson(f"has two keys that are `{quoted_text(text, 100)}` in JSON")
            try:
                normalised[_text(text)] = self.value(item)
            except NotJson as fault:
                fault.trail.append(f".{text}" if text.isidentifier() else f"[{text!r}]")
                raise
        self.open.discard(id(values))
        return normalised

    def enter(self, values: Iterable[object], count: int) -> None:
        # Only what is around the place counts: the same list twice, side by side, is fine.
        if id(values) in self.open:
            raise NotJson("contains itself")
        if len(self.open) >= MAX_DEPTH:
            raise NotJson(f"lies deeper than {MAX_DEPTH} levels")
        self.left -= count
        if self.left < 0:
            raise NotJson(f"brings the number of values over {MAX_VALUES:,}")
        self.open.add(id(values))


def _key_text(key: object) -> str:
    """What JSON writes for a key that is no text. NotJson if it has none."""
    match key:
        case None:
            return "null"
        case bool():
            return "true" if key else "false"
        case int():
            return str(_integer(key))
        case float():
            return str(_number(key))
        case Decimal():
            return str(_decimal(key))
    name = type(key).__name__
    quoted = quoted_text(repr(key), 100)
    raise NotJson(f"has the key `{quoted}` of type `{name}`: keys are text, numbers, booleans or None")


def _text(text: str) -> str:
    if not text.isascii():  # ASCII has no surrogates, and most text is: no copy is made to find out
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotJson("is text with half a surrogate pair, which UTF-8 cannot hold") from None
    return text


def _integer(number: int) -> int:
    if number.bit_length() > MAX_INTEGER_BITS:
        raise NotJson(f"is an integer of more than {MAX_INTEGER_BITS} bits")
    return int.__int__(number)


def _number(number: float) -> float:
    if not math.isfinite(number):
        raise NotJson(f"is {number}, which JSON has no form for")
    return float.__float__(number)


def _decimal(number: Decimal) -> int | float | str:
    if not number.is_finite():
        raise NotJson(f"is {number}, which JSON has no form for")
    if number.adjusted() < EXACT_DIGITS and number == number.to_integral_value():
        return int(number)
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    nearest = float(number)
    if len(digits) <= EXACT_DIGITS and math.isfinite(nearest) and Decimal(repr(nearest)) == number:
        return nearest
    return str(number)


def _moment_text(moment: datetime | date | time) -> str:
    if moment != moment:  # noqa: PLR0124 - libraries have a datetime that is none, unequal to itself
        raise NotJson("is no time")
    return moment.isoformat()
