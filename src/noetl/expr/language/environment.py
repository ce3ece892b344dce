"""The one Jinja environment of the engine, in its two forms: for guards and for values."""

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import Template, nodes, pass_context
from jinja2.nodes import EvalContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from noetl.expr.library import operators
from noetl.expr.library.filters import FILTERS
from noetl.expr.library.functions import call_function, call_macro, charge_body
from noetl.expr.library.methods import call_method
from noetl.expr.library.tests import TESTS
from noetl.expr.runtime.conversion import render_text
from noetl.expr.runtime.evaluation import Evaluation, item
from noetl.expr.runtime.limits import MAX_TEXT
from noetl.expr.runtime.missing_value import GuardMissing, Missing, ValueMissing
from noetl.expr.runtime.scope import EvaluationSite
from noetl.model.errors import ExpressionError

_RESULT = "_result"


class ExpressionEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox in which generated code can do nothing but call the operations below.

    `optimized` stays off: Jinja would fold constants while compiling, before any limit holds.
    """

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    intercepted_unops = frozenset({"+", "-"})

    def __init__(self, undefined: type[Missing]) -> None:
        super().__init__(
            undefined=undefined,
            optimized=False,
            autoescape=False,
            cache_size=0,
            finalize=_render_output,
            keep_trailing_newline=True,
        )
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = {}
        self.eval_ctx = EvalContext(self)

    def call(self, context: Any, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Every call in generated code; `operation` is one of those below, whatever the source says."""
        # Jinja adds these to calls inside a loop or block, for functions that take a context of their own.
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        return operation(context, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Every arithmetic operator in generated code."""
        return operators.calculate(context, operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        """Every sign in generated code."""
        return operators.apply_sign(context, operator, arg)

    @staticmethod
    def concat(pieces: Sequence[str]) -> str:  # type: ignore[override]  # Jinja's is the method of a text
        """The text of a block, whose pieces were charged one by one."""
        if sum(map(len, pieces)) > MAX_TEXT:
            raise ExpressionError(f"the text would be longer than {MAX_TEXT:,} characters")
        return "".join(pieces)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Every subscript in generated code, attributes included."""
        return item(self, obj, argument)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Attributes are keys."""
        return item(self, obj, attribute)

    build_collection = staticmethod(operators.build_collection)
    build_mapping = staticmethod(operators.build_mapping)
    compare = staticmethod(operators.compare)
    data_of = staticmethod(Evaluation.data_of)
    get_item = staticmethod(operators.get_item)
    call_function = staticmethod(call_function)
    call_macro = staticmethod(call_macro)
    charge_body = staticmethod(charge_body)
    join_text = staticmethod(operators.join_text)
    call_method = staticmethod(call_method)
    slice_value = staticmethod(operators.slice_value)
    loop_steps = staticmethod(operators.LoopSteps)
    negate = staticmethod(operators.negate)


@pass_context
def _render_output(evaluation: Evaluation, value: object) -> str:
    return render_text(value, evaluation.budget)


ENVIRONMENTS = {
    EvaluationSite.GUARD: ExpressionEnvironment(GuardMissing),
    EvaluationSite.VALUE: ExpressionEnvironment(ValueMissing),
}


def compile_expression(
    expression: nodes.Expr, environment: ExpressionEnvironment
) -> Callable[[Evaluation], object]:
    """What evaluates one rewritten expression to its value."""
    # Jinja makes code of templates only, and those give text. What a template assigns at its top ends in the
    # variables of the context, as it is.
    target = nodes.Name(_RESULT, "store", lineno=1)
    root = _compile([nodes.Assign(target, expression, lineno=1)], environment)

    def run(evaluation: Evaluation) -> object:
        for _ in root(evaluation):
            pass
        return evaluation.vars[_RESULT]

    return run


def compile_template(
    body: list[nodes.Node], environment: ExpressionEnvironment
) -> Callable[[Evaluation], object]:
    """What renders a rewritten template to text, stopping as soon as that grows too long."""
    root = _compile(body, environment)

    def run(evaluation: Evaluation) -> object:
        pieces: list[str] = []
        length = 0
        for piece in root(evaluation):
            length += len(piece)
            evaluation.budget.charge(1 + (len(piece) >> 2))
            pieces.append(piece)
        evaluation.budget.charge_text(length)
        return "".join(pieces)

    return run


def _compile(body: list[nodes.Node], environment: ExpressionEnvironment) -> Callable[..., Any]:
    tree = nodes.Template(body, lineno=1)
    tree.set_environment(environment)
    code = environment.compile(tree)
    return Template.from_code(environment, code, {}).root_render_func
