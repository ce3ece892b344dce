"""What one attempt does on its connection to PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, cast

from psycopg import capabilities
from psycopg.pq import TransactionStatus

from noetl.ports.tool import Call
from noetl.tools.postgres.pool import PostgresConnection, StreamCursor
from noetl.tools.postgres.types import TargetType, result_column
from noetl.tools.sql.column import DriverRow
from noetl.tools.sql.input_rows import InputRows
from noetl.tools.sql.sql_inputs import SqlInputs, SqlSpec
from noetl.tools.sql.sql_session import RowCollector, SqlSession
from noetl.tools.sql.sql_task import BoundStatement
from noetl.tools.sql.statement_result import StatementResult
from noetl.tools.sql.target_table import TargetTable, quote_identifier
from noetl.tools.sql.text import POSTGRES, Statement, plan_binding

CHUNK = 100 if capabilities.has_stream_chunked() else 1
"""Rows that the driver hands over at a time."""
_CHANGES = {"INSERT", "UPDATE", "DELETE", "MERGE"}
"""Statements that give no rows unless they say RETURNING."""
_PARAMETER_TYPES = """
SELECT t.typname::text, CASE WHEN t.typcategory = 'A' THEN e.typname::text END
FROM pg_prepared_statements p, unnest(p.parameter_types) WITH ORDINALITY AS u (type, place)
JOIN pg_type t ON t.oid = u.type
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE p.name = 'noetl_parameters'
ORDER BY u.place
"""
_TABLE_COLUMNS = """
SELECT a.attname::text, t.typname::text, CASE WHEN t.typcategory = 'A' THEN e.typname::text END
FROM pg_attribute a
JOIN pg_type d ON d.oid = a.atttypid
JOIN pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""


