"""Filters over lists and mappings."""

import math
from collections.abc import Callable, Mapping

from noetl.expr.library.methods import join_parts
from noetl.expr.library.operators import (
    as_iterable,
    build_collection,
    calculate,
    charge_new_items,
    is_long_integer,
)
from noetl.expr.runtime.conversion import render_text, type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import CALL_COST, NEW_ITEM_COST
from noetl.expr.runtime.marker import refuse_marker
from noetl.expr.runtime.missing_value import Missing
from noetl.expr.runtime.scope import Scope
from noetl.model.errors import ExpressionError

Getter = Callable[[object], object]


def _items(value: object) -> list[object]:
    """The value as a new list; its length was charged with the call."""
    return list(as_iterable(value))


def attribute_getter(evaluation: Evaluation, attribute: object, default: object = None) -> Getter:
    """What reads `a.b.0` from an item, with `default` where that is not there."""
    if attribute is None:
        return lambda item: item
    if not isinstance(attribute, str | int):
        raise ExpressionError(f"an attribute is a key or a path of keys, not {type_name(attribute)}")
    path = str(attribute)
    keys = [int(key) if key.isdecimal() else key for key in path.split(".", 32)]
    cost = CALL_COST + len(keys) + (len(path) >> 6)

    def get(item: object) -> object:
        evaluation.budget.charge(cost)
        for key in keys:
            item = evaluation.item(item, key)
        return default if default is not None and isinstance(item, Missing) else item

    return get


def _key(evaluation: Evaluation, attribute: object, case_sensitive: object) -> Getter:
    """What items are ordered and told apart by: a number, text, a boolean or none."""
    get = attribute_getter(evaluation, attribute)

    def key(item: object) -> object:
        evaluation.budget.charge(NEW_ITEM_COST)
        value = get(item)
        if isinstance(value, Missing):
            value.fail()
        refuse_marker(value)
        if isinstance(value, str):
            evaluation.budget.charge_text(len(value))
            return value if case_sensitive else value.lower()
        if value is not None and not isinstance(value, int | float):
            raise ExpressionError(
                f"{type_name(value)} cannot be ordered or compared here",
                hint="name a key: `attribute='name'`",
            )
        return value

    return key


def _sort_by(
    evaluation: Evaluation, values: list[object], key: Getter, reverse: object = None
) -> list[object]:
    keys = [key(value) for value in values]
    evaluation.budget.charge(len(keys) * int(math.log2(len(keys) + 1)))
    kinds = {str if isinstance(k, str) else float if isinstance(k, int | float) else None for k in keys}
    if len(kinds) > 1 or (None in kinds and len(keys) > 1):
        raise ExpressionError("only numbers, or only text, can be ordered")
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse))  # type: ignore[arg-type]  # all numbers or all text
    return [values[index] for index in order]


def _length(_: Evaluation, value: object) -> int:
    return len(as_iterable(value))


def _list(evaluation: Evaluation, value: object) -> object:
    if isinstance(value, str | range):
        charge_new_items(evaluation, len(value))
    return _items(value)


def _as_list(evaluation: Evaluation, value: object) -> object:
    """A list as it is, nothing for null, and of anything else a list with it alone."""
    if isinstance(value, list | tuple | range):
        return value
    return [] if value is None else build_collection(evaluation, [value])


def _first(evaluation: Evaluation, value: object) -> object:
    return next(iter(as_iterable(value)), evaluation.undefined(value, "first"))


def _last(evaluation: Evaluation, value: object) -> object:
    items = as_iterable(value)
    if isinstance(items, Mapping):
        evaluation.budget.charge(len(items))
        items = _items(items)
    return items[-1] if items else evaluation.undefined(value, "last")


def _random(evaluation: Evaluation, value: object) -> object:
    """One of the items: the same one whenever this decision is made again."""
    scope = evaluation.scope
    if not isinstance(scope, Scope) or scope.draw is None:
        raise ExpressionError("`random` is not available here")
    items = as_iterable(value)
    if isinstance(items, Mapping):
        items = _items(items)
    return items[scope.draw(len(items))] if items else evaluation.undefined(value, "random")


