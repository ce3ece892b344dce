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
_CONVERTED_IN_LOOP = 200
"""Rows that are converted in the event loop: handing so few to a thread costs more than they take."""
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


class PostgresSession:
    """One attempt. `current` is the statement that runs, `warnings` what its values lost."""

    def __init__(self, call: Call, inputs: PostgresInputs, spec: PostgresSpec) -> None:
        self.current: BoundStatement | None = None
        self._connection: PostgresConnection | None = None
        self.warnings: list[str] = []
        self._call = call
        self._inputs = inputs
        self._spec = spec
        self._row_limit = row_limit(spec)
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
                results = await self._run_statements(connection)
            else:
                async with open_input_rows(self._call) as rows:
                    results = [await self._run_rows(connection, rows)]
        if connection.info.transaction_status != TransactionStatus.IDLE:
            message = "the SQL leaves a transaction open, which is rolled back: end it with COMMIT"
            raise ToolError("sql", message)
        return results

    async def _run_statements(self, connection: PostgresConnection) -> list[StatementResult]:
        script = bind_statements(self._inputs, POSTGRES)
        if not in_one_transaction([bound.statement for bound in script], self._spec):
            return [await self._run_statement(connection, bound) for bound in script]
        async with connection.transaction():
            results = [await self._run_statement(connection, bound) for bound in script]
            self.current = None  # what fails at the COMMIT is no statement of the task
        return results

    async def _run_statement(self, connection: PostgresConnection, bound: BoundStatement) -> StatementResult:
        self.current = bound
        values: DriverRow | None = bound.values
        if values is not None and _has_lists([values]):
            (values,) = _fit_lists([values], await self._parameter_types(connection, bound.text))
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
                if self._row_limit is not None and count > self._row_limit:
                    continue  # all are read: `row_count` counts them, too
                pending.append(row)
                if len(pending) >= table.batch_size:
                    await self._add(table, pending)
                    pending = []
        if cursor.description is None:
            return StatementResult(row_count=max(cursor.rowcount, 0))
        table = table or self._table(cursor)
        await self._add(table, pending)
        return (await self._result(table))._replace(row_count=count)

    async def _run_rows(self, connection: PostgresConnection, rows: InputRows) -> StatementResult:
        if self._inputs.into is not None:
            return StatementResult(
                row_count=await _copy_rows(connection, rows, parse_target_table(self._inputs.into))
            )
        statement = single_statement(self._inputs, POSTGRES)
        if self._spec.transaction is False or controls_transaction(statement):
            return await self._run_each(connection, rows, statement, alone=True)
        async with connection.transaction():
            result = await self._run_each(connection, rows, statement, alone=False)
            self.current = None
        return result

    async def _run_each(
        self, connection: PostgresConnection, rows: InputRows, statement: Statement, *, alone: bool
    ) -> StatementResult:
        """Runs the statement with every row, one after the other or, in a transaction, in a pipeline."""
        plan = plan_binding(statement, POSTGRES, named=rows.columns is not None)
        self.current = BoundStatement(statement, plan.text, None, "")
        returning = statement.returning or statement.words[0] not in _CHANGES
        cursor = StreamCursor(connection)
        targets: list[TargetType] = []
        table: ResultTable | None = None
        count = 0
        for batch in rows.pick(plan.keys):
            if _has_lists(batch):
                targets = targets or await self._parameter_types(connection, plan.text)
                batch = _fit_lists(batch, targets)  # noqa: PLW2901 - the same rows, as the server takes them
            for part in [[row] for row in batch] if alone else [batch]:
                await cursor.executemany(plan.text, part, returning=returning)
                if not returning or cursor.description is None:
                    count += _changed_rows(cursor)
                    continue
                table = table or self._table(cursor)
                returned = await _returned_rows(cursor)
                wanted = returned if self._row_limit is None else returned[: self._row_limit - table.count]
                await self._add(table, wanted)
                count += len(returned)
        if table is None:
            return StatementResult(row_count=count)
        return (await self._result(table))._replace(row_count=count)

    async def _parameter_types(self, connection: PostgresConnection, text: str) -> list[TargetType]:
        """What the server takes each parameter of a statement for. Raises psycopg.Error."""
        # Asked only for lists: the server alone knows whether one is an array or JSON, and it costs three
        # round trips.
        await connection.execute(f"PREPARE noetl_parameters AS {text}")
        types = await (await connection.execute(_PARAMETER_TYPES)).fetchall()
        await connection.execute("DEALLOCATE noetl_parameters")
        return [TargetType(*names) for names in types]

    def _table(self, cursor: StreamCursor) -> ResultTable:
        return ResultTable(self._call, [result_column(column) for column in cursor.description or ()])

    async def _add(self, table: ResultTable, rows: list[DriverRow]) -> None:
        if table.is_spilled or len(rows) > _CONVERTED_IN_LOOP:
            await asyncio.to_thread(table.add, rows)
        else:
            table.add(rows)
        if table.must_spill and (path := await table.open_spill_file(self._drafts)):
            await asyncio.to_thread(table.spill, path)

    async def _result(self, table: ResultTable) -> StatementResult:
        table.finish()
        self.warnings += table.warnings
        return await table.result()


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
