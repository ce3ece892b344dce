"""What one attempt does on its connection to PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, cast

from psycopg import capabilities
from psycopg.pq import TransactionStatus

from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.postgres.kind import PostgresInputs, PostgresSpec
from noetl.tools.postgres.pool import PostgresConnection, StreamCursor
from noetl.tools.postgres.types import TargetType, result_column
from noetl.tools.sql.column import DriverRow
from noetl.tools.sql.input_rows import InputRows, open_input_rows
from noetl.tools.sql.result_table import ResultTable
from noetl.tools.sql.sql_task import (
    BoundStatement,
    bind_statements,
    controls_transaction,
    in_one_transaction,
    row_limit,
    single_statement,
)
from noetl.tools.sql.statement_result import StatementResult
from noetl.tools.sql.target_table import TargetTable, parse_target_table, quote_identifier
from noetl.tools.sql.text import POSTGRES, Statement, plan_binding

CHUNK = 100 if capabilities.has_stream_chunked() else 1
"""Rows that the driver hands over at a time."""
_AT_ONCE = 200
"""Rows that are converted without leaving the loop."""
_CHANGES = {"INSERT", "UPDATE", "DELETE", "MERGE"}
"""Statements that give no rows unless they say RETURNING."""
_PARAMETERS = """
SELECT t.typname::text, CASE WHEN t.typcategory = 'A' THEN e.typname::text END
FROM pg_prepared_statements p, unnest(p.parameter_types) WITH ORDINALITY AS u (type, place)
JOIN pg_type t ON t.oid = u.type
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE p.name = 'noetl_parameters'
ORDER BY u.place
"""


class PostgresSession:
    """One attempt. `current` is the statement that runs, `warnings` what its values lost."""

    def __init__(self, call: Call, inputs: PostgresInputs, spec: PostgresSpec) -> None:
        self.current: BoundStatement | None = None
        self._connection: PostgresConnection | None = None
        self.warnings: list[str] = []
        self._call = call
        self._inputs = inputs
        self._spec = spec
        self._most = row_limit(spec)
        self._drafts = AsyncExitStack()

    @property
    def connected(self) -> bool:
        """Whether there is a connection, and it outlived the attempt."""
        return self._connection is not None and not self._connection.closed

    async def run(self, connection: PostgresConnection) -> list[StatementResult]:
        """What each statement gave. Raises psycopg.Error, ToolError and ResultError."""
        self._connection = connection
        async with self._drafts:
            if self._call.inputs.get("rows") is None:
                answers = await self._statements(connection)
            else:
                async with open_input_rows(self._call) as given:
                    answers = [await self._rows(connection, given)]
        if connection.info.transaction_status != TransactionStatus.IDLE:
            message = "the SQL leaves a transaction open, which is rolled back: end it with COMMIT"
            raise ToolError("sql", message)
        return answers

    async def _statements(self, connection: PostgresConnection) -> list[StatementResult]:
        bound = bind_statements(self._inputs, POSTGRES)
        if not in_one_transaction([one.statement for one in bound], self._spec):
            return [await self._statement(connection, one) for one in bound]
        async with connection.transaction():
            answers = [await self._statement(connection, one) for one in bound]
            self.current = None
        return answers

    async def _statement(self, connection: PostgresConnection, bound: BoundStatement) -> StatementResult:
        self.current = bound
        values: DriverRow | None = bound.values
        if values is not None and _has_lists([values]):
            (values,) = _fitted([values], await self._parameters(connection, bound.text))
        cursor = StreamCursor(connection)
        table: ResultTable | None = None
        pending: list[DriverRow] = []
        count = 0
        stream = cast("AsyncGenerator[DriverRow]", cursor.stream(bound.text, values, size=CHUNK))
        async with aclosing(stream) as rows:
            async for row in rows:
                if table is None:
                    table = self._table(cursor)
                count += 1
                if self._most is not None and count > self._most:
                    continue
                pending.append(row)
                if len(pending) >= table.batch_size:
                    await self._add(table, pending)
                    pending = []
        if cursor.description is None:
            return StatementResult(row_count=max(cursor.rowcount, 0))
        table = table or self._table(cursor)
        await self._add(table, pending)
        return (await self._answer(table))._replace(row_count=count)

    async def _rows(self, connection: PostgresConnection, given: InputRows) -> StatementResult:
        if self._inputs.into is not None:
            return StatementResult(
                row_count=await copy_rows(connection, given, parse_target_table(self._inputs.into))
            )
        statement = single_statement(self._inputs, POSTGRES)
        if self._spec.transaction is False or controls_transaction(statement):
            return await self._each(connection, given, statement, alone=True)
        async with connection.transaction():
            answer = await self._each(connection, given, statement, alone=False)
            self.current = None
        return answer

    async def _each(
        self, connection: PostgresConnection, given: InputRows, statement: Statement, *, alone: bool
    ) -> StatementResult:
        """Runs the statement with every row, one after the other or, in a transaction, in a pipeline."""
        plan = plan_binding(statement, POSTGRES, named=given.columns is not None)
        self.current = BoundStatement(statement, plan.text, None, "")
        returning = statement.returning or statement.words[0] not in _CHANGES
        cursor = StreamCursor(connection)
        targets: list[TargetType] = []
        table: ResultTable | None = None
        count = 0
        for batch in given.pick(plan.keys):
            if _has_lists(batch):
                targets = targets or await self._parameters(connection, plan.text)
                batch = _fitted(batch, targets)  # noqa: PLW2901
            for part in [[row] for row in batch] if alone else [batch]:
                await cursor.executemany(plan.text, part, returning=returning)
                if not returning or cursor.description is None:
                    count += _changed(cursor)
                    continue
                table = table or self._table(cursor)
                rows = await _all(cursor)
                await self._add(table, rows if self._most is None else rows[: self._most - table.count])
                count += len(rows)
        if table is None:
            return StatementResult(row_count=count)
        return (await self._answer(table))._replace(row_count=count)

    async def _parameters(self, connection: PostgresConnection, text: str) -> list[TargetType]:
        """What the server takes each parameter of a statement for. Raises psycopg.Error."""
        await connection.execute(f"PREPARE noetl_parameters AS {text}")
        found = await (await connection.execute(_PARAMETERS)).fetchall()
        await connection.execute("DEALLOCATE noetl_parameters")
        return [TargetType(*one) for one in found]

    def _table(self, cursor: StreamCursor) -> ResultTable:
        return ResultTable(self._call, [result_column(column) for column in cursor.description or ()])

    async def _add(self, table: ResultTable, rows: list[DriverRow]) -> None:
        if table.is_spilled or len(rows) > _AT_ONCE:
            await asyncio.to_thread(table.add, rows)
        else:
            table.add(rows)
        if table.must_spill and (path := await table.open_spill_file(self._drafts)):
            await asyncio.to_thread(table.spill, path)

    async def _answer(self, table: ResultTable) -> StatementResult:
        table.finish()
        self.warnings += table.warnings
        return await table.result()


async def _all(cursor: StreamCursor) -> list[DriverRow]:
    """The rows of all runs of a statement."""
    found: list[DriverRow] = [*await cursor.fetchall()]
    while cursor.nextset():
        found += await cursor.fetchall()
    return found


def _changed(cursor: StreamCursor) -> int:
    """How many rows all runs of a statement changed. A driver that keeps no results knows the sum."""
    found = max(cursor.rowcount, 0)
    while cursor.nextset():
        found += max(cursor.rowcount, 0)
    return found


def _has_lists(rows: Sequence[DriverRow]) -> bool:
    return any(isinstance(value, list) for row in rows for value in row)


def _fitted(rows: Sequence[DriverRow], targets: Sequence[TargetType]) -> list[DriverRow]:
    """The rows with lists as arrays where the server takes them for such; elsewhere they go as JSON."""
    arrays = {place: target.write for place, target in enumerate(targets) if target.items is not None}
    found: list[DriverRow] = []
    for row in rows:
        own: list[Any] = list(row)
        for place, write in arrays.items():
            if write is not None:
                own[place] = write(own[place])
        found.append(own)
    return found


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