def _sort(
    evaluation: Evaluation,
    value: object,
    reverse: object = None,
    case_sensitive: object = None,
    attribute: object = None,
) -> object:
    return _sort_by(evaluation, _items(value), _key(evaluation, attribute, case_sensitive), reverse)


def _extreme_filter(position: int) -> Callable[..., object]:
    def find(
        evaluation: Evaluation, value: object, case_sensitive: object = None, attribute: object = None
    ) -> object:
        items = _sort_by(evaluation, _items(value), _key(evaluation, attribute, case_sensitive))
        return items[position] if items else evaluation.undefined(value, "min" if position == 0 else "max")

    return find


def _dictsort(
    evaluation: Evaluation,
    value: object,
    case_sensitive: object = None,
    by: str = "key",
    reverse: object = None,
) -> object:
    if not isinstance(value, Mapping) and value != []:
        raise ExpressionError(f"`dictsort` orders a mapping, not {type_name(value)}")
    if by not in ("key", "value"):
        raise ExpressionError("`dictsort` orders by 'key' or by 'value'")
    pairs = _pairs(evaluation, value)
    key = _key(evaluation, 0 if by == "key" else 1, case_sensitive)
    return _sort_by(evaluation, pairs, key, reverse)


def _pairs(evaluation: Evaluation, value: object) -> list[object]:
    if not isinstance(value, Mapping):
        if value == []:
            return []
        raise ExpressionError(f"`items` needs a mapping, not {type_name(value)}")
    charge_new_items(evaluation, len(value))
    return list(value.items())


def _unique(
    evaluation: Evaluation, value: object, case_sensitive: object = None, attribute: object = None
) -> object:
    key = _key(evaluation, attribute, case_sensitive)
    seen: dict[object, object] = {}
    for item in _items(value):
        shared = key(item)
        # To Python `true` and 1 are the same key.
        seen.setdefault((isinstance(shared, bool), _dictionary_key(shared)), item)
    charge_new_items(evaluation, len(seen))
    return list(seen.values())


def _dictionary_key(key: object) -> object:
    """What is equal where keys are, with a hash of its own."""
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    return ("long", hex(key)) if isinstance(key, int) and is_long_integer(key) else key


def _groupby(
    evaluation: Evaluation,
    value: object,
    attribute: object,
    default: object = None,
    case_sensitive: object = None,
) -> object:
    """Pairs of what the items share and the items, ordered by it."""
    get, key = attribute_getter(evaluation, attribute, default), _key(evaluation, None, case_sensitive)
    groups: dict[object, tuple[object, list[object]]] = {}
    for item in _items(value):
        shared = get(item)
        groups.setdefault(_dictionary_key(key(shared)), (shared, []))[1].append(item)
    charge_new_items(evaluation, len(groups))
    return _sort_by(evaluation, list(groups.values()), lambda group: key(group[0]))  # type: ignore[index]  # a pair


def _map(
    evaluation: Evaluation, value: object, name: object = None, *args: object, **kwargs: object
) -> object:
    if name is None:
        get = attribute_getter(evaluation, kwargs.pop("attribute", None), kwargs.pop("default", None))
        if kwargs:
            raise ExpressionError("`map` takes a filter, or `attribute` and `default`")
        return build_collection(evaluation, [get(item) for item in _items(value)])
    if not isinstance(name, str):
        raise ExpressionError(f"`map` takes the name of a filter, not {type_name(name)}")
    function = evaluation.environment.filters.get(name)
    if function is None:
        raise ExpressionError(f"there is no filter `{name}`")
    return build_collection(
        evaluation, [function(evaluation, item, *args, **kwargs) for item in _items(value)]
    )


def _selection_filter(*, keep: bool, by_attribute: bool) -> Callable[..., object]:
    """`select`, `reject`, and their forms that look at an attribute."""

    def choose(evaluation: Evaluation, value: object, *args: object, **kwargs: object) -> object:
        attribute = None
        if by_attribute:
            if not args:
                raise ExpressionError("name the key to look at, for example `selectattr('active')`")
            attribute, *args = args  # type: ignore[assignment]  # a list from here on
        get = attribute_getter(evaluation, attribute)
        test = _test(evaluation, args, kwargs)
        items = _items(value)
        evaluation.budget.charge(len(items) * CALL_COST)
        return [item for item in items if test(get(item)) is keep]

    return choose


