"""Text made after a pattern: `'%s' | format(…)` and `'{}'.format(…)`.

Python's own would read attributes and items of values, and make texts of any width. Here each placeholder is
one call on one plain value, charged before it is made.
"""

import re

from noetl.expr.runtime.conversion import render_text
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import CALL_COST, integer_cost
from noetl.model.errors import ExpressionError

_MAX_WIDTH = 1_000
_MOST_DIGITS = 320
"""Characters of a number without a width: those of the largest float."""

# All repetitions are bounded, so that no pattern makes the search go back and forth.
_PERCENT = re.compile(
    r"%(?:(?P<percent>%)|(?:\((?P<key>\w+)\))?"
    r"(?P<flags>[#0\- +]{0,5})(?P<width>\d{0,4})(?:\.(?P<precision>\d{0,4}))?(?P<type>[diouxXeEfFgGcrs]))?"
)
_BRACES = re.compile(
    r"\{\{|\}\}|\{(?P<key>\w*)(?:!(?P<conversion>[rs]))?(?::(?P<spec>[^{}]{0,40}))?\}|[{}][^{}]{0,20}\}?"
)
_SPEC = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?(?P<width>\d{0,4})[,_]?(?:\.(?P<precision>\d{1,4}))?[bcdeEfFgGosxX%]?",
    re.DOTALL,
)
_BRACES_HINT = "placeholders are `{}`, `{0}` or `{name}`, with a format such as `{:>10}` or `{:.2f}`"


def format_percent(
    evaluation: Evaluation, pattern: str, values: tuple[object, ...], named: dict[str, object]
) -> str:
    """The pattern with `%s`, `%05d`, `%(name)s` and the like replaced. Raises ExpressionError."""
    waiting = iter(values)

    def replace(match: re.Match[str]) -> str:
        if match["percent"]:
            return "%"
        if match["type"] is None:
            raise ExpressionError(
                "`format` does not understand a `%` in the pattern", hint="write `%%` for one"
            )
        key = match["key"]
        value = _named_value(named, key) if key else next(waiting, waiting)
        if value is waiting:
            raise ExpressionError("`format` has fewer values than placeholders")
        quoted = match["type"] == "r" and isinstance(value, str)
        plain = _charge_value(evaluation, value, match["width"], match["precision"], quoted=quoted)
        letter = "s" if match["type"] == "r" and not quoted else match["type"]
        precision = "" if match["precision"] is None else f".{match['precision']}"
        return f"%{match['flags']}{match['width']}{precision}{letter}" % (plain,)

    text = _PERCENT.sub(replace, pattern)
    if next(waiting, waiting) is not waiting:
        raise ExpressionError("`format` has more values than placeholders")
    return _charged_text(evaluation, text)


def format_braces(evaluation: Evaluation, pattern: str, /, *values: object, **named: object) -> str:
    """The pattern with `{}`, `{0}`, `{name}` replaced. Raises ExpressionError, for parts of values, too."""
    taken = 0
    numbered = False

    def replace(match: re.Match[str]) -> str:
        nonlocal taken, numbered
        if match[0] in ("{{", "}}"):
            return match[0][0]
        key, spec = match["key"], match["spec"] or ""
        form = _SPEC.fullmatch(spec)
        if key is None or form is None:
            raise ExpressionError(f"`format()` does not understand `{match[0]}`", hint=_BRACES_HINT)
        if not key:
            value = _value_at(values, taken)
            taken += 1
        elif key.isdecimal():
            value = _value_at(values, int(key[:4]))
            numbered = True
        else:
            value = _named_value(named, key)
        if taken and numbered:
            raise ExpressionError("`format()` takes either `{}` or `{0}`, not both")
        quoted = match["conversion"] == "r" and isinstance(value, str)
        plain = _charge_value(evaluation, value, form["width"], form["precision"], quoted=quoted)
        plain = repr(plain) if quoted else str(plain) if match["conversion"] else plain
        return format(str(plain) if plain is None else plain, spec)

    return _charged_text(evaluation, _BRACES.sub(replace, pattern))


def _value_at(values: tuple[object, ...], index: int) -> object:
    if index >= len(values):
        raise ExpressionError("`format` has fewer values than placeholders")
    return values[index]


def _named_value(named: dict[str, object], key: str) -> object:
    if key not in named:
        raise ExpressionError(f"`format` has no value called `{key[:100]}`")
    return named[key]


def _charge_value(
    evaluation: Evaluation, value: object, width: str | None, precision: str | None, *, quoted: bool
) -> str | float | None:
    """The value as it is put in: a scalar, or text. What it will take is charged."""
    if max(int(width or 0), int(precision or 0)) > _MAX_WIDTH:
        raise ExpressionError(f"`format` makes fields of at most {_MAX_WIDTH:,} characters")
    budget = evaluation.budget
    if not (value is None or isinstance(value, str | int | float)):
        value = render_text(value, budget)
    size = len(value) * (10 if quoted else 1) if isinstance(value, str) else _MOST_DIGITS  # `\U0001f600`
    budget.charge(CALL_COST + (integer_cost(value) if isinstance(value, int) else 0))
    budget.charge_text(size + int(width or 0) + int(precision or 0))
    return value


def _charged_text(evaluation: Evaluation, text: str) -> str:
    evaluation.budget.charge_text(len(text))
    return text
