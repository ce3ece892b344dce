"""The methods that may be called on values; nothing else of a Python object can be reached."""

from collections.abc import Callable, Mapping

from jinja2.runtime import LoopContext

from noetl.expr.library.operators import charge_new_items
from noetl.expr.runtime.conversion import render_text, type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import CALL_COST, MAX_TEXT, NEW_ITEM_COST
from noetl.expr.runtime.marker import refuse_marker
from noetl.expr.runtime.missing_value import GuardMissing, Missing
from noetl.model.errors import ExpressionError

Method = Callable[..., object]

_TEXT_METHOD_NAMES = [
    "capitalize",
    "casefold",
    "count",
    "endswith",
    "find",
    "index",
    "isalnum",
    "isalpha",
    "isdecimal",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "istitle",
    "isupper",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "rfind",
    "rindex",
    "rpartition",
    "rstrip",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
]
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def call_method(
    evaluation: Evaluation, owner: object, name: str, /, *args: object, **kwargs: object
) -> object:
    """`owner.name(…)`. In a guard, a method of an undefined is undefined."""
    if isinstance(owner, GuardMissing):
        return owner
    for value in (owner, *args, *kwargs.values()):
        if isinstance(value, Missing):
            value.fail()
        refuse_marker(value)
    method = _methods_of(owner).get(name)
    if method is None:
        raise ExpressionError(f"{type_name(owner)} has no method `{name}`")
    evaluation.budget.charge(CALL_COST)
    try:
        return method(evaluation, owner, *args, **kwargs)
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"`{name}()` failed: {error}") from None


def join_parts(evaluation: Evaluation, separator: str, parts: object) -> str:
    """The parts as one text; stops as soon as it grows too long."""
    if not isinstance(parts, list | tuple | range | str | Mapping):
        raise ExpressionError(f"only a list can be joined, not {type_name(parts)}")
    texts: list[str] = []
    length = 0
    for part in parts:
        text = render_text(part, evaluation.budget)
        length += len(text) + len(separator)
        if length > MAX_TEXT:
            break
        texts.append(text)
    evaluation.budget.charge_text(length)
    return separator.join(texts)


def replace_text(evaluation: Evaluation, text: str, old: str, new: str, count: int = -1) -> str:
    """The text with `old` replaced, at most `count` times."""
    evaluation.budget.charge_text(len(text))
    occurrences = text.count(old)
    times = occurrences if count < 0 else min(count, occurrences)
    evaluation.budget.charge_text(len(text) + times * max(len(new) - len(old), 0))
    return text.replace(old, new, count)


def _text_method(name: str) -> Method:
    function = getattr(str, name)

    def method(evaluation: Evaluation, text: str, *args: object) -> object:
        # One character may become three: `ΐ` in capitals.
        evaluation.budget.charge_text(len(text) * (4 if name in ("casefold", "upper") else 1))
        result = function(text, *args)
        return list(result) if isinstance(result, tuple) else result

    return method


def _padding_method(name: str) -> Method:
    function = getattr(str, name)

    def method(evaluation: Evaluation, text: str, width: int, *fill: str) -> object:
        evaluation.budget.charge_text(max(width, len(text)))
        return function(text, width, *fill)

    return method


def _splitting_method(name: str) -> Method:
    function = getattr(str, name)

    def method(evaluation: Evaluation, text: str, sep: str | None = None, maxsplit: int = -1) -> object:
        evaluation.budget.charge_text(len(text))
        # Split into more parts than can be paid for, the work would be done before it is refused.
        affordable = max(evaluation.budget.left // NEW_ITEM_COST, 0)
        parts = function(text, sep, affordable if maxsplit < 0 else min(affordable, maxsplit))
        charge_new_items(evaluation, len(parts))
        return parts

    return method


def _splitlines(evaluation: Evaluation, text: str) -> object:
    evaluation.budget.charge_text(len(text))
    # At least as many as there will be lines: `\r\n` counts twice.
    charge_new_items(evaluation, sum(map(text.count, _LINE_ENDS)))
    return text.splitlines()


def _items(evaluation: Evaluation, mapping: Mapping[str, object]) -> object:
    charge_new_items(evaluation, len(mapping))
    return list(mapping.items())


def _keys(evaluation: Evaluation, mapping: Mapping[str, object]) -> object:
    evaluation.budget.charge(len(mapping))
    return list(mapping)


def _values(evaluation: Evaluation, mapping: Mapping[str, object]) -> object:
    evaluation.budget.charge(len(mapping))
    return list(mapping.values())


def _get(evaluation: Evaluation, mapping: Mapping[str, object], key: str, default: object = None) -> object:
    value = evaluation.item(mapping, key)
    return default if isinstance(value, Missing) else value


def _list_count(evaluation: Evaluation, items: list[object], value: object) -> object:
    evaluation.budget.measure(items)
    return items.count(value)


def _list_index(evaluation: Evaluation, items: list[object], value: object) -> object:
    evaluation.budget.measure(items)
    if value not in items:
        raise ExpressionError("`index()` did not find the value in the list")
    return items.index(value)


def _cycle(_: Evaluation, loop: LoopContext, *values: object) -> object:
    return loop.cycle(*values)


_TEXT: dict[str, Method] = {
    **{name: _text_method(name) for name in _TEXT_METHOD_NAMES},
    **{name: _padding_method(name) for name in ("center", "ljust", "rjust", "zfill")},
    "join": join_parts,
    "replace": replace_text,
    "rsplit": _splitting_method("rsplit"),
    "split": _splitting_method("split"),
    "splitlines": _splitlines,
}
_MAPPING: dict[str, Method] = {"get": _get, "items": _items, "keys": _keys, "values": _values}
_LIST: dict[str, Method] = {"count": _list_count, "index": _list_index}
_LOOP: dict[str, Method] = {"cycle": _cycle}

METHOD_NAMES = frozenset({*_TEXT, *_MAPPING, *_LIST, *_LOOP})
METHODS = {"text": _TEXT, "mapping": _MAPPING, "list": _LIST, "loop": _LOOP}


def _methods_of(owner: object) -> dict[str, Method]:
    if isinstance(owner, str):
        return _TEXT
    if isinstance(owner, Mapping):
        return _MAPPING
    if isinstance(owner, list | tuple):
        return _LIST
    if isinstance(owner, LoopContext):
        return _LOOP
    return {}
