"""What expressions use of Jinja beyond its documented interface is as it was when they were written.

A release of Jinja that changes any of it fails here, by name, and not somewhere in an evaluation.
"""

import re
from collections.abc import Callable
from inspect import signature
from typing import Any, get_args

import pytest
from jinja2 import Environment, Template, TemplateSyntaxError, Undefined, nodes
from jinja2.lexer import TokenStream, operators
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from noetl.expr.analysis import uses
from noetl.expr.language import parser
from noetl.expr.language.environment import ENVIRONMENTS, ExpressionEnvironment
from noetl.expr.language.parser import parse_syntax
from noetl.expr.language.transform import Operation, transform_syntax
from noetl.expr.runtime import evaluation
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.scope import EvaluationSite

JINJA = Environment(autoescape=True)
MACRO_PARAMETERS = "self environment func name arguments catch_kwargs catch_varargs caller default_autoescape"


def test_the_parser_has_the_fields_that_ours_sets() -> None:
    theirs, ours = vars(Parser(JINJA, "")), vars(parser._OffsetParser([]))
    assert set(theirs) - {"environment"} == set(ours) - {"_open"}
    for name in ("closed", "extensions", "_last_identifier", "_tag_stack", "_end_token_stack"):
        assert theirs[name] == ours[name], name


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (Parser.subparse, "self end_tokens"),
        (Parser.parse_statement, "self"),
        (Parser.parse_or, "self"),
        (Parser.parse_unary, "self with_filter"),
        (Parser.fail, "self msg lineno exc"),
        (Parser.fail_eof, "self end_tokens lineno"),
        (TokenStream.__init__, "self generator name filename"),
        (TokenStream.look, "self"),
        (Environment.compile, "self source name filename raw defer_init"),
        (Environment.call_test, "self name value args kwargs context eval_ctx"),
        (SandboxedEnvironment.call, "__self __context __obj args kwargs"),
        (SandboxedEnvironment.call_binop, "self context operator left right"),
        (SandboxedEnvironment.call_unop, "self context operator arg"),
        (Macro.__init__, MACRO_PARAMETERS),
        (Template.from_code, "environment code globals uptodate"),
        (Context.resolve_or_missing, "self key"),
        (Undefined.__init__, "self hint obj name exc"),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_what_is_called_or_replaced_takes_these_arguments(
    method: Callable[..., Any], parameters: str
) -> None:
    names = [name.removeprefix("_SandboxedEnvironment") for name in signature(method).parameters]
    assert names == parameters.split()


def test_operators_have_the_names_that_the_lexer_gives_them() -> None:
    assert sorted(set(operators.values())) == [
        "add",
        "assign",
        "colon",
        "comma",
        "div",
        "dot",
        "eq",
        "floordiv",
        "gt",
        "gteq",
        "lbrace",
        "lbracket",
        "lparen",
        "lt",
        "lteq",
        "mod",
        "mul",
        "ne",
        "pipe",
        "pow",
        "rbrace",
        "rbracket",
        "rparen",
        "semicolon",
        "sub",
        "tilde",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ }}", "Expected an expression, got 'end of print statement'"),
        ("{% if %}", "Expected an expression, got 'end of statement block'"),
        ("{{ a b }}", "expected token 'end of print statement', got 'b'"),
        ("{{ a + }}", "unexpected 'end of print statement'"),
        ("{% for a %}", "expected token 'in', got 'end of statement block'"),
    ],
)
def test_faults_are_worded_as_they_are_recognised(source: str, message: str) -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        JINJA.parse(source)
    assert caught.value.message == message


COMMON = ("node", "name", "args", "kwargs", "dyn_args", "dyn_kwargs")
FIELDS: dict[type[nodes.Node], tuple[str, ...]] = {
    nodes.Template: ("body",),
    nodes.Output: ("nodes",),
    nodes.For: ("target", "iter", "body", "else_", "test", "recursive"),
    nodes.If: ("test", "body", "elif_", "else_"),
    nodes.Assign: ("target", "node"),
    nodes.AssignBlock: ("target", "filter", "body"),
    nodes.CallBlock: ("call", "args", "defaults", "body"),
    nodes.ExprStmt: ("node",),
    nodes.FilterBlock: ("body", "filter"),
    nodes.InternalName: ("name",),
    nodes.Macro: ("name", "args", "defaults", "body"),
    nodes.With: ("targets", "values", "body"),
    nodes.BinExpr: ("left", "right"),
    nodes.UnaryExpr: ("node",),
    nodes.Name: ("name", "ctx"),
    nodes.NSRef: ("name", "attr"),
    nodes.Const: ("value",),
    nodes.TemplateData: ("data",),
    nodes.Tuple: ("items", "ctx"),
    nodes.List: ("items",),
    nodes.Dict: ("items",),
    nodes.Pair: ("key", "value"),
    nodes.Keyword: ("key", "value"),
    nodes.CondExpr: ("test", "expr1", "expr2"),
    nodes.Filter: COMMON,
    nodes.Test: COMMON,
    nodes.Call: ("node", "args", "kwargs", "dyn_args", "dyn_kwargs"),
    nodes.Getitem: ("node", "arg", "ctx"),
    nodes.Getattr: ("node", "attr", "ctx"),
    nodes.Slice: ("start", "stop", "step"),
    nodes.Concat: ("nodes",),
    nodes.Compare: ("expr", "ops"),
    nodes.Operand: ("op", "expr"),
    nodes.EnvironmentAttribute: ("name",),
}


