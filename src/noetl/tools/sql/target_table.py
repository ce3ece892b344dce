"""The table that rows go into, as `into` names it."""

import re
from collections.abc import Callable
from typing import NamedTuple

from noetl.model.outcome import ToolError

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_INTO = re.compile(
    rf"\s*(?P<table>{_NAME}(?:\.{_NAME}){{0,2}})\s*(?:\((?P<columns>\s*{_NAME}\s*(?:,\s*{_NAME}\s*)*)\))?\s*"
)


class TargetTable(NamedTuple):
    """A table as SQL names it, and the columns that are named with it.

    `parts` are the names of which its name is made, without quotes and as they are written.
    """

    table: str
    columns: list[str]
    parts: list[str]


def parse_target_table(text: str) -> TargetTable:
    """ToolError of kind `input` if the text names no table."""
    match = _INTO.fullmatch(text)
    if match is None:
        message = f"`into` names no table: {text!r}"
        raise ToolError("input", f'{message}: write `table`, `schema.table` or `"Table" (a, b)`')
    columns = re.findall(_NAME, match["columns"] or "")  # in lower case, as PostgreSQL has it
    parts = [_unquote(name, str) for name in re.findall(_NAME, match["table"])]
    return TargetTable(match["table"], [_unquote(name, str.lower) for name in columns], parts)


def quote_identifier(name: str) -> str:
    """The name of a column, table or database as SQL, whatever is in it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _unquote(name: str, fold: Callable[[str], str]) -> str:
    """What a name stands for: unless it is quoted, in the case that the server gives it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else fold(name)
