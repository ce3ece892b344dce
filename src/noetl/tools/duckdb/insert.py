"""Rows on their way into a table of DuckDB."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from noetl.tools.duckdb.relation import run_to_relation
from noetl.tools.duckdb.tables import arrow_column
from noetl.tools.sql.column import bytes_from_text
from noetl.tools.sql.input_rows import rows_from_list
from noetl.tools.sql.target_table import TargetTable, quote_identifier

ROWS_TABLE = "__noetl_rows__"
"""The table of the rows that are loaded."""
_INTERVAL = re.compile(
    r"P(?:(?P<months>-?\d+)M)?(?:(?P<days>-?\d+)D)?(?:T(?:(?P<seconds>-?\d+(?:\.\d+)?)S)?)?"
)


def insert_statement(cursor: duckdb.DuckDBPyConnection, into: TargetTable, rows: Any) -> str:
    """The statement that loads the rows: mappings and tables by name, lists by position.

    A stored table is known as `ROWS_TABLE` already; values become one here, as the columns take them. Raises
    `duckdb.Error`, and ToolError of kind `input`.
    """
    names = ", ".join(map(quote_identifier, into.columns))
    if not isinstance(rows, list):
        if names:
            return f"INSERT INTO {into.table} ({names}) SELECT {names} FROM {ROWS_TABLE}"  # noqa: S608 - names are quoted
        return f"INSERT INTO {into.table} BY NAME FROM {ROWS_TABLE}"
    relation = run_to_relation(cursor, f"FROM {into.table}")
    if not rows:
        return f"INSERT INTO {into.table} FROM {into.table} LIMIT 0"
    types = {name.lower(): str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    input_rows = rows_from_list(rows)
    columns = input_rows.columns_to_load(into.columns)
    values = zip(*(row for batch in input_rows.load_batches(columns) for row in batch), strict=True)
    kinds = [types.get(name.lower(), "") for name in columns] if columns else list(types.values())
    kinds += [""] * (len(rows[0]) - len(kinds))  # too many values: DuckDB says so
    arrays = [arrow_column(_fit_values(column, kind)) for column, kind in zip(values, kinds, strict=False)]
    cursor.register(ROWS_TABLE, pa.table(arrays, names=[f"column_{n}" for n in range(len(arrays))]))
    names = f" ({', '.join(map(quote_identifier, columns))})" if columns else ""
    return f"INSERT INTO {into.table}{names} FROM {ROWS_TABLE}"


def _fit_values(values: Sequence[Any], kind: str) -> list[Any]:
    """The values of a column as one of this type takes them."""
    fit = _VALUE_FITS.get(kind)
    return [fit(value) for value in values] if fit else list(values)


def _blob(value: Any) -> Any:
    return bytes_from_text(value, "BLOB")


def _json(value: Any) -> Any:
    """Text is JSON already."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _interval(value: Any) -> Any:
    """Results have the form of ISO 8601, which DuckDB does not read."""
    match = _INTERVAL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    return " ".join(f"{number} {unit}" for unit, number in match.groupdict("0").items())


_VALUE_FITS: dict[str, Callable[[Any], Any]] = {"BLOB": _blob, "JSON": _json, "INTERVAL": _interval}
