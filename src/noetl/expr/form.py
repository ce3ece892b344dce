"""What the syntax of an expression alone tells about its value."""

from jinja2 import nodes

from noetl.expr.language.parser import parse_syntax


def gives_boolean(source: str) -> bool:
    """Whether the value is true, false or nothing, whatever its names stand for."""
    return _is_boolean(parse_syntax(source).expression)


def is_concatenation(source: str) -> bool:
    """Whether the outermost operator is `~`."""
    return isinstance(parse_syntax(source).expression, nodes.Concat)


def _is_boolean(node: nodes.Node | None) -> bool:
    match node:
        case nodes.Compare() | nodes.Test() | nodes.Not() | None:
            return True
        case nodes.And() | nodes.Or():
            return _is_boolean(node.left) and _is_boolean(node.right)
        case nodes.CondExpr():
            return _is_boolean(node.expr1) and _is_boolean(node.expr2)
        case nodes.Const():
            return not isinstance(node.value, str)
        case _:
            return False