class PostgresSession(SqlSession):
    """One attempt on PostgreSQL."""

    dialect = POSTGRES

    def __init__(self, call: Call, inputs: SqlInputs, spec: SqlSpec) -> None:
        super().__init__(call, inputs, spec)
        self._connection: PostgresConnection | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection, and it outlived the attempt."""
        return self._connection is not None and not self._connection.closed

    @property
    def connection(self) -> PostgresConnection:
        assert self._connection is not None  # noqa: S101 - statements run after `run_on`
        return self._connection

    async def run_on(self, connection: PostgresConnection) -> list[StatementResult]:
        """What each statement gave. Raises psycopg.Error, ToolError and ResultError."""
        self._connection = connection
        return await self.run()

    def transaction(self) -> AbstractAsyncContextManager[object]:
        return self.connection.transaction()

    async def leaves_transaction_open(self) -> bool:
        return self.connection.info.transaction_status != TransactionStatus.IDLE

    async def run_statement(self, bound: BoundStatement) -> StatementResult:
        values: DriverRow | None = bound.values
        if values is not None and _has_lists([values]):
            (values,) = _fit_lists([values], await self._parameter_types(bound.text))
        cursor = StreamCursor(self.connection)
        collector: RowCollector | None = None
        pending: list[DriverRow] = []
        stream = cast("AsyncGenerator[DriverRow]", cursor.stream(bound.text, values, size=CHUNK))
        async with aclosing(stream) as rows:
            async for row in rows:
                pending.append(row)
                if len(pending) >= CHUNK:
                    collector = collector or self._collector(cursor)
                    await collector.add(pending)
                    pending = []
        if cursor.description is None:
            return StatementResult(row_count=max(cursor.rowcount, 0))
        collector = collector or self._collector(cursor)
        await collector.add(pending)
        return await self.finished(collector)

    async def run_with_rows(self, statement: Statement, rows: InputRows) -> StatementResult:
        """One after the other or, in a transaction, in a pipeline."""
        plan = plan_binding(statement, POSTGRES, named=rows.columns is not None)
        self.current = BoundStatement(statement, plan.text, None, "")
        returning = statement.returning or statement.words[0] not in _CHANGES
        cursor = StreamCursor(self.connection)
        targets: list[TargetType] = []
        collector: RowCollector | None = None
        count = 0
        for batch in rows.pick(plan.keys):
            if _has_lists(batch):
                targets = targets or await self._parameter_types(plan.text)
                batch = _fit_lists(batch, targets)  # noqa: PLW2901 - the same rows, as the server takes them
            for part in [batch] if self.in_transaction else [[row] for row in batch]:
                await cursor.executemany(plan.text, part, returning=returning)
                if not returning or cursor.description is None:
                    count += _changed_rows(cursor)
                    continue
                collector = collector or self._collector(cursor)
                await collector.add(await _returned_rows(cursor))
        if collector is None:
            return StatementResult(row_count=count)
        return await self.finished(collector)

    async def load_rows(self, rows: InputRows, into: TargetTable) -> int:
        return await _copy_rows(self.connection, rows, into)

    async def _parameter_types(self, text: str) -> list[TargetType]:
        """What the server takes each parameter of a statement for. Raises psycopg.Error."""
        # Asked only for lists: the server alone knows whether one is an array or JSON, and it costs three
        # round trips.
        await self.connection.execute(f"PREPARE noetl_parameters AS {text}")
        types = await (await self.connection.execute(_PARAMETER_TYPES)).fetchall()
        await self.connection.execute("DEALLOCATE noetl_parameters")
        return [TargetType(*names) for names in types]

    def _collector(self, cursor: StreamCursor) -> RowCollector:
        return self.collector([result_column(column) for column in cursor.description or ()])


async def _returned_rows(cursor: StreamCursor) -> list[DriverRow]:
    """The rows of all runs of a statement."""
    rows: list[DriverRow] = [*await cursor.fetchall()]
    while cursor.nextset():
        rows += await cursor.fetchall()
    return rows


def _changed_rows(cursor: StreamCursor) -> int:
    """How many rows all runs of a statement changed. A driver that keeps no results knows the sum."""
    count = max(cursor.rowcount, 0)
    while cursor.nextset():
        count += max(cursor.rowcount, 0)
    return count


def _has_lists(rows: Sequence[DriverRow]) -> bool:
    return any(isinstance(value, list) for row in rows for value in row)


def _fit_lists(rows: Sequence[DriverRow], targets: Sequence[TargetType]) -> list[DriverRow]:
    """The rows with lists as arrays where the server takes them for such; elsewhere they go as JSON."""
    arrays = {index: target.write for index, target in enumerate(targets) if target.items is not None}
    fitted: list[DriverRow] = []
    for row in rows:
        values: list[Any] = list(row)
        for index, write in arrays.items():
            if write is not None:
                values[index] = write(values[index])
        fitted.append(values)
    return fitted


async def _copy_rows(connection: PostgresConnection, rows: InputRows, into: TargetTable) -> int:
    """Loads the rows by COPY and says how many they were. Raises psycopg.Error and ToolError."""
    cursor = await connection.cursor().execute(_TABLE_COLUMNS, [into.table])
    targets = {name: TargetType(kind, items) for name, kind, items in await cursor.fetchall()}
    columns = rows.columns_to_load(into.columns) or list(targets)
    writes = [targets[name].write if name in targets else None for name in columns]
    names = ", ".join(map(quote_identifier, columns))
    async with cursor.copy(f"COPY {into.table} ({names}) FROM STDIN") as copy:
        # The fast path of `copy.write_row`, which does the same and awaits each row: the formatter gives
        # something to send only when its buffer is full.
        format_row = copy.formatter.write_row
        for batch in rows.load_batches(columns):
            for row in _fit_columns(batch, writes):
                if data := format_row(row):
                    await copy.write(data)
            await asyncio.sleep(0)  # lets others in: most batches await nothing
    return cursor.rowcount


def _fit_columns(
    batch: Sequence[DriverRow], writes: Sequence[Callable[[Any], Any] | None]
) -> Sequence[DriverRow]:
    if not any(writes):
        return batch
    columns = [
        [write(value) for value in values] if write else values
        for write, values in zip(writes, zip(*batch, strict=True), strict=True)
    ]
    return list(zip(*columns, strict=True))
