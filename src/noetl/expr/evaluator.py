"""What gives expressions their values: the code that Jinja2 makes of them."""

from collections.abc import Callable, Mapping
from typing import NoReturn, TypedDict

from jinja2 import nodes

from noetl.expr.analysis.uses import analyse, suggest_name
from noetl.expr.language.environment import ENVIRONMENTS, compile_expression, compile_template
from noetl.expr.language.parser import parse_syntax
from noetl.expr.language.path import path_of
from noetl.expr.language.plain_source import read_plain
from noetl.expr.language.transform import transform_syntax
from noetl.expr.runtime.conversion import to_json
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.missing_value import Missing, MissingError
from noetl.expr.runtime.scope import MUTABLE_NAMESPACES, EvaluationSite, Scope
from noetl.expr.use import Path, Use
from noetl.model.errors import ExpressionError, NoetlError
from noetl.model.json import Json

_QUOTED_LENGTH = 100
_JSON_TYPES = frozenset({str, int, float, bool, type(None), dict, list})

Program = Callable[[Evaluation], object]


class SourceAnalysis(TypedDict):
    """What is known of an expression without a scope."""

    single: bool
    uses: tuple[Use, ...]
    assigned: frozenset[str]
    path: Path | None


def analyse_source(source: str) -> SourceAnalysis:
    """Raises ExpressionError."""
    # `_analyse_syntax` gives the same of a plain source, and takes 20 times as long.
    if (plain := read_plain(source)) is None:
        return _analyse_syntax(source)
    return {
        "single": True,
        "uses": (Use(plain.path, plain.offset),),
        "assigned": frozenset(),
        "path": None if plain.operator else plain.path,
    }


def _analyse_syntax(source: str) -> SourceAnalysis:
    syntax = parse_syntax(source)
    analysis = analyse(syntax)
    return {
        "single": syntax.expression is not None,
        "uses": analysis.uses,
        "assigned": analysis.assigned,
        "path": path_of(syntax.expression) if syntax.expression is not None else None,
    }


class Evaluator:
    """Evaluates one expression; its code is made when it is first needed."""

    __slots__ = ("_assigned", "_mutable_names", "_path", "_programs", "_source", "_uses")

    def __init__(
        self, source: str, uses: tuple[Use, ...], assigned: frozenset[str], path: Path | None
    ) -> None:
        self._source = source
        self._uses = uses
        self._assigned = assigned
        self._path = path
        self._programs: dict[EvaluationSite, Program] = {}
        whole_namespaces = {use.path[0] for use in uses if len(use.path) == 1}
        self._mutable_names = tuple(whole_namespaces & MUTABLE_NAMESPACES)

    def evaluate(self, scope: Mapping[str, object] | Scope, site: EvaluationSite) -> Json:
        """As `Expression.evaluate`."""
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
                error.message = f"{error.message} in {quote_source(self._source)}"
                error.args = (error.message,)
            raise
        except MissingError as error:
            self._report(evaluation, error.missing)
        except RecursionError:
            raise ExpressionError(f"values are nested too deeply in {quote_source(self._source)}") from None
        except Exception as error:
            # Whatever a value makes the code do, it is this expression that failed, not the engine.
            raise ExpressionError(f"{_lowercase_message(error)} in {quote_source(self._source)}") from error

    def _compile(self, site: EvaluationSite) -> Program:
        syntax = parse_syntax(self._source)
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
            raise ExpressionError(f"{missing.reason} in {quote_source(self._source)}")
        name, offset = str(missing.key), None
        for use in self._uses:
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
            f"`{name}` is undefined in {quote_source(self._source)}",
            offset=offset,
            hint=hint or "write `| default(…)` where it may be absent",
        )


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
