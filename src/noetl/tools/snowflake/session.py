"""What one attempt does in its session with Snowflake."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from noetl.ports.tool import Call
from noetl.tools.snowflake.pool import SnowflakeSession
from noetl.tools.snowflake.types import SEMI_STRUCTURED, rows_to_load, snowflake_column, snowflake_value
from noetl.tools.sql.column import DriverRow
from noetl.tools.sql.input_rows import InputRows
from noetl.tools.sql.sql_inputs import SqlInputs, SqlSpec
from noetl.tools.sql.sql_session import RowCollector, SqlSession
from noetl.tools.sql.sql_task import BoundStatement, controls_transaction
from noetl.tools.sql.statement_result import StatementResult
from noetl.tools.sql.target_table import TargetTable, quote_identifier
from noetl.tools.sql.text import SNOWFLAKE, Statement, plan_binding

FETCHED = 1_000
"""Rows that the driver hands over at a time."""
_MOST_VALUES = 10_000
"""Values that one statement is sent with, where they cannot go as lists."""
_CHANGES = {"INSERT", "UPDATE", "DELETE", "MERGE"}
"""Statements that say how many rows they changed, and give none."""
_QUERIES = {"SELECT", "WITH", "VALUES", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "LIST", "LS", "COPY", "TABLE"}
_SCRIPTS = {"CALL", "EXECUTE", "BEGIN", "DECLARE", "PUT", "GET", "REMOVE", "RM"}
"""Statements that give rows, too, but of which nobody knows what else they do."""
_LASTING = {"TABLE", "VIEW"}
_OF_THE_SESSION = {"TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "VOLATILE"}


class SnowflakeAttempt(SqlSession):
    """One attempt on Snowflake. `query_id` is that of the last statement."""

    dialect = SNOWFLAKE

    def __init__(self, call: Call, inputs: SqlInputs, spec: SqlSpec, session: SnowflakeSession) -> None:
        super().__init__(call, inputs, spec)
        self.query_id: str | None = None
        self._session = session

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        # Not BEGIN: what creates or alters a table ends a transaction, and what comes after it shall be in
        # the next one.
        self._session.in_transaction = True
        await self._session.execute("ALTER SESSION SET AUTOCOMMIT = FALSE")
        yield
        await self._session.execute("COMMIT")
        await self._session.execute("ALTER SESSION SET AUTOCOMMIT = TRUE")
        self._session.in_transaction = False

    async def leaves_transaction_open(self) -> bool:
        return self._session.in_transaction

    async def run_statement(self, bound: BoundStatement) -> StatementResult:
        self._note(bound.statement)
        collector, changed = await self._collect(bound.statement, bound.text, bound.values, None)
        return StatementResult(row_count=changed) if collector is None else await self.finished(collector)

    async def run_with_rows(self, statement: Statement, rows: InputRows) -> StatementResult:
        """With lists of values where the account takes them, else one after the other."""
        self._note(statement)
        plan = plan_binding(statement, SNOWFLAKE, named=rows.columns is not None)
        in_lists = self.in_transaction and statement.words[0] == "INSERT" and bool(plan.keys)
        collector: RowCollector | None = None
        count = 0
        for batch in rows.pick(plan.keys):
            if in_lists and batch:
                count += await self._session.execute_with_rows(plan.text, rows_to_load(batch, ()))
                continue
            for row in batch:
                collector, changed = await self._collect(statement, plan.text, list(row), collector)
                count += changed
        return StatementResult(row_count=count) if collector is None else await self.finished(collector)

    async def load_rows(self, rows: InputRows, into: TargetTable) -> int:
        types = await self._columns_of(into.table)
        folded = {name.upper(): name for name in types}
        columns = rows.columns_to_load(into.columns)
        targets = [name if name in types else folded.get(name.upper(), name) for name in columns or types]
        codes = [types.get(name) for name in targets]
        insert = f"INSERT INTO {into.table} ({', '.join(map(quote_identifier, targets))}) "
        count = 0
        async with self.transaction():
            for batch in rows.load_batches(columns):
                for part in _parts(rows_to_load(batch, codes), codes):
                    count += await self._insert(insert, part, codes)
        return count

    async def _insert(self, insert: str, rows: Sequence[DriverRow], codes: Sequence[int | None]) -> int:
        marks = f"({', '.join('?' * len(rows[0]))})"
        if SEMI_STRUCTURED.isdisjoint(codes):
            await self._session.execute_with_rows(f"{insert}VALUES {marks}", rows)
            return len(rows)
        # Only a query makes a value of JSON text, and a query takes no lists.
        values = [
            f"PARSE_JSON(column{number})" if code in SEMI_STRUCTURED else f"column{number}"
            for number, code in enumerate(codes, start=1)
        ]
        table = ", ".join([marks] * len(rows))
        text = f"{insert}SELECT {', '.join(values)} FROM VALUES {table}"  # noqa: S608 - names are quoted
        await self._session.execute(text, [value for row in rows for value in row])
        return len(rows)

    async def _columns_of(self, table: str) -> dict[str, int]:
        """The columns of a table and their types. Raises the driver's `Error`."""
        cursor = await self._session.execute(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608 - a name, as `into` was read
        return {column.name: column.type_code for column in cursor.description or ()}

    async def _collect(
        self, statement: Statement, text: str, values: DriverRow | None, collector: RowCollector | None
    ) -> tuple[RowCollector | None, int]:
        """Runs a statement: where its rows are, if it gives any, and how many rows it changed.

        A collector that is handed in takes the rows of one more run.
        """
        cursor = await self._session.execute(text, list(map(snowflake_value, values)) if values else None)
        self.query_id = cursor.sfqid
        first = (statement.words or ("SELECT",))[0]
        if first in _CHANGES:
            return collector, int(cursor.rowcount or 0)
        if first not in _QUERIES | _SCRIPTS or controls_transaction(statement):
            return collector, 0  # a row that says how it went
        columns = cursor.description or ()
        collector = collector or self.collector([snowflake_column(column) for column in columns])
        while rows := await self._session.fetch(cursor, FETCHED):
            await collector.add(rows)
        return collector, 0

    def _note(self, statement: Statement) -> None:
        """Notes what a statement does to the session, before it runs."""
        words = statement.words or ("SELECT",)
        if controls_transaction(statement):
            self._session.changed = True
            self._session.in_transaction = words[0] in ("BEGIN", "START")
        elif words[0] not in _QUERIES | _CHANGES | {"TRUNCATE"}:
            lasting = words[0] in ("CREATE", "ALTER", "DROP") and not _LASTING.isdisjoint(words)
            self._session.changed |= not lasting or not _OF_THE_SESSION.isdisjoint(words)


def _parts(rows: Sequence[DriverRow], codes: Sequence[int | None]) -> list[Sequence[DriverRow]]:
    """The rows, as many at a time as a statement takes."""
    size = len(rows)
    if rows and not SEMI_STRUCTURED.isdisjoint(codes):
        size = max(1, _MOST_VALUES // len(rows[0]))
    return [rows[start : start + size] for start in range(0, len(rows), size or 1)]
