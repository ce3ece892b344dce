"""An expression: what a playbook's string with `{{ … }}` means.

Nothing here imports Jinja2 before something is parsed or evaluated: reading an execution back needs neither,
and importing Jinja2 and what stands on it takes longer than the rest of `noetl executions show`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.expr.use import Path, Use
from noetl.model.json import Json

if TYPE_CHECKING:
    from noetl.expr.evaluator import Evaluator
    from noetl.expr.language.parser import Syntax

_CACHED_EXPRESSIONS = 16_384
_CACHED_SOURCE_LENGTH = 4_096
"""Characters of a source that is kept: with longer ones the cache could take gigabytes."""


class Expression:
    """A parsed string. Equal sources are equal; code is made when first evaluated, and kept.

    `single`: the whole string is one `{{ expr }}` and yields a native value; otherwise text. `path` is the
    name and keys, where the whole expression is nothing but a path; `assigned` are the names that it sets.
    """

    __slots__ = ("_evaluator", "assigned", "path", "single", "source", "uses")

    source: str
    single: bool
    uses: tuple[Use, ...]
    assigned: frozenset[str]
    path: Path | None
    _evaluator: "Evaluator | None"

    def __init__(
        self, source: str, *, single: bool, uses: tuple[Use, ...], assigned: frozenset[str], path: Path | None
    ) -> None:
        set_field = object.__setattr__  # ours refuses: an expression does not change
        set_field(self, "source", source)
        set_field(self, "single", single)
        set_field(self, "uses", uses)
        set_field(self, "assigned", assigned)
        set_field(self, "path", path)
        set_field(self, "_evaluator", None)

    def evaluate(
        self, scope: Mapping[str, object] | Scope, site: EvaluationSite = EvaluationSite.VALUE
    ) -> Json:
        """The value in this scope. A scope that is a mapping holds all names there are.

        Raises ExpressionError, whatever went wrong.
        """
        return (self._evaluator or self._make_evaluator()).evaluate(scope, site)

    def _make_evaluator(self) -> "Evaluator":
        from noetl.expr.evaluator import Evaluator  # noqa: PLC0415 - see above

        evaluator = Evaluator(self.source, self.uses, self.assigned, self.path)
        object.__setattr__(self, "_evaluator", evaluator)
        return evaluator

    def syntax(self) -> "Syntax":
        """The syntax tree. It is made anew each time: kept, it would be most of a playbook's memory."""
        from noetl.expr.language.parser import parse_syntax  # noqa: PLC0415 - see above

        return parse_syntax(self.source)

    def proves(self, *, holds: bool) -> frozenset[Path]:
        """The paths that are there whenever this, as a condition, holds or does not hold."""
        return _cached_proof(self, holds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return parse, (self.source,)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("an expression does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("an expression does not change")


def parse(source: str) -> Expression:
    """The expression that `source` means; equal sources share one. Raises ExpressionError."""
    return _parse_cached(source) if len(source) <= _CACHED_SOURCE_LENGTH else _parse(source)


def expect_renamed(source: str, original: Expression, uses: tuple[Use, ...]) -> None:
    """The next `parse` of `source` need not read it: it is the original with other paths, which are `uses`.

    Whoever says so has looked that `analyse_source` would give just these; a test holds the two equal.
    """
    if len(_renamed) >= _CACHED_EXPRESSIONS:
        _renamed.clear()
    path = uses[0].path if original.path is not None else None
    _renamed[source] = Expression(
        source, single=original.single, uses=uses, assigned=original.assigned, path=path
    )


def _parse(source: str) -> Expression:
    if _renamed and (renamed := _renamed.pop(source, None)) is not None:
        return renamed
    from noetl.expr.evaluator import analyse_source  # noqa: PLC0415 - see above

    return Expression(source, **analyse_source(source))


_renamed: dict[str, Expression] = {}
"""What was said of sources that are still to be parsed."""
_parse_cached = lru_cache(_CACHED_EXPRESSIONS)(_parse)


@lru_cache(1024)
def _cached_proof(condition: Expression, holds: bool) -> frozenset[Path]:  # noqa: FBT001 - a key of the cache
    from noetl.expr.analysis.proof import proven_paths  # noqa: PLC0415 - see above

    syntax = condition.syntax().expression
    return proven_paths(syntax, holds=holds) if syntax is not None else frozenset()
