"""Changes to the syntax tree before code is made from it, so that every operation is one of ours."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from noetl.expr.runtime.limits import STEP_COST
from noetl.expr.runtime.scope import NAMESPACES
from noetl.model.reference import MARKER, escape_key

N = TypeVar("N", bound=nodes.Node)

Operation: TypeAlias = Literal[
    "build_collection",
    "build_mapping",
    "call_function",
    "call_macro",
    "call_method",
    "charge_body",
    "compare",
    "data_of",
    "get_item",
    "join_text",
    "loop_steps",
    "negate",
    "slice_value",
]
"""What a syntax tree is made of in the end: attributes of `ExpressionEnvironment`."""

_SHORT_KEY = 256
"""Characters of a key that are compared in no time."""

OLDER_EVENT_NAMES = {"call.done": ("step.done", "loop.done"), "call.error": ("step.failed",)}
"""Older names of events, with those that they mean."""


def transform_syntax(node: N, assigned: frozenset[str]) -> N:
    """The tree with operators, calls, subscripts and loops replaced by calls of the environment's own.

    `assigned` are the names that the template sets.
    """
    macros = {macro.name for macro in node.find_all(nodes.Macro)}
    result: N = _Rewriter(assigned, macros | {"caller"} if macros else macros).visit(node)
    return result


class _Rewriter(NodeTransformer):
    """Attributes become keys, so that `iter.items` is the key; methods exist only in calls."""

    def __init__(self, assigned: frozenset[str], macros: set[str]) -> None:
        self.assigned = assigned
        self._macros = macros
        self._buffers = 0
        self._filter_blocks = 0

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        key = nodes.Const(node.attr, lineno=node.lineno)
        return self.visit_Getitem(nodes.Getitem(node.node, key, "load", lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        owner, key = node.node, node.arg
        if isinstance(key, nodes.Slice):
            bounds = [part or nodes.Const(None) for part in (key.start, key.stop, key.step)]
            return self._operation("slice_value", [owner, *bounds], node)
        if isinstance(owner, nodes.Name) and isinstance(key, nodes.Const) and key.value == "data":
            name = owner.name
            if name not in self.assigned and name not in NAMESPACES and name != "loop":
                return self._operation("data_of", [nodes.Const(name)], node)
        # Jinja's own subscript has no budget: it is for keys that take no time to compare.
        if not isinstance(key, nodes.Const) or (isinstance(key.value, str) and len(key.value) > _SHORT_KEY):
            return self._operation("get_item", [owner, key], node)
        return self.generic_visit(node)

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        called = node.node
        if isinstance(called, nodes.Name):
            if called.name in self._macros:
                return self._operation("call_macro", [called, *node.args], node, node.kwargs)
            return self._operation("call_function", [nodes.Const(called.name), *node.args], node, node.kwargs)
        assert isinstance(called, nodes.Getattr)  # noqa: S101 - the analysis refused everything else
        method = nodes.Const(called.attr)
        return self._operation("call_method", [called.node, method, *node.args], node, node.kwargs)

    def visit_Not(self, node: nodes.Not) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        return self._operation("negate", [node.node], node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        return self._operation("join_text", node.nodes, node)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        return self._charge_collection(node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        return (
            node
            if node.ctx == "store"
            else self._charge_collection(nodes.List(node.items, lineno=node.lineno))
        )

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        # An author's mapping never is a marker. `build_collection` sees to keys that are computed.
        for pair in node.items:
            if isinstance(pair.key, nodes.Const) and pair.key.value == MARKER:
                pair.key = nodes.Const(escape_key(MARKER), lineno=node.lineno)
        if all(isinstance(pair.key, nodes.Const) for pair in node.items):
            return self._charge_collection(node)
        parts = [part for pair in node.items for part in (pair.key, pair.value)]
        return self._operation("build_mapping", parts, node)

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        if node.expr2 is None:
            node.expr2 = nodes.Const("", lineno=node.lineno)
        return self.generic_visit(node)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        node = with_current_event_names(node)
        operands: list[nodes.Expr] = [node.expr]
        for operand in node.ops:
            operands += [nodes.Const(operand.op), operand.expr]
        return self._operation("compare", operands, node)

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        # A step is charged for every node in the loop: names, constants and text charge nothing themselves.
        weight = sum(1 for _ in node.find_all(nodes.Node))
        self.generic_visit(node)
        node.iter = _operation("loop_steps", [node.iter, nodes.Const(max(STEP_COST, weight))], node)
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        weight = sum(1 for _ in node.find_all(nodes.Node))
        self._visit_buffered(node)
        node.body.insert(0, nodes.ExprStmt(_operation("charge_body", [nodes.Const(weight)], node)))
        return node

    visit_CallBlock = visit_Macro  # noqa: N815 - what stands in it is a macro, too

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        self._visit_buffered(node)
        return node

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> list[nodes.Node]:  # noqa: N802 - as Jinja calls it
        # Jinja writes what the filter gives as it is, be it a number. An output makes text of it.
        self._visit_buffered(node)
        self._filter_blocks += 1
        name = _internal_name(self._filter_blocks, node)
        return [
            nodes.AssignBlock(name, node.filter, node.body, lineno=node.lineno),
            nodes.Output([name], lineno=node.lineno),
        ]

    def _visit_buffered(self, node: nodes.Node) -> None:
        self._buffers += 1
        self.generic_visit(node)
        self._buffers -= 1

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        # What goes into a buffer is charged when it is put in; text itself would not be.
        return nodes.Const(node.data, lineno=node.lineno) if self._buffers else node

    def _charge_collection(self, node: nodes.List | nodes.Dict) -> nodes.Expr:
        # Constants are no more than the source has tokens: nothing to charge when they are evaluated.
        if all(isinstance(child, nodes.Const) for child in node.iter_child_nodes()):
            return node
        self.generic_visit(node)
        return _operation("build_collection", [node], node)

    def _operation(
        self,
        name: Operation,
        args: Sequence[nodes.Node],
        node: nodes.Node,
        kwargs: list[nodes.Keyword] | None = None,
    ) -> nodes.Call:
        return self.generic_visit(_operation(name, args, node, kwargs))  # type: ignore[return-value]  # the same node

    def visit_EnvironmentAttribute(self, node: nodes.EnvironmentAttribute) -> nodes.Node:  # noqa: N802 - as Jinja calls it
        return node


def _internal_name(number: int, node: nodes.Node) -> nodes.InternalName:
    """A variable of the generated code that no template can name."""
    # As `Parser.free_identifier` makes one: the constructor refuses.
    name: nodes.InternalName = object.__new__(nodes.InternalName)
    nodes.Node.__init__(name, f"filtered_{number}", lineno=node.lineno)
    return name


def _operation(
    name: Operation, args: Sequence[nodes.Node], node: nodes.Node, kwargs: list[nodes.Keyword] | None = None
) -> nodes.Call:
    function = nodes.EnvironmentAttribute(name, lineno=node.lineno)
    return nodes.Call(function, args, kwargs or [], None, None, lineno=node.lineno)


def with_current_event_names(node: nodes.Compare) -> nodes.Compare:
    """A comparison of `event.name` with constants, those that are older names replaced."""
    match node:
        case nodes.Compare(ops=[nodes.Operand(op="eq" | "ne" as op, expr=right)]):
            left = node.expr
            if _is_event_name(right):
                left, right = right, left
            if _is_event_name(left) and isinstance(right, nodes.Const) and right.value in OLDER_EVENT_NAMES:
                return _membership(left, "in" if op == "eq" else "notin", _current_names(right), node)
        case nodes.Compare(
            ops=[nodes.Operand(op="in" | "notin" as op, expr=nodes.List() | nodes.Tuple() as right)]
        ) if _is_event_name(node.expr):
            names = [name for item in right.items for name in _current_names(item)]
            return _membership(node.expr, op, names, node)
    return node


def _membership(left: nodes.Expr, op: str, names: list[nodes.Expr], node: nodes.Compare) -> nodes.Compare:
    listed = nodes.List(names, lineno=node.lineno)
    return nodes.Compare(left, [nodes.Operand(op, listed, lineno=node.lineno)], lineno=node.lineno)


def _is_event_name(node: nodes.Expr) -> bool:
    match node:
        case nodes.Getattr(attr="name", node=nodes.Name(name="event")):
            return True
        case nodes.Getitem(arg=nodes.Const(value="name"), node=nodes.Name(name="event")):
            return True
        case _:
            return False


def _current_names(node: nodes.Expr) -> list[nodes.Expr]:
    if isinstance(node, nodes.Const) and node.value in OLDER_EVENT_NAMES:
        return [nodes.Const(name, lineno=node.lineno) for name in OLDER_EVENT_NAMES[node.value]]
    return [node]
