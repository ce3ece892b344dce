"""Any event that could be written."""

import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from noetl.events.event import Event
from noetl.events.event_kind import EVENT_KINDS
from noetl.model.json import Json

EXECUTION = "019a48f3-6a00-7c3e-9d52-6b1f0e8a4c17"

AT_ANY_SPEED = settings(suppress_health_check=[HealthCheck.too_slow])
"""A machine that is busy is not a failure."""

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON: SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PLAIN: dict[Any, SearchStrategy[Any]] = {
    Any: JSON,
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: FLOATS,
    types.NoneType: st.none(),
}


@cache
def any_of(hint: Any) -> SearchStrategy[Any]:
    """All values of a type."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return st.builds(hint, **{name: any_of(inner) for name, inner in get_type_hints(hint).items()})
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return st.sampled_from(arguments)
        case origin if origin in (Union, types.UnionType):
            return st.one_of(*map(any_of, arguments))
        case origin if origin is tuple:
            return st.lists(any_of(arguments[0]), max_size=3).map(tuple)
        case origin if origin is dict:
            return st.dictionaries(st.text(), any_of(arguments[1]), max_size=3)
    raise TypeError(hint)


def any_event() -> SearchStrategy[Event]:
    bodies = st.one_of(*(any_of(kind.body) for kind in EVENT_KINDS))
    return st.builds(Event, st.integers(1, 2**40), st.integers(0, 2**52), bodies)