def _test(evaluation: Evaluation, args: object, kwargs: dict[str, object]) -> Callable[[object], bool]:
    if not isinstance(args, tuple | list) or not args:
        return bool
    name, *arguments = args
    environment = evaluation.environment
    if not isinstance(name, str):
        raise ExpressionError(f"the name of a test is text, not {type_name(name)}")
    if name not in environment.tests:
        raise ExpressionError(f"there is no test `{name}`")
    return lambda item: bool(environment.call_test(name, item, arguments, kwargs, evaluation))


def _sum(evaluation: Evaluation, value: object, attribute: object = None, start: object = 0) -> object:
    get = attribute_getter(evaluation, attribute)
    total = start
    for item in _items(value):
        total = calculate(evaluation, "+", total, get(item))
    return total


def _join(evaluation: Evaluation, value: object, d: object = "", attribute: object = None) -> str:
    get = attribute_getter(evaluation, attribute)
    items = as_iterable(value)
    return join_parts(
        evaluation,
        render_text(d, evaluation.budget),
        items if attribute is None else [get(item) for item in _items(items)],
    )


def _reverse(evaluation: Evaluation, value: object) -> object:
    if isinstance(value, str):
        evaluation.budget.charge_text(len(value))
        return value[::-1]
    return _items(value)[::-1]


def _flatten(evaluation: Evaluation, value: object, levels: int = 1) -> object:
    """The list with the lists inside it replaced by their items, `levels` deep."""
    items = _items(value)
    for _ in range(min(int(levels), 32)):
        evaluation.budget.measure(items)
        for item in items:
            refuse_marker(item)
        items = [inner for item in items for inner in (item if isinstance(item, list | tuple) else [item])]
    return items


def _zip(evaluation: Evaluation, value: object, *more: object) -> object:
    """Lists of the items that stand at the same place."""
    lists = [_items(items) for items in (value, *more)]
    charge_new_items(evaluation, min(map(len, lists)) * len(lists))
    return build_collection(evaluation, [list(group) for group in zip(*lists, strict=False)])


def _batch(evaluation: Evaluation, value: object, linecount: int, fill_with: object = None) -> object:
    """Lists of `linecount` items each, the last filled up with `fill_with`."""
    if type(linecount) is not int or linecount < 1:
        raise ExpressionError("`batch` needs a whole number above zero")
    items = _items(value)
    charge_new_items(evaluation, len(items))
    batches = [items[start : start + linecount] for start in range(0, len(items), linecount)]
    if batches and fill_with is not None:
        lacking = linecount - len(batches[-1])
        evaluation.budget.charge(lacking)
        batches[-1].extend([fill_with] * lacking)
    return build_collection(evaluation, batches)


def _slice(evaluation: Evaluation, value: object, slices: int, fill_with: object = None) -> object:
    """`slices` lists of about equal length."""
    if type(slices) is not int or slices < 1:
        raise ExpressionError("`slice` needs a whole number above zero")
    charge_new_items(evaluation, slices)
    items = _items(value)
    size, longer = divmod(len(items), slices)
    parts: list[list[object]] = []
    start = 0
    for index in range(slices):
        end = start + size + (index < longer)
        part = items[start:end]
        if fill_with is not None and index >= longer and longer:
            part.append(fill_with)
        parts.append(part)
        start = end
    return build_collection(evaluation, parts)


LIST_FILTERS: dict[str, Callable[..., object]] = {
    "as_list": _as_list,
    "batch": _batch,
    "count": _length,
    "dictsort": _dictsort,
    "first": _first,
    "flatten": _flatten,
    "groupby": _groupby,
    "items": _pairs,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _list,
    "map": _map,
    "max": _extreme_filter(-1),
    "min": _extreme_filter(0),
    "random": _random,
    "reject": _selection_filter(keep=False, by_attribute=False),
    "rejectattr": _selection_filter(keep=False, by_attribute=True),
    "reverse": _reverse,
    "select": _selection_filter(keep=True, by_attribute=False),
    "selectattr": _selection_filter(keep=True, by_attribute=True),
    "slice": _slice,
    "sort": _sort,
    "sum": _sum,
    "unique": _unique,
    "zip": _zip,
}
