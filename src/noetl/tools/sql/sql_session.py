"""What one attempt does on its connection to a database server, whatever the driver."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import ClassVar

from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.sql.column import Column, DriverRow
from noetl.tools.sql.input_rows import InputRows, open_input_rows
from noetl.tools.sql.result_table import ResultTable
from noetl.tools.sql.sql_inputs import SqlInputs, SqlSpec
from noetl.tools.sql.sql_task import (
    BoundStatement,
    bind_statements,
    controls_transaction,
    in_one_transaction,
    row_limit,
    single_statement,
)
from noetl.tools.sql.statement_result import StatementResult
from noetl.tools.sql.target_table import TargetTable, parse_target_table
from noetl.tools.sql.text import SqlDialect, Statement

_CONVERTED_IN_LOOP = 200
"""Rows that are converted in the event loop: handing so few to a thread costs more than they take."""


class RowCollector:
    """The rows of one statement, as they come; `row_limit` of them are kept, and all are counted."""

    def __init__(
        self, call: Call, columns: Sequence[Column], row_limit: int | None, drafts: AsyncExitStack
    ) -> None:
        self.warnings: list[str] = []
        self._table = ResultTable(call, columns)
        self._limit = row_limit
        self._drafts = drafts
        self._pending: list[DriverRow] = []
        self._count = 0

    async def add(self, rows: Sequence[DriverRow]) -> None:
        before, self._count = self._count, self._count + len(rows)
        wanted = rows if self._limit is None else rows[: max(0, self._limit - before)]
        self._pending += wanted
        while len(self._pending) >= self._table.batch_size:
            size = self._table.batch_size
            batch, self._pending = self._pending[:size], self._pending[size:]
            await self._store(batch)

    async def result(self) -> StatementResult:
        """What the statement gave, after the end."""
        await self._store(self._pending)
        self._table.finish()
        self.warnings += self._table.warnings
        return (await self._table.result())._replace(row_count=self._count)

    async def _store(self, rows: list[DriverRow]) -> None:
        table = self._table
        if table.is_spilled or len(rows) > _CONVERTED_IN_LOOP:
            await asyncio.to_thread(table.add, rows)
        else:
            table.add(rows)
        if table.must_spill and (path := await table.open_spill_file(self._drafts)):
            await asyncio.to_thread(table.spill, path)


class SqlSession(ABC):
    """One attempt. `current` is the statement that runs, `warnings` what its values lost.

    `in_transaction` says that the runs with rows are one transaction.
    """

    dialect: ClassVar[SqlDialect]

    def __init__(self, call: Call, inputs: SqlInputs, spec: SqlSpec) -> None:
        self.current: BoundStatement | None = None
        self.warnings: list[str] = []
        self.in_transaction = False
        self._call = call
        self._inputs = inputs
        self._spec = spec
        self._drafts = AsyncExitStack()

    async def run(self) -> list[StatementResult]:
        """What each statement gave. Raises the driver's errors, ToolError and ResultError."""
        async with self._drafts:
            if self._call.inputs.get("rows") is None:
                results = await self._run_statements()
            else:
                async with open_input_rows(self._call) as rows:
                    results = [await self._run_rows(rows)]
        if await self.leaves_transaction_open():
            message = "the SQL leaves a transaction open, which is rolled back: end it with COMMIT"
            raise ToolError("sql", message)
        return results

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[object]:
        """A transaction, which is committed at the end; if something is raised, the pool rolls it back."""

    @abstractmethod
    async def leaves_transaction_open(self) -> bool:
        """Whether a transaction is open on the connection."""

    @abstractmethod
    async def run_statement(self, bound: BoundStatement) -> StatementResult:
        """What a statement gives."""

    @abstractmethod
    async def run_with_rows(self, statement: Statement, rows: InputRows) -> StatementResult:
        """Runs a statement once for each row. Without a transaction, each run is committed by itself."""

    @abstractmethod
    async def load_rows(self, rows: InputRows, into: TargetTable) -> int:
        """Loads rows into a table, all or none, and says how many they were."""

    def collector(self, columns: Sequence[Column]) -> RowCollector:
        """Where the rows of a statement go; `finished` makes a result of it."""
        return RowCollector(self._call, columns, row_limit(self._spec), self._drafts)

    async def finished(self, collector: RowCollector) -> StatementResult:
        result = await collector.result()
        self.warnings += collector.warnings
        return result

    async def _run_statements(self) -> list[StatementResult]:
        script = bind_statements(self._inputs, self.dialect)
        if not in_one_transaction([bound.statement for bound in script], self._spec):
            return [await self._run_next(bound) for bound in script]
        async with self.transaction():
            results = [await self._run_next(bound) for bound in script]
            self.current = None  # what fails at the COMMIT is no statement of the task
        return results

    async def _run_next(self, bound: BoundStatement) -> StatementResult:
        self.current = bound
        return await self.run_statement(bound)

    async def _run_rows(self, rows: InputRows) -> StatementResult:
        if self._inputs.into is not None:
            target = parse_target_table(self._inputs.into)
            return StatementResult(row_count=await self.load_rows(rows, target))
        statement = single_statement(self._inputs, self.dialect)
        self.current = BoundStatement(statement, statement.text, None, "")
        if self._spec.transaction is False or controls_transaction(statement):
            return await self.run_with_rows(statement, rows)
        async with self.transaction():
            self.in_transaction = True
            result = await self.run_with_rows(statement, rows)
            self.current = None
        return result
