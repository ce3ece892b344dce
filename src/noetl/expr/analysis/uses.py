"""What an expression reads, and whether everything it calls exists: one pass over its syntax."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, NoReturn, Protocol

from jinja2 import nodes
from msgspec import Struct

from noetl.expr.analysis.proof import proven_paths
from noetl.expr.language.absent_features import (
    ABSENT_FILTERS,
    ABSENT_FUNCTIONS,
    ABSENT_METHODS,
    ABSENT_TESTS,
)
from noetl.expr.language.parser import Syntax
from noetl.expr.language.path import is_key
from noetl.expr.library.filters import DEFAULT_FILTERS, FILTERS, LENGTH_FILTERS
from noetl.expr.library.functions import FUNCTIONS
from noetl.expr.library.methods import METHOD_NAMES
from noetl.expr.library.tests import TESTS
from noetl.expr.use import Path, Use
from noetl.model.errors import ExpressionError

_LONGEST_NAME = 100
_MOST_NAMES = 1_000
"""What hints look through."""

_APPLYING_FILTERS: dict[str, tuple[dict[str, Callable[..., Any]], int]] = {
    "map": (FILTERS, 0),
    "reject": (TESTS, 0),
    "rejectattr": (TESTS, 1),
    "select": (TESTS, 0),
    "selectattr": (TESTS, 1),
}
"""Filters that apply another filter or test, and the place of its name among their arguments."""


class ParsedCondition(Protocol):
    """What the analyses of conditions ask of an expression. `Expression` is one, and stands above them."""

    @property
    def source(self) -> str: ...
    @property
    def uses(self) -> tuple[Use, ...]: ...
    def syntax(self) -> Syntax: ...
    def __hash__(self) -> int: ...


class Analysis(Struct, frozen=True):
    """`assigned` are the names that the template itself sets somewhere."""

    uses: tuple[Use, ...]
    assigned: frozenset[str]


def analyse(syntax: Syntax) -> Analysis:
    """Find all uses. Raises ExpressionError where something unknown or refused is called."""
    analyst = _Analyst(syntax.source)
    if syntax.expression is not None:
        analyst.visit(syntax.expression)
    else:
        analyst.visit_body(syntax.body)
    return Analysis(tuple(analyst.uses), frozenset(analyst.assigned))


def suggest_name(name: str, known: Iterable[str]) -> str:
    """A hint naming the known name that was probably meant; empty where there is none."""
    # The time of a comparison grows with the square of the lengths, and names can be computed.
    if len(name) > _LONGEST_NAME:
        return ""
    near = [other for other in islice(known, _MOST_NAMES) if len(other) <= _LONGEST_NAME]
    matches = get_close_matches(name, near, 1)
    return f"did you mean `{matches[0]}`?" if matches else ""


def hint_for(name: str, known: Iterable[str], absent: Mapping[str, str]) -> str:
    """Why Jinja has something of this name and expressions do not, or what was probably meant."""
    return absent.get(name) or suggest_name(name, known)


def _called(name: str) -> str:
    """How `local` knows that a name is that of a macro."""
    return f"{name}()"


class _Analyst:
    """Walks the syntax once. `local` are the names set by the template, `safe` the paths proven present."""

    __slots__ = ("assigned", "local", "maybe", "safe", "source", "uses")

    def __init__(self, source: str) -> None:
        self.source = source
        self.uses: list[Use] = []
        self.assigned: set[str] = set()
        self.local: set[str] = set()
        self.maybe: set[str] = set()
        self.safe: frozenset[Path] = frozenset()

    def visit(
        self, node: nodes.Node, *, optional: bool = False, length: bool = False, truth: bool = False
    ) -> None:
        """Analyse an expression.

        `optional`: its absence is provided for; `length`: only its length is asked; `truth`: only
        its truth is asked.
        """
        # Called for every node of every document: a look at the type is several times faster than a match.
        kind = type(node)
        if kind is nodes.Const:
            return
        if kind is nodes.Name or kind is nodes.Getattr or kind is nodes.Getitem:
            self._visit_path(node, optional=optional or truth, length=length)
        elif kind is nodes.Filter:
            self._visit_filter(node, length=length)  # type: ignore[arg-type]  # not narrowed by `kind is`
        elif kind is nodes.And or kind is nodes.Or:
            self._visit_logic(node, optional=optional, truth=truth)  # type: ignore[arg-type]  # likewise
        elif kind is nodes.CondExpr:
            self._visit_choice(node, optional=optional, truth=truth)  # type: ignore[arg-type]  # likewise
        else:
            visitor = _VISITORS.get(kind)
            if visitor is None:
                self._refuse(f"`{kind.__name__}` is not available in expressions", node)
            visitor(self, node)

    def _visit_path(self, node: nodes.Node, *, optional: bool, length: bool) -> None:
        keys: list[str] = []
        start = node
        while not isinstance(node, nodes.Name):
            if isinstance(node, nodes.Getattr):
                keys.append(node.attr)
                node = node.node
            elif isinstance(node, nodes.Getitem):
                arg = node.arg
                if is_key(arg):
                    keys.append(arg.value)
                else:
                    keys.clear()
                    length = False
                    self._visit_subscript(arg)
                node = node.node
            else:
                self.visit(node)
                return
        name = node.name
        if name == "self":
            self._refuse("`self` is not available in expressions", start)
        if name in self.local:
            return
        keys.append(name)
        keys.reverse()
        path = tuple(keys)
        if not optional and (self.safe or self.maybe):
            optional = name in self.maybe or any(path[: len(proven)] == proven for proven in self.safe)
        self.uses.append(Use(path, node.lineno - 1, optional, length))

    def _visit_subscript(self, arg: nodes.Node) -> None:
        if isinstance(arg, nodes.Slice):
            for part in (arg.start, arg.stop, arg.step):
                if part is not None:
                    self.visit(part)
        else:
            self.visit(arg)

    def _visit_filter(self, node: nodes.Filter, *, length: bool) -> None:
        name = node.name
        if name not in FILTERS:
            self._refuse(f"there is no filter `{name}`", node, hint_for(name, FILTERS, ABSENT_FILTERS))
        value = node.node
        if value is None:
            pass  # the text of a block
        elif name in DEFAULT_FILTERS:
            self.visit(value, optional=True, length=length and not node.args[1:] and not node.kwargs)
        else:
            self.visit(value, length=name in LENGTH_FILTERS)
        self._visit_arguments(node)
        if name in _APPLYING_FILTERS:
            self._check_applied(node)

    def _check_applied(self, node: nodes.Filter) -> None:
        """The filter or test that `map`, `select` and the like are told to apply."""
        known, position = _APPLYING_FILTERS[node.name]
        if len(node.args) > position:
            applied = node.args[position]
            if isinstance(applied, nodes.Const) and applied.value not in known:
                kind = "filter" if known is FILTERS else "test"
                absent = ABSENT_FILTERS if known is FILTERS else ABSENT_TESTS
                hint = hint_for(str(applied.value), known, absent)
                self._refuse(f"there is no {kind} `{applied.value}`", applied, hint)

    def _visit_arguments(self, node: nodes.Filter | nodes.Test | nodes.Call) -> None:
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            self._refuse("`*` and `**` arguments are not available in expressions", node)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.kwargs:
            if str(keyword.key).startswith("_"):
                self._refuse(f"there is no argument `{keyword.key}`", keyword)
            self.visit(keyword.value)

    def _visit_logic(self, node: nodes.And | nodes.Or, *, optional: bool, truth: bool) -> None:
        self.visit(node.left, truth=True)
        before = self.safe
        self.safe = before | proven_paths(node.left, holds=isinstance(node, nodes.And))
        self.visit(node.right, optional=optional, truth=truth)
        self.safe = before

    def _visit_choice(self, node: nodes.CondExpr, *, optional: bool, truth: bool) -> None:
        self.visit(node.test, truth=True)
        before = self.safe
        self.safe = before | proven_paths(node.test, holds=True)
        self.visit(node.expr1, optional=optional, truth=truth)
        if node.expr2 is not None:
            self.safe = before | proven_paths(node.test, holds=False)
            self.visit(node.expr2, optional=optional, truth=truth)
        self.safe = before

    def _visit_test(self, node: nodes.Test) -> None:
        name = node.name
        if name not in TESTS:
            offset = self.source.find(name, node.lineno + 1)
            hint = hint_for(name, TESTS, ABSENT_TESTS)
            raise ExpressionError(f"there is no test `{name}`", offset=offset, hint=hint)
        self.visit(node.node, optional=name in ("defined", "undefined"))
        self._visit_arguments(node)

    def _visit_call(self, node: nodes.Call) -> None:
        called = node.node
        if isinstance(called, nodes.Name):
            name = called.name
            if _called(name) not in self.local and name not in FUNCTIONS:
                hint = hint_for(name, FUNCTIONS, ABSENT_FUNCTIONS)
                if name in self.assigned:
                    hint = "a macro is called after `{% macro %}`, in the block where that stands"
                self._refuse(f"there is no function `{name}`", called, hint)
        elif isinstance(called, nodes.Getattr):
            if called.attr not in METHOD_NAMES:
                hint = hint_for(called.attr, METHOD_NAMES, ABSENT_METHODS)
                self._refuse(f"there is no method `{called.attr}`", called, hint)
            self.visit(called.node)
        else:
            self._refuse("only functions and methods can be called", node)
        self._visit_arguments(node)

    def _visit_not(self, node: nodes.Not) -> None:
        self.visit(node.node, truth=True)

    def _visit_children(self, node: nodes.Node) -> None:
        for child in node.iter_child_nodes():
            self.visit(child)

    def visit_body(self, statements: list[nodes.Node]) -> None:
        """Analyse the statements of a template in order."""
        for statement in statements:
            match statement:
                case nodes.Output():
                    for part in statement.nodes:
                        if type(part) is not nodes.TemplateData:
                            self.visit(part)
                case nodes.Assign():
                    self.visit(statement.node)
                    self._assign(statement.target)
                case nodes.If():
                    self._visit_if(statement)
                case nodes.For():
                    self._visit_for(statement)
                case nodes.With():
                    for value in statement.values:
                        self.visit(value)
                    self._visit_block(statement.body, *statement.targets)
                case nodes.AssignBlock():
                    self._visit_assign_block(statement)
                case nodes.FilterBlock():
                    self._visit_filter(statement.filter, length=False)
                    self._visit_block(statement.body)
                case nodes.Macro():
                    self._visit_macro(statement)
                case nodes.CallBlock():
                    self._visit_call_block(statement)
                case _:
                    self._refuse(f"`{type(statement).__name__}` is not available in expressions", statement)

    def _assign(self, target: nodes.Node) -> None:
        for name in target.find_all(nodes.Name) if not isinstance(target, nodes.Name) else (target,):
            self.local.add(name.name)
            self.assigned.add(name.name)
            self.local.discard(_called(name.name))
        for reference in target.find_all(nodes.NSRef) if not isinstance(target, nodes.NSRef) else (target,):
            # Jinja sees to it that what is written to is a namespace.
            if reference.name not in self.local:
                hint = f"write `{{% set {reference.name} = namespace() %}}` first"
                self._refuse("only names and keys of namespaces can be set", reference, hint)

    def _visit_block(self, body: list[nodes.Node], *targets: nodes.Node) -> None:
        """Analyse statements whose names end with them; `targets` are set in them from the start."""
        outside = self.local
        self.local = set(outside)
        for target in targets:
            self._assign(target)
        self.visit_body(body)
        self.local = outside

    def _visit_assign_block(self, node: nodes.AssignBlock) -> None:
        if not isinstance(node.target, nodes.Name):
            # Jinja does not look whether it is a namespace: this would write to any value.
            self._refuse("a block of text is set to a name", node.target)
        if node.filter is not None:
            self._visit_filter(node.filter, length=False)
        self._visit_block(node.body)
        self._assign(node.target)

    def _visit_macro(self, node: nodes.Macro) -> None:
        if node.name in FUNCTIONS:
            self._refuse(f"`{node.name}` is a function already", node, "call the macro by another name")
        self.assigned.add(node.name)
        self.local |= {node.name, _called(node.name)}
        self._visit_macro_body(node, "caller", _called("caller"), "kwargs", "varargs")

    def _visit_call_block(self, node: nodes.CallBlock) -> None:
        called = node.call.node
        if not isinstance(called, nodes.Name) or _called(called.name) not in self.local:
            self._refuse("`{% call %}` calls a macro", node)
        self.visit(node.call)
        self._visit_macro_body(node)

    def _visit_macro_body(self, node: nodes.Macro | nodes.CallBlock, *names: str) -> None:
        outside = self.local
        self.local = {*outside, *names}
        for argument in node.args:
            self._assign(argument)
        for default in node.defaults:
            self.visit(default)
        self.visit_body(node.body)
        self.local = outside

    def _visit_if(self, node: nodes.If) -> None:
        """Names set in one branch only may still come from outside afterwards."""
        outside, before = self.local, self.safe
        branches: list[set[str]] = []
        for choice in (node, *node.elif_):
            self.visit(choice.test, truth=True)
            refuted = self.safe | proven_paths(choice.test, holds=False)
            self.safe |= proven_paths(choice.test, holds=True)
            branches.append(self._branch(choice.body, outside))
            self.safe = refuted
        branches.append(self._branch(node.else_, outside))
        self.local = set.intersection(*branches)
        self.maybe |= set.union(*branches) - self.local
        self.safe = before

    def _branch(self, body: list[nodes.Node], outside: set[str]) -> set[str]:
        """Analyse one branch; the names that are local at its end."""
        self.local = set(outside)
        self.visit_body(body)
        at_end, self.local = self.local, outside
        return at_end

    def _visit_for(self, node: nodes.For) -> None:
        if node.recursive:
            self._refuse("recursive loops are not available in expressions", node)
        self.visit(node.iter)
        outside = self.local
        self.local = {*outside, "loop"}
        self._assign(node.target)
        before = self.safe
        if node.test is not None:
            self.visit(node.test, truth=True)
            self.safe = before | proven_paths(node.test, holds=True)
        self.visit_body(node.body)
        self.local, self.safe = set(outside), before
        self.visit_body(node.else_)
        self.local = outside

    def _refuse(self, message: str, node: nodes.Node, hint: str = "") -> NoReturn:
        raise ExpressionError(message, offset=node.lineno - 1, hint=hint)


_VISITORS: dict[type[nodes.Node], Callable[[_Analyst, Any], None]] = {
    nodes.Test: _Analyst._visit_test,
    nodes.Call: _Analyst._visit_call,
    nodes.Not: _Analyst._visit_not,
    **dict.fromkeys(
        (
            nodes.Add,
            nodes.Compare,
            nodes.Concat,
            nodes.Dict,
            nodes.Div,
            nodes.FloorDiv,
            nodes.List,
            nodes.Mod,
            nodes.Mul,
            nodes.Neg,
            nodes.Operand,
            nodes.Pair,
            nodes.Pos,
            nodes.Pow,
            nodes.Sub,
            nodes.Tuple,
        ),
        _Analyst._visit_children,
    ),
}
