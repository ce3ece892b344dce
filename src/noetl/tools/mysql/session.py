"""What one attempt does on its connection to MySQL."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from asyncmy.errors import MySQLError

from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.mysql.pool import MysqlConnection
from noetl.tools.mysql.types import column_writer, mysql_column, mysql_value
from noetl.tools.sql.column import DriverRow
from noetl.tools.sql.input_rows import InputRows
from noetl.tools.sql.sql_inputs import SqlInputs, SqlSpec
from noetl.tools.sql.sql_session import RowCollector, SqlSession
from noetl.tools.sql.sql_task import BoundStatement
from noetl.tools.sql.statement_result import StatementResult
from noetl.tools.sql.target_table import TargetTable
from noetl.tools.sql.text import MYSQL, Statement, plan_binding

_CHANGES = {"INSERT", "UPDATE", "DELETE", "REPLACE"}
"""Statements that give no rows unless they say RETURNING."""
MOST_PLACEHOLDERS = 65_535
_AT_ROW = re.compile(r"at row (\d+)$")


class MysqlSession(SqlSession):
    """One attempt on MySQL."""

    dialect = MYSQL

    def __init__(self, call: Call, inputs: SqlInputs, spec: SqlSpec, connection: MysqlConnection) -> None:
        super().__init__(call, inputs, spec)
        self._connection = connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        # Not BEGIN: what creates or alters a table ends a transaction, and what comes after it shall be in
        # the next one.
        await self._connection.rows("SET autocommit = 0")
        yield
        await self._connection.commit()  # what comes next is the pool, which resets the connection

    async def leaves_transaction_open(self) -> bool:
        return await self._connection.in_transaction()

    async def run_statement(self, bound: BoundStatement) -> StatementResult:
        collector, changed = await self._collect(bound.text, bound.values, None)
        return StatementResult(row_count=changed) if collector is None else await self.finished(collector)

    async def run_with_rows(self, statement: Statement, rows: InputRows) -> StatementResult:
        """One after the other, whether each is committed by itself or all are."""
        plan = plan_binding(statement, MYSQL, named=rows.columns is not None)
        if statement.returning or statement.words[0] not in _CHANGES:
            return await self._collect_each(plan.text, rows.pick(plan.keys))
        prepared = await self._connection.prepare(plan.text)
        count = 0
        for batch in rows.pick(plan.keys):
            for row in batch:
                count += await self._connection.execute(prepared, list(map(mysql_value, row)))
        return StatementResult(row_count=count)

    async def load_rows(self, rows: InputRows, into: TargetTable) -> int:
        table = ".".join(map(_quote, into.parts))
        fields = await self._fields_of(table)
        columns = rows.columns_to_load(into.columns)
        names = f" ({', '.join(map(_quote, columns))})" if columns else ""
        writes = [column_writer(fields[name.lower()]) if name.lower() in fields else None for name in columns]
        writes = writes or [column_writer(field) for field in fields.values()]
        ((packet,),) = await self._connection.rows("SELECT @@max_allowed_packet")
        insert = f"INSERT INTO {table}{names} VALUES "  # noqa: S608 - names are quoted
        count = 0
        async with self.transaction():
            for batch in rows.load_batches(columns):
                fitted = [_fit_row(row, writes) for row in batch]
                for part in _split_by_size(fitted, int(packet), first=count + 1):
                    count += await self._insert(insert, part, first=count + 1)
        return count

    async def _insert(self, insert: str, rows: Sequence[DriverRow], *, first: int) -> int:
        """Inserts rows with one statement; `first` is the number of the first one, for messages."""
        marks = f"({', '.join('?' * len(rows[0]))})"
        prepared = await self._connection.prepare(insert + ", ".join([marks] * len(rows)))
        try:
            await self._connection.execute(prepared, [value for row in rows for value in row])
        except MySQLError as error:
            code, *words = error.args
            error.args = (code, *(_shift_row(str(word), first - 1) for word in words))
            raise
        await prepared.close()
        return len(rows)

    async def _fields_of(self, table: str) -> dict[str, Any]:
        """The columns of a table, by their names in lower case. Raises MySQLError."""
        query = f"SELECT * FROM {table} LIMIT 0"  # noqa: S608 - a name that is quoted
        async with aclosing(self._connection.stream(query)) as stream:
            fields = [field async for result, _ in stream for field in result.fields]
        return {field.name.lower(): field for field in fields}

    async def _collect_each(self, text: str, batches: Iterator[Sequence[DriverRow]]) -> StatementResult:
        collector: RowCollector | None = None
        count = 0
        for batch in batches:
            for row in batch:
                collector, changed = await self._collect(text, list(row), collector)
                count += changed
        return StatementResult(row_count=count) if collector is None else await self.finished(collector)

    async def _collect(
        self, text: str, values: DriverRow | None, collector: RowCollector | None
    ) -> tuple[RowCollector | None, int]:
        """Runs a statement: where its rows are, if it gives any, and how many rows it changed.

        Of a procedure that gives several tables the last is kept. A collector that is handed in takes the
        rows of one more run.
        """
        if values:
            text = await self._bind(text, values)
        results: list[Any] = []
        shared = collector
        async with aclosing(self._connection.stream(text)) as stream:
            async for result, rows in stream:
                if rows and collector is not None:
                    await collector.add(rows)
                    continue
                results.append(result)
                if result.fields is not None:
                    collector = shared or self.collector([mysql_column(field) for field in result.fields])
        if any(result.warning_count for result in results):
            for level, _, message in await self._connection.warnings():
                self._call.log(f"{level}: {message}")
        changed = results[-1].affected_rows if results[-1].fields is None else 0
        return collector, changed

    async def _bind(self, text: str, values: DriverRow) -> str:
        """Gives the server the values, apart from any text, and says how the statement is run with them."""
        # The driver itself either writes values into the text or holds all rows of a result in memory. So
        # they go into variables of the session, by a statement of the binary protocol, and the statement
        # that takes them from there gives its rows one by one.
        names = [f"@noetl_{number}" for number in range(len(values))]
        setting = ", ".join(f"{name} = ?" for name in ["@noetl_sql", *names])
        prepared = await self._connection.prepare(f"SET {setting}")
        await self._connection.execute(prepared, [text, *map(mysql_value, values)])
        await prepared.close()
        return f"PREPARE noetl FROM @noetl_sql; EXECUTE noetl USING {', '.join(names)}"


def _shift_row(message: str, rows: int) -> str:
    """The message with the number of a row in it, if there is one, moved by so many."""
    return _AT_ROW.sub(lambda row: f"at row {int(row[1]) + rows}", message)


def _quote(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _fit_row(row: DriverRow, writes: Sequence[Callable[[Any], Any] | None]) -> list[Any]:
    """The values of a row, as they go into the columns of a table."""
    values = list(map(mysql_value, row))
    for index, write in enumerate(writes[: len(values)]):
        if write is not None:
            values[index] = write(values[index])
    return values


def _split_by_size(
    rows: Sequence[Sequence[Any]], packet: int, *, first: int
) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows in parts that a packet of the server's holds, and a statement has placeholders for.

    ToolError of kind `limit` for a row that is larger: the server would hang up. `first` is its number.
    """
    most = max(1, MOST_PLACEHOLDERS // len(rows[0])) if rows else 1
    start = size = 0
    for index, row in enumerate(rows):
        row_size = sum(map(_bytes_sent, row))
        if row_size >= packet:
            message = f"row {first + index} takes more than {packet:,} bytes"
            raise ToolError("limit", f"{message}, the server's `max_allowed_packet`")
        if index > start and (size + row_size > packet // 2 or index - start >= most):
            yield rows[start:index]
            start, size = index, 0
        size += row_size
    if rows:
        yield rows[start:]


def _bytes_sent(value: Any) -> int:
    """About how many bytes a value takes in a packet."""
    if isinstance(value, str) and not value.isascii():
        return 16 + len(value.encode())
    return 16 + (len(value) if isinstance(value, str | bytes) else 0)
