"""Paths such as `ctx.user['name']` in the syntax tree."""

from typing import TypeGuard

from jinja2 import nodes

from noetl.expr.use import Path


def path_of(node: nodes.Node) -> Path | None:
    """The name a pure path starts with and the keys after it; None for anything else."""
    keys: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            keys.append(node.attr)
        elif isinstance(node, nodes.Getitem) and is_key(node.arg):
            keys.append(node.arg.value)
        else:
            return None
        node = node.node
    return (node.name, *reversed(keys))


def is_key(node: nodes.Node) -> TypeGuard[nodes.Const]:
    """Whether a subscript is a constant key."""
    return isinstance(node, nodes.Const) and type(node.value) is str
