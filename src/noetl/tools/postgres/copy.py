"""Rows into a table, by COPY."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from noetl.tools.postgres.pool import PostgresConnection
from noetl.tools.postgres.types import TargetType
from noetl.tools.sql.input_rows import InputRows
from noetl.tools.sql.result_table import DriverRow
from noetl.tools.sql.target_table import TargetTable, quote_identifier

_COLUMNS = """
SELECT a.attname::text, t.typname::text, CASE WHEN t.typcategory = 'A' THEN e.typname::text END
FROM pg_attribute a
JOIN pg_type d ON d.oid = a.atttypid
JOIN pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""


async def copy_rows(connection: PostgresConnection, given: InputRows, into: TargetTable) -> int:
    """Loads the rows and says how many they were. Raises psycopg.Error and ToolError."""
    cursor = await connection.cursor().execute(_COLUMNS, [into.table])
    targets = {name: TargetType(kind, items) for name, kind, items in await cursor.fetchall()}
    columns = given.columns_to_load(into.columns) or list(targets)
    writes = [targets[name].write if name in targets else None for name in columns]
    names = ", ".join(map(quote_identifier, columns))
    async with cursor.copy(f"COPY {into.table} ({names}) FROM STDIN") as copy:
        formatted = copy.formatter.write_row  # what `copy.write_row` calls, but without awaiting each row
        for batch in given.load_batches(columns):
            for row in _written(batch, writes):
                if data := formatted(row):
                    await copy.write(data)
            await asyncio.sleep(0)
    return cursor.rowcount


def _written(
    batch: Sequence[DriverRow], writes: Sequence[Callable[[Any], Any] | None]
) -> Sequence[DriverRow]:
    if not any(writes):
        return batch
    columns = [
        [write(value) for value in values] if write else values
        for write, values in zip(writes, zip(*batch, strict=True), strict=True)
    ]
    return list(zip(*columns, strict=True))
