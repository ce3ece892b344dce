"""The methods that may be called on values; nothing else of a Python object can be reached."""

from collections.abc import Callable, Mapping

from jinja2.runtime import LoopContext

from noetl.expr.library.costs import Family, charge_call, check_costs
from noetl.expr.library.operators import charge_new_items, get_item
from noetl.expr.library.text_format import format_braces
from noetl.expr.runtime.conversion import render_text, type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import MAX_TEXT, NEW_ITEM_COST
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
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
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
_CASE_METHODS = frozenset({"capitalize", "casefold", "lower", "swapcase", "title", "upper"})
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
    family = _family_of(owner)
    if family is None or (method := METHODS[family].get(name)) is None:
        raise ExpressionError(f"{type_name(owner)} has no method `{name}`")
    charge_call(evaluation.budget, family, name, owner, *args, *kwargs.values())
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
    occurrences = text.count(old)
    times = occurrences if count < 0 else min(count, occurrences)
    evaluation.budget.charge_text(len(text) + times * max(len(new) - len(old), 0))
    return text.replace(old, new, count)


def _text_method(name: str) -> Method:
    function = getattr(str, name)

    def method(evaluation: Evaluation, text: str, *args: object) -> object:
        if name in _CASE_METHODS and not text.isascii():
            evaluation.budget.charge_text(len(text) * 3)  # one character may become three: `ΐ` in capitals
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
        # Split into more parts than can be paid for, the work would be done before it is refused.
        affordable = max(evaluation.budget.left // NEW_ITEM_COST, 0)
        parts = function(text, sep, affordable if maxsplit < 0 else min(affordable, maxsplit))
        charge_new_items(evaluation, len(parts))
        return parts

    return method


def _splitlines(evaluation: Evaluation, text: str) -> object:
    # At least as many as there will be lines: `\r\n` counts twice.
    charge_new_items(evaluation, sum(map(text.count, _LINE_ENDS)))
    return text.splitlines()


def _items(evaluation: Evaluation, mapping: Mapping[str, object]) -> object:
    charge_new_items(evaluation, len(mapping))
    return list(mapping.items())


def _keys(evaluation: Evaluation, mapping: Mapping[str, object]) -> object:
    charge_new_items(evaluation, len(mapping))
    return list(mapping)


def _values(evaluation: Evaluation, mapping: Mapping[str, object]) -> object:
    charge_new_items(evaluation, len(mapping))
    return list(mapping.values())


def _copy(_: Evaluation, value: Mapping[str, object] | list[object]) -> object:
    return dict(value) if isinstance(value, Mapping) else list(value)


def _get(evaluation: Evaluation, mapping: Mapping[str, object], key: str, default: object = None) -> object:
    value = get_item(evaluation, mapping, key)
    return default if isinstance(value, Missing) else value


def _list_count(_: Evaluation, items: list[object], value: object) -> object:
    return items.count(value)


def _list_index(_: Evaluation, items: list[object], value: object) -> object:
    if value not in items:
        raise ExpressionError("`index()` did not find the value in the list")
    return items.index(value)


def _cycle(_: Evaluation, loop: LoopContext, *values: object) -> object:
    return loop.cycle(*values)


_TEXT: dict[str, Method] = {
    **{name: _text_method(name) for name in _TEXT_METHOD_NAMES},
    **{name: _padding_method(name) for name in ("center", "ljust", "rjust", "zfill")},
    "format": format_braces,
    "join": join_parts,
    "replace": replace_text,
    "rsplit": _splitting_method("rsplit"),
    "split": _splitting_method("split"),
    "splitlines": _splitlines,
}
_MAPPING: dict[str, Method] = {"copy": _copy, "get": _get, "items": _items, "keys": _keys, "values": _values}
_LIST: dict[str, Method] = {"copy": _copy, "count": _list_count, "index": _list_index}
_LOOP: dict[str, Method] = {"cycle": _cycle}

METHOD_NAMES = frozenset({*_TEXT, *_MAPPING, *_LIST, *_LOOP})
METHODS: dict[Family, dict[str, Method]] = {
    "text": _TEXT,
    "mapping": _MAPPING,
    "list": _LIST,
    "loop": _LOOP,
}
for _family, _functions in METHODS.items():
    check_costs(_family, _functions)


def _family_of(owner: object) -> Family | None:
    if isinstance(owner, str):
        return "text"
    if isinstance(owner, Mapping):
        return "mapping"
    if isinstance(owner, list | tuple):
        return "list"
    if isinstance(owner, LoopContext):
        return "loop"
    return None
