"""A canonical document as YAML for people to read and keep."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from noetl.model.json import Json
from noetl.model.yaml_scalars import yaml_block, yaml_flow_mapping, yaml_scalar

Shape: TypeAlias = Literal[
    "", "root", "workbook", "labelled", "steps", "step", "tasks", "task", "loop", "router", "arcs", "arc"
]

_FIRST: dict[Shape, tuple[str, ...]] = {
    "root": ("apiVersion", "kind", "metadata", "keychain", "executor", "workload", "workflow", "workbook"),
    "step": ("step", "desc", "args", "spec", "loop", "tool", "next"),
    "task": ("name", "kind", "desc"),
    "loop": ("desc", "spec", "in", "iterator"),
    "router": ("spec", "arcs"),
    "arc": ("step", "desc", "when", "args"),
}
_LAST: dict[Shape, tuple[str, ...]] = {"task": ("document", "spec")}
_CHILDREN: dict[tuple[Shape, str], Shape] = {
    ("root", "workflow"): "steps",
    ("root", "workbook"): "workbook",
    ("workbook", "tasks"): "labelled",
    ("step", "loop"): "loop",
    ("step", "tool"): "tasks",
    ("step", "next"): "router",
    ("router", "arcs"): "arcs",
    ("task", "document"): "root",
}
_ITEMS: dict[Shape, Shape] = {"workbook": "task", "steps": "step", "tasks": "task", "arcs": "arc"}
# Where the specification itself writes small mappings on one line.
_ON_ONE_LINE = frozenset({"then", "spec", "timeout", "lease"})
_LINE = 100
# YAML allows 1,024 characters in a key that no `?` announces: this is safely below.
_LONGEST_KEY = 500


def to_yaml(document: Json) -> str:
    """The document as YAML text: keys in the order of the specification, one blank line between parts.

    Reading the text gives an equal document. Lone surrogates, which no YAML can hold, are the exception.
    """
    return "\n".join(_lines(document, "root", "")) + "\n"


def _lines(value: Json, shape: Shape, indent: str) -> Iterator[str]:
    """The lines of a value that starts a line of its own, each with `indent` in front."""
    if isinstance(value, dict) and value:
        yield from _mapping(value, shape, indent)
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            if number and shape == "steps":
                yield ""
            yield from _item(item, _ITEMS.get(shape, ""), indent)
    else:
        yield from f"{indent}{_inline(value, indent + '  ')}".split("\n")


def _mapping(value: dict[str, Json], shape: Shape, indent: str) -> Iterator[str]:
    if shape == "task" and "kind" not in value and len(value) == 1:
        shape = "labelled"
    for number, key in enumerate(_ordered(value, shape)):
        if number and shape == "root" and key != "kind":
            yield ""
        child = "task" if shape == "labelled" else _CHILDREN.get((shape, key), "")
        yield from _entry(key, value[key], child, indent)


def _entry(key: str, value: Json, shape: Shape, indent: str) -> Iterator[str]:
    name = yaml_scalar(key)
    if len(name) > _LONGEST_KEY:
        yield f"{indent}? {name}"
        name = ""
    one_line = yaml_flow_mapping(value) if key in _ON_ONE_LINE else None
    if one_line is not None and len(indent) + len(name) + len(one_line) <= _LINE:
        yield f"{indent}{name}: {one_line}"
    elif isinstance(value, dict | list) and value:
        yield f"{indent}{name}:"
        yield from _lines(value, shape, indent + "  ")
    else:
        yield from f"{indent}{name}: {_inline(value, indent + '  ')}".split("\n")


def _item(value: Json, shape: Shape, indent: str) -> Iterator[str]:
    """The value as a list item: its first line shares the line of the dash."""
    inner = indent + "  "
    if isinstance(value, dict | list) and value:
        lines = _lines(value, shape, inner)
        yield f"{indent}- {next(lines)[len(inner) :]}"
        yield from lines
    else:
        yield from f"{indent}- {_inline(value, inner)}".split("\n")


def _inline(value: Json, indent: str) -> str:
    if isinstance(value, str):
        return yaml_block(value, indent) or yaml_scalar(value)
    if isinstance(value, dict):
        return "{}"
    return "[]" if isinstance(value, list) else yaml_scalar(value)


def _ordered(value: dict[str, Json], shape: Shape) -> list[str]:
    first = [key for key in _FIRST.get(shape, ()) if key in value]
    last = [key for key in _LAST.get(shape, ()) if key in value]
    return first + [key for key in value if key not in first and key not in last] + last
