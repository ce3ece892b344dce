"""An expression: what a playbook's string with `{{ … }}` means."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NoReturn

from jinja2 import nodes

from noetl.expr.analysis.proof import proven_paths
from noetl.expr.analysis.uses import Use, analyse, suggest_name
from noetl.expr.language.environment import ENVIRONMENTS, compile_expression, compile_template
from noetl.expr.language.parser import Syntax, parse_syntax
from noetl.expr.language.path import Path, path_of
from noetl.expr.language.transform import transform_syntax
from noetl.expr.runtime.conversion import to_json
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.missing_value import EvaluationSite, Missing, MissingError
from noetl.expr.runtime.scope import MUTABLE_NAMESPACES, Scope
from noetl.model.errors import ExpressionError, NoetlError
from noetl.model.json import Json

_CACHED_EXPRESSIONS = 16_384
_CACHED_SOURCE_LENGTH = 4_096
"""Characters of a source that is kept: with longer ones the cache could take gigabytes."""
_QUOTED_LENGTH = 100
_JSON_TYPES = frozenset({str, int, float, bool, type(None), dict, list})

Program = Callable[[Evaluation], object]


class Expression:
    """A parsed string. Equal sources are equal; code is made when first evaluated, and kept.

    `single`: the whole string is one `{{ expr }}` and yields a native value; otherwise text.
    """

    __slots__ = ("_assigned", "_mutable_names", "_path", "_programs", "single", "source", "uses")

    source: str
    single: bool
    uses: tuple[Use, ...]
    _assigned: frozenset[str]
    _path: Path | None
    _programs: dict[EvaluationSite, Program]
    _mutable_names: tuple[str, ...]

    def __init__(self, syntax: Syntax) -> None:
        analysis = analyse(syntax)
        set_field = object.__setattr__  # ours refuses: an expression does not change
        set_field(self, "source", syntax.source)
        set_field(self, "single", syntax.expression is not None)
        set_field(self, "uses", analysis.uses)
        set_field(self, "_assigned", analysis.assigned)
        set_field(self, "_path", path_of(syntax.expression) if syntax.expression is not None else None)
        set_field(self, "_programs", {})
        whole_namespaces = {use.path[0] for use in analysis.uses if len(use.path) == 1}
        set_field(self, "_mutable_names", tuple(whole_namespaces & MUTABLE_NAMESPACES))

    def evaluate(
        self, scope: Mapping[str, object] | Scope, site: EvaluationSite = EvaluationSite.VALUE
    ) -> Json:
        """The value in this scope. A scope that is a mapping holds all names there are.

        Raises ExpressionError, whatever went wrong.
        """
        # `{{ ctx }}` gives the mapping itself, and the fold writes to that one: the value would change later.
        if self._mutable_names and isinstance(scope, Scope):
            scope = scope.freeze(self._mutable_names)
        environment = ENVIRONMENTS[site]
        evaluation = Evaluation(environment, environment.eval_ctx, scope)
        try:
            if self._path is not None:
                value = _follow_path(evaluation, self._path)
                # What a scope holds is JSON. `to_json`, the slow path, would look at every part of a value
                # only to give the same object back, and refuse one that is larger than the budget.
                if type(value) in _JSON_TYPES:
                    return value  # type: ignore[return-value]  # mypy does not narrow by a set of types
            else:
                program = self._programs.get(site)
                if program is None:
                    program = self._programs[site] = self._compile(site)
                value = program(evaluation)
            return to_json(value, evaluation.budget)
        except NoetlError as error:
            # What a namespace itself raises, for example for a part that is not at hand, goes through.
            if isinstance(error, ExpressionError) and error.offset is None:
                error.message = f"{error.message} in {quote_source(self.source)}"
                error.args = (error.message,)
            raise
        except MissingError as error:
            self._report(evaluation, error.missing)
        except RecursionError:
            raise ExpressionError(f"values are nested too deeply in {quote_source(self.source)}") from None
        except Exception as error:
            # Whatever a value makes the code do, it is this expression that failed, not the engine.
            raise ExpressionError(f"{_lowercase_message(error)} in {quote_source(self.source)}") from error

    @property
    def path(self) -> Path | None:
        """The name and keys, where the whole expression is nothing but a path."""
        return self._path

    def syntax(self) -> Syntax:
        """The syntax tree. It is made anew each time: kept, it would be most of a playbook's memory."""
        return parse_syntax(self.source)

    def proves(self, *, holds: bool) -> frozenset[Path]:
        """The paths that are there whenever this, as a condition, holds or does not hold."""
        return _cached_proof(self, holds)

    def _compile(self, site: EvaluationSite) -> Program:
        syntax = self.syntax()
        environment = ENVIRONMENTS[site]
        if syntax.expression is not None:
            # `{{ a if b }}` alone is none where b does not hold; inside a text it is no text.
            if isinstance(syntax.expression, nodes.CondExpr) and syntax.expression.expr2 is None:
                syntax.expression.expr2 = nodes.Const(None, lineno=1)
            return compile_expression(transform_syntax(syntax.expression, self._assigned), environment)
        tree = transform_syntax(nodes.Template(syntax.body, lineno=1), self._assigned)
        return compile_template(tree.body, environment)

    def _report(self, evaluation: Evaluation, missing: Missing) -> NoReturn:
        """Say which part of which path is not there."""
        if missing.key is None:
            raise ExpressionError(f"{missing.reason} in {quote_source(self.source)}")
        name, offset = str(missing.key), None
        for use in self.uses:
            absent_path = _missing_part(evaluation, use.path, missing)
            if absent_path:
                name, offset = ".".join(absent_path), use.offset
                break
        hint = (
            suggest_name(str(missing.key), map(str, missing.owner))
            if isinstance(missing.owner, Mapping)
            else ""
        )
        raise ExpressionError(
            f"`{name}` is undefined in {quote_source(self.source)}",
            offset=offset,
            hint=hint or "write `| default(…)` where it may be absent",
        )

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


def _parse(source: str) -> Expression:
    return Expression(parse_syntax(source))


_parse_cached = lru_cache(_CACHED_EXPRESSIONS)(_parse)


@lru_cache(1024)
def _cached_proof(condition: Expression, holds: bool) -> frozenset[Path]:  # noqa: FBT001 - a key of the cache
    syntax = condition.syntax().expression
    return proven_paths(syntax, holds=holds) if syntax is not None else frozenset()


def _follow_path(evaluation: Evaluation, path: Path) -> object:
    """The value of a pure path, as the code that `_compile` makes of it would find it.

    Making that code takes milliseconds, most paths of a document are evaluated once or never, and most
    expressions are paths.
    """
    keys = iter(path[1:])
    if len(path) > 1 and path[1] == "data":
        value = evaluation.data_of(path[0])
        next(keys)
    else:
        value = evaluation.resolve(path[0])
    for key in keys:
        value = evaluation.item(value, key)
    return value


def _missing_part(evaluation: Evaluation, path: Path, missing: Missing) -> Path | None:
    """The start of `path` up to the key that is missing, if that is where it is missing."""
    for length in range(1, len(path) + 1):
        if path[length - 1] == missing.key:
            value = _follow_path(evaluation, path[:length])
            if isinstance(value, Missing) and value.owner is missing.owner:
                return path[:length]
    return None


def quote_source(source: str) -> str:
    """An expression as messages about its evaluation name it: they end with ` in ` and this."""
    text = " ".join(source.split())
    return f"`{text if len(text) <= _QUOTED_LENGTH else text[:_QUOTED_LENGTH] + '…'}`"


def _lowercase_message(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
