"""What everything that expressions can call costs, charged before it runs.

Nothing ends a long call into C: no timeout, no signal, no thread. So the lengths of all arguments say
beforehand how long a call may take, and what has no row in `COSTS` is not allowed. What a call makes beyond
the size of its arguments (`ljust`, `*`, `split`) is charged by the function that makes it, before it does.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Literal, TypeAlias

from noetl.expr.runtime.limits import CALL_COST, Budget, integer_cost
from noetl.model.errors import ExpressionError

Cost: TypeAlias = Callable[..., None]
"""Charges a budget for a call with these arguments; the first is the value itself."""
Family: TypeAlias = Literal["text", "mapping", "list", "loop", "filter", "test", "function", "operator"]

_QUICK_SEARCH = 2_500
"""Characters below which CPython searches in the simplest way, in a time that is a product."""


def charge_call(budget: Budget, family: Family, name: str, *arguments: object) -> None:
    """Refuse the call before it runs if it may take more than is left. Raises ExpressionError."""
    cost = COSTS[family].get(name)
    if cost is None:
        raise ExpressionError(f"`{name}` cannot be called in an expression")
    budget.charge(CALL_COST)
    cost(budget, *arguments)


def _by_nothing(_: Budget, *arguments: object) -> None:
    """The time does not depend on the arguments."""


def _by_length(budget: Budget, *arguments: object) -> None:
    """Every argument is gone through once, not what is inside of it."""
    for value in arguments:
        if isinstance(value, str):
            budget.charge(len(value) >> 2)
        elif isinstance(value, int):
            budget.charge(integer_cost(value))
        elif isinstance(value, Sized):
            budget.charge(len(value))


def _by_content(budget: Budget, *arguments: object) -> None:
    """Everything inside of every argument is looked at."""
    for value in arguments:
        budget.measure(value)


def _by_search(budget: Budget, text: str, *arguments: object) -> None:
    """A search from the left: quick in long texts, a product of the lengths in short ones."""
    for sought in arguments:
        if isinstance(sought, str):
            product = min(len(text), _QUICK_SEARCH) * min(len(sought), _QUICK_SEARCH)
            budget.charge((len(text) + len(sought) >> 4) + (product >> 6))
    budget.charge(len(text) >> 4)


def _by_product(budget: Budget, text: object, *arguments: object) -> None:
    """Each character may be compared with each: searches from the right, sets of characters to strip."""
    _by_length(budget, text, *arguments)
    if isinstance(text, str):
        for sought in arguments:
            if isinstance(sought, str):
                budget.charge(len(text) * len(sought) >> 6)


def _by_searched_text(budget: Budget, value: object, *arguments: object) -> None:
    """A filter that searches: anything can be its value, and is text when it is searched."""
    if isinstance(value, str):
        _by_search(budget, value, *arguments)
    _by_length(budget, value, *arguments)


def _by_key(budget: Budget, _: object, key: object = None, *_rest: object) -> None:
    """A key is compared with the equal one; hashes of text are remembered."""
    if isinstance(key, str):
        budget.charge(len(key) >> 6)


def _by_equality(budget: Budget, left: object, right: object) -> None:
    """As long as both sides may be the same; equality looks inside only where the lengths are."""
    if isinstance(left, str):
        if isinstance(right, str):
            budget.charge(min(len(left), len(right)) >> 6)  # compared many at a time
    elif isinstance(left, Sized) and isinstance(right, Sized) and len(left) == len(right):
        _by_content(budget, left, right)


def _by_order(budget: Budget, left: object, right: object) -> None:
    """Lists of any lengths are compared up to where they differ."""
    if isinstance(left, str):
        _by_equality(budget, left, right)
    elif isinstance(left, Sized) and isinstance(right, Sized):
        _by_content(budget, left, right)


def _by_membership(budget: Budget, value: object, container: object) -> None:
    if isinstance(container, str):
        _by_search(budget, container, value)
    elif isinstance(container, Mapping):
        _by_key(budget, container, value)
    elif isinstance(container, Sequence) and not isinstance(container, range):
        budget.charge(len(container))
        if isinstance(value, Sized):
            budget.measure(container)  # each item may be nearly the same


def _by_arithmetic(budget: Budget, left: object, right: object) -> None:
    """Numbers as each digit is multiplied with each, text and lists as they are copied."""
    if isinstance(left, int) and isinstance(right, int):
        budget.charge(left.bit_length() * right.bit_length() >> 16)
    elif isinstance(left, str) and isinstance(right, str):
        budget.charge_text(len(left) + len(right))
    elif isinstance(left, Sequence) and isinstance(right, Sequence):
        _by_content(budget, left, right)


def _rows(*rows: tuple[Cost, str]) -> dict[str, Cost]:
    return {name: cost for cost, names in rows for name in names.split()}


COSTS: Mapping[Family, Mapping[str, Cost]] = {
    "text": _rows(
        (
            _by_length,
            "capitalize casefold center endswith format isalnum isalpha isascii isdecimal isdigit",
        ),
        (_by_length, "isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower"),
        (_by_length, "removeprefix removesuffix rjust splitlines startswith swapcase title upper zfill"),
        (_by_search, "count find index partition replace split"),
        (_by_product, "lstrip rfind rindex rpartition rsplit rstrip strip"),
    ),
    "mapping": _rows((_by_key, "get"), (_by_length, "copy items keys values")),
    "list": _rows((_by_content, "count index"), (_by_length, "copy")),
    "loop": _rows((_by_nothing, "cycle")),
    "filter": _rows(
        (_by_nothing, "as_list count d default first last length"),
        (
            _by_length,
            "abs b64decode b64encode batch bool capitalize center date_add date_format dictsort e escape",
        ),
        (
            _by_length,
            "flatten float from_json from_timestamp groupby indent int items join list lower map max md5",
        ),
        (_by_length, "filesizeformat forceescape format pprint random safe xmlattr"),
        (
            _by_length,
            "min reject rejectattr reverse round select selectattr sha1 sha256 slice sort string sum",
        ),
        (
            _by_length,
            "timestamp title to_datetime to_json tojson truncate unique upper urlencode wordcount zip",
        ),
        (_by_searched_text, "replace"),
        (_by_product, "trim"),
    ),
    "test": _rows(
        (
            _by_nothing,
            "boolean defined false float integer iterable mapping none number sameas sequence string",
        ),
        (_by_nothing, "true undefined"),
        (_by_length, "filter lower test upper"),
        (_by_arithmetic, "divisibleby"),
        (_by_length, "even odd"),
        (_by_equality, "== eq equalto != ne"),
        (_by_order, "< lt lessthan <= le > gt greaterthan >= ge"),
        (_by_membership, "in"),
    ),
    "function": _rows((_by_nothing, "dict namespace now range")),
    "operator": _rows(
        (_by_arithmetic, "+ - * / // % **"),
        (_by_equality, "eq ne"),
        (_by_order, "lt lteq gt gteq"),
        (_by_membership, "in notin"),
        (_by_key, "[]"),
        (_by_length, "-x +x"),
        (_by_content, "[,] {:}"),
        (_by_nothing, "[:] ~ call for not"),
    ),
}
"""The cost of each name."""


def check_costs(family: Family, functions: Mapping[str, Callable[..., object]]) -> None:
    """Refuse to load functions of which some have no cost, or costs of which some have no function."""
    if odd := functions.keys() ^ COSTS[family].keys():
        raise AssertionError(f"a {family} needs its cost, and a cost its {family}: {', '.join(sorted(odd))}")
