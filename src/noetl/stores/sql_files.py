"""Queries in `.sql` files: each has a name, and lines that stand only when they are needed."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_OPTION = re.compile(r"^.* -- if (\w+)\n", re.MULTILINE)


def load_queries(file: Path) -> Mapping[str, str]:
    """The queries of a file by name, each begun by a line `-- name: NAME`."""
    parts = _NAME.split(file.read_text("utf-8"))
    return {name: text.strip() + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def load_scripts(folder: Path) -> list[str]:
    """All scripts in a folder, in the order of their names."""
    scripts = (part for part in folder.iterdir() if part.name.endswith(".sql"))
    return [script.read_text("utf-8") for script in sorted(scripts, key=lambda script: script.name)]


def line_conditions(query: str) -> frozenset[str]:
    """What lines of the query depend on."""
    return frozenset(_OPTION.findall(query))


def choose_lines(query: str, conditions: Collection[str]) -> str:
    """The query without the lines that depend on what is not given."""
    return _OPTION.sub(lambda match: match[0] if match[1] in conditions else "", query)