@pytest.mark.parametrize("node", FIELDS, ids=lambda node: node.__name__)
def test_the_syntax_tree_has_these_fields(node: type[nodes.Node]) -> None:
    assert node.fields == FIELDS[node]
    assert "lineno" in node.attributes


def test_every_node_of_an_expression_is_known() -> None:
    """A new kind of node would be refused as unavailable: decide about it."""
    statements = (nodes.Stmt, nodes.Template, nodes.Slice, nodes.Keyword)
    internal = {
        *("Expr", "BinExpr", "UnaryExpr", "Literal", "_FilterTestCommon", "Helper", "NSRef", "TemplateData"),
        *("EnvironmentAttribute", "ExtensionAttribute", "ImportedName", "InternalName", "MarkSafe"),
        *("MarkSafeIfAutoescape", "ContextReference", "DerivedContextReference"),
    }
    visited = {nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.And, nodes.Or}
    known = visited | {nodes.CondExpr} | set(uses._VISITORS)
    for node in vars(nodes).values():
        if isinstance(node, type) and issubclass(node, nodes.Node) and node is not nodes.Node:
            assert issubclass(node, statements) or node.__name__ in internal or node in known, node


def test_a_context_has_the_fields_that_an_evaluation_sets() -> None:
    environment = ENVIRONMENTS[EvaluationSite.VALUE]
    ours = Evaluation(environment, environment.eval_ctx, {})
    theirs = vars(JINJA.from_string("").new_context())
    assert set(theirs) == {
        "blocks",
        "environment",
        "eval_ctx",
        "exported_vars",
        "globals_keys",
        "name",
        "parent",
        "vars",
    }
    for name, value in theirs.items():
        if name not in ("blocks", "environment", "eval_ctx", "globals_keys", "parent"):
            assert getattr(ours, name) == value, name


def test_an_undefined_says_what_is_missing_in_these_fields() -> None:
    assert Undefined.__slots__ == (
        "_undefined_hint",
        "_undefined_obj",
        "_undefined_name",
        "_undefined_exception",
    )
    assert callable(Undefined._fail_with_undefined_error)


def test_a_namespace_keeps_its_values_where_they_are_read() -> None:
    assert object.__getattribute__(Namespace({"a": 1}), "_Namespace__attrs") == {"a": 1}


def test_loop_has_the_fields_that_may_be_read() -> None:
    assert all(hasattr(LoopContext, field) or field == "depth0" for field in evaluation._LOOP_FIELDS)
    assert callable(LoopContext.cycle)


EVERYTHING = """
{% set x = a.b['c'][d:2] %}{% for i in x if i %}{{ loop.index + i * 2 - 1 // 3 ** 2 % 5 / 7 }}{{ dict(k=i) }}
{% else %}{{ [a, {'k': b}, (1, c)] ~ 'text' }}{% endfor %}{% if a < 1 and b or not c %}{{ -a | default(b) }}
{% elif a is divisibleby(3) %}{{ 'x'.join(a) if b else c }}{% endif %}{{ range(3) }}{{ a.data }}{{ {a: b[c]} }}
{% macro m(p, q=a) %}{{ p }}{{ caller(q) }}{{ kwargs }}{{ varargs }}{% endmacro %}{% call(z) m(1) %}{{ z }}{% endcall %}
{% filter upper %}a{{ b }}{% endfilter %}{% set t %}x{% endset %}{% with w = a %}{{ w }}{% endwith %}{{ m(t) }}
{% set n = namespace(k=1) %}{% set n.k = +a %}{% print n.k %}
"""


def test_generated_code_reaches_nothing_but_this() -> None:
    """Whatever else of the environment or the context code may use has to be looked at for its limits."""
    environment = ENVIRONMENTS[EvaluationSite.VALUE]
    tree = nodes.Template(parse_syntax(EVERYTHING).body, lineno=1)
    tree = transform_syntax(tree, frozenset({"x", "i"}))
    tree.set_environment(environment)
    code = environment.compile(tree, raw=True)
    assert set(re.findall(r"\bcontext\.(\w+)", code)) == {
        *("eval_ctx", "exported_vars", "resolve_or_missing", "vars")
    }
    assert set(re.findall(r"\benvironment\.(\w+)", code)) == {
        *(
            "call",
            "call_binop",
            "call_unop",
            "concat",
            "filters",
            "finalize",
            "getitem",
            "tests",
            "undefined",
        ),
        *get_args(Operation),
    }


def test_every_operation_is_one_of_the_environment() -> None:
    assert set(get_args(Operation)) <= set(vars(ExpressionEnvironment))
