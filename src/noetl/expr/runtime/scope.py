"""What the names of an expression mean."""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from noetl.expr.runtime.marker import ABSENT, referenced_part
from noetl.model.reference import is_reference

__all__ = [
    "ABSENT",
    "BUILTIN_ITER_KEYS",
    "ITERATOR_NAMESPACES",
    "MUTABLE_NAMESPACES",
    "NAMESPACES",
    "EvaluationSite",
    "Scope",
]

NAMESPACES = frozenset(
    {
        "_attempt",
        "_idempotency_key",
        "_prev",
        "_task",
        "args",
        "ctx",
        "event",
        "execution_id",
        "iter",
        "joined",
        "keychain",
        "outcome",
        "run",
        "steps",
        "workload",
    }
)
"""Reserved names: each means its namespace wherever it stands, unless it is the iterator of a loop there."""

ITERATOR_NAMESPACES = frozenset({"joined", "run", "steps"})
"""Namespaces that an iterator may be called: then the bare name is the item while the pipeline runs."""

MUTABLE_NAMESPACES = frozenset({"ctx", "run", "steps"})
"""Namespaces whose mapping is written to while the playbook runs."""

BUILTIN_ITER_KEYS = frozenset({"count", "first", "index", "last", "parent"})
"""Keys of `iter` that have no bare name."""

_EMPTY: Mapping[str, object] = {}


class EvaluationSite(enum.Enum):
    """Where an expression stands: a condition, or anything whose value is used."""

    GUARD = "guard"
    VALUE = "value"


class Scope:
    """The namespaces an expression sees, and the order in which bare names are looked for.

    Nothing is copied: the namespaces are read when a name is asked for. A namespace that does not
    exist at some place is left out. `results` are those of this pipeline's finished tasks by label;
    `now` answers `now()`; `draw` gives a number below another, for `random`; `iterator` is the name of a
    loop's item, which wins over a namespace.
    """

    __slots__ = ("_iterator", "_namespaces", "_results", "draw", "now")

    def __init__(
        self,
        namespaces: Mapping[str, object],
        *,
        results: Mapping[str, object] = _EMPTY,
        now: Callable[[], str] | None = None,
        draw: Callable[[int], int] | None = None,
        iterator: str = "",
    ) -> None:
        self._iterator = iterator
        self._namespaces = namespaces
        self._results = results
        self.now = now
        self.draw = draw

    def child(
        self, namespaces: Mapping[str, object], *, results: Mapping[str, object] | None = None
    ) -> "Scope":
        """The same scope with some namespaces replaced, for example a task's own `args`."""
        return Scope(
            {**self._namespaces, **namespaces},
            results=self._results if results is None else results,
            now=self.now,
            draw=self.draw,
            iterator=self._iterator,
        )

    def freeze(self, names: Iterable[str]) -> "Scope":
        """The same scope, in which these namespaces stay as they are, whatever is written later."""
        namespaces = {name: self._namespaces.get(name) for name in names}
        return self.child(
            {name: dict(values) for name, values in namespaces.items() if isinstance(values, dict)}
        )

    def resolve(self, name: str) -> object:
        """The value of a name, or ABSENT."""
        if name in NAMESPACES:
            if name == self._iterator:
                return cast("Mapping[str, object]", self._namespaces["iter"])[name]
            return self._namespaces.get(name, ABSENT)
        if name == "output" and "outcome" in self._namespaces:
            return self._output()
        value = self._variable(name)
        if value is ABSENT:
            value = self._result(name)
        if value is ABSENT and name == "job" and "execution_id" in self._namespaces:
            return dict.fromkeys(("uuid", "id", "execution_id"), self._namespaces["execution_id"])
        return value

    def resolve_data(self, name: str) -> object:
        """The value of `NAME.data`, or ABSENT where NAME is not there or lacks the key.

        The result of a step or task answers with itself where it has no key `data`.
        """
        owner = self.resolve(name)
        if is_reference(owner):
            part = referenced_part(owner, "data")
            if part is not ABSENT:
                return part
        elif isinstance(owner, Mapping) and "data" in owner:
            return owner["data"]
        if name in NAMESPACES or name == "output" or self._variable(name) is not ABSENT:
            return ABSENT
        return self._result(name)

    def _variable(self, name: str) -> object:
        spaces = self._namespaces
        for space in ("args", "ctx", "iter", "workload"):  # the order is the rule: the nearest wins
            values = spaces.get(space)
            if (
                isinstance(values, Mapping)
                and name in values
                and not (space == "iter" and name in BUILTIN_ITER_KEYS)
            ):
                return cast("object", values[name])
        return ABSENT

    def _result(self, name: str) -> object:
        if name in self._results:
            return self._results[name]
        steps = self._namespaces.get("steps")
        if isinstance(steps, Mapping) and name in steps:
            step = steps[name]
            return step.get("result", ABSENT) if isinstance(step, Mapping) else ABSENT
        return ABSENT

    def _output(self) -> object:
        outcome = self._namespaces["outcome"]
        if not isinstance(outcome, Mapping):
            return outcome
        return {**outcome, "data": outcome["result"]} if "result" in outcome else outcome
