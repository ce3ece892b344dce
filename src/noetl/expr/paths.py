"""Paths such as `ctx.user['name']` in the syntax tree, and what conditions say about them."""

from typing import TypeAlias

from jinja2 import nodes

Path: TypeAlias = tuple[str, ...]


def path_of(node: nodes.Node) -> tuple[nodes.Name, Path] | None:
    """The name a pure path starts with, and the whole path; None for anything else."""
    keys: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            keys.append(node.attr)
        elif isinstance(node, nodes.Getitem) and is_key(node.arg):
            keys.append(node.arg.value)  # type: ignore[attr-defined]
        else:
            return None
        node = node.node
    return node, (node.name, *reversed(keys))


def is_key(node: nodes.Node) -> bool:
    """Whether a subscript is a constant key."""
    return isinstance(node, nodes.Const) and type(node.value) is str


def present_if(condition: nodes.Node) -> tuple[Path, ...]:
    """The paths that are there whenever the condition holds."""
    match condition:
        case nodes.Name() | nodes.Getattr() | nodes.Getitem():
            found = path_of(condition)
            return () if found is None else (found[1],)
        case nodes.Test(name="defined"):
            return present_if(condition.node)
        case nodes.Not():
            return present_unless(condition.node)
        case nodes.And():
            return present_if(condition.left) + present_if(condition.right)
        case _:
            return ()


def present_unless(condition: nodes.Node) -> tuple[Path, ...]:
    """The paths that are there whenever the condition does not hold."""
    match condition:
        case nodes.Test(name="undefined"):
            return present_if(condition.node)
        case nodes.Not():
            return present_if(condition.node)
        case nodes.Or():
            return present_unless(condition.left) + present_unless(condition.right)
        case _:
            return ()
