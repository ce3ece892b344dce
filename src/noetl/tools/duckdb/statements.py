"""The statements of a task: their text, their place in it, and the values bound to them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import duckdb

from noetl.model.outcome import ToolError
from noetl.tools.duckdb.text import resolve_file_paths, sql_tokens

Values: TypeAlias = Sequence[Any] | Mapping[str, Any]


class DuckdbStatement(NamedTuple):
    """One statement. `lines` stand before it in its text, `values` are bound to it."""

    source: duckdb.Statement
    lines: int
    values: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.source.query)

    @property
    def controls_transaction(self) -> bool:
        return self.source.type == duckdb.StatementType.TRANSACTION

    @property
    def reads(self) -> bool:
        """Whether it does nothing but give rows."""
        return self.source.expected_result_type == [duckdb.ExpectedResultType.QUERY_RESULT]

    @property
    def only_counts(self) -> bool:
        """Whether it changes rows and says nothing but how many."""
        counts = duckdb.ExpectedResultType.CHANGED_ROWS in self.source.expected_result_type
        return counts and not any(token.text.lower() == "returning" for token in sql_tokens(self.text))

    def bind_row(self, row: Values) -> dict[str, Any]:
        """The values that it takes of a row. ToolError `input` if one is not there."""
        return ParameterBinding(row).values(self.source)


def extract_statements(
    connection: duckdb.DuckDBPyConnection,
    texts: Iterable[str],
    binding: "ParameterBinding | None",
    folder: Path,
) -> list[DuckdbStatement]:
    """All statements of the texts. `duckdb.Error` if one is none, ToolError `input` if values do not fit.

    Without a binding their values come later.
    """
    statements: list[DuckdbStatement] = []
    for text in texts:
        sql = resolve_file_paths(text, folder)
        end = 0
        for source in connection.extract_statements(sql):
            # DuckDB does not tell where a statement stands: it is looked for behind the one before.
            query = source.query.strip()
            start = max(sql.find(query, end), end)
            end = start + len(query)
            lines = sql.count("\n", 0, start)
            statements.append(DuckdbStatement(source, lines, binding.values(source) if binding else {}))
    if binding:
        binding.finish()
    return statements


class ParameterBinding:
    """Which values go to which statement.

    A list is given out to the `?` of all statements in turn; `$1` is always its first value.
    """

    def __init__(self, params: Values | None) -> None:
        self._named = params if isinstance(params, Mapping) else {}
        self._listed = params if params is not None and not isinstance(params, Mapping) else []
        self._is_list = params is not None and not isinstance(params, Mapping)
        self._next = 0
        self._used: set[int] = set()

    def values(self, source: duckdb.Statement) -> dict[str, Any]:
        """The values for the next statement. ToolError `input` if one is not there."""
        names = source.named_parameters
        in_turn = any(token.text == "?" for token in sql_tokens(source.query))
        first = self._next if in_turn else 0
        if in_turn:
            self._next += len(names)
        return {name: self._value(name, first) for name in names}

    def finish(self) -> None:
        """ToolError `input` if a list holds a value that no statement asks for."""
        for index in range(len(self._listed)):
            if index not in self._used:
                message = f"no statement asks for value {index + 1} of `params`"
                raise ToolError("input", f"{message}: use `?` or `$1` for a list, `$name` for a mapping")

    def _value(self, name: str, first: int) -> Any:
        if not name.isdigit():
            if name not in self._named:
                reason = "the values are a list" if self._is_list else "no value has this name"
                raise ToolError("input", f"nothing can be bound to `${name}`: {reason}")
            return self._named[name]
        index = first + int(name) - 1
        if index >= len(self._listed):
            reason = f"there are {len(self._listed)}" if self._is_list else "the values have names"
            raise ToolError("input", f"the SQL asks for value {index + 1}, and {reason}")
        self._used.add(index)
        return self._listed[index]
