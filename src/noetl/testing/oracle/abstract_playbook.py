"""Playbooks as plain data: what the oracle reads, and what a document is written from."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Condition: TypeAlias = tuple[Any, ...]
"""What a guard asks, as `PlaybookModel` answers it and the document says it; the first word is its kind."""

Write: TypeAlias = tuple[str, Any]
"""A key of ctx and a value: that one, or the token's number for `V`, or one more than K for `("next", K)`."""

V: tuple[str] = ("v",)

Reducer: TypeAlias = Literal[
    "sum", "count", "min", "max", "append", "concat", "merge", "union", "first", "last"
]


class AbstractArc(Struct, frozen=True, kw_only=True):
    """`more` is added to the number that the token carries; `writes` happen when the arc is taken."""

    target: str
    condition: Condition = ("always",)
    more: int = 0
    writes: tuple[Write, ...] = ()


class AbstractLoop(Struct, frozen=True, kw_only=True):
    """Each iteration writes its item to `key`, twice if `twice`; those in `failing` fail then.

    One that is `distributed` ends as it would in one worker; only the order of its iterations is freer.
    """

    items: tuple[Any, ...]
    parallel: bool = False
    in_flight: int = 10
    window: int = 1_000
    best_effort: bool = False
    failing: frozenset[int] = frozenset()
    key: str = ""
    reducer: Reducer | None = None
    twice: bool = False
    distributed: bool = False


class AbstractStep(Struct, frozen=True, kw_only=True):
    """`tool` is `none` (it only routes), `pass` (a noop that hands on what came) or `value`.

    A run fails, after its writes, if the number of its token is in `failing`. `ending_writes` happen when it
    ends, however that is. `reads` is a key of ctx that stands in its result. `seconds` are those it waits
    first, where time costs nothing.
    """

    name: str
    tool: Literal["none", "pass", "value"] = "value"
    join: Literal["", "all", "any"] | int = ""
    inclusive: bool = False
    failing: frozenset[int] = frozenset()
    writes: tuple[Write, ...] = ()
    ending_writes: tuple[Write, ...] = ()
    reads: str = ""
    seconds: int = 0
    loop: AbstractLoop | None = None
    arcs: tuple[AbstractArc, ...] = ()


class AbstractPlaybook(Struct, frozen=True, kw_only=True):
    """The first step is where it begins; `final` runs last and fails if it is told to."""

    steps: tuple[AbstractStep, ...]
    final: AbstractStep | None = None
    output: str = ""
    """The key of ctx that is the result, if the document says so."""
    no_next_is_error: bool = False
