"""What one attempt does with its SQLite database, in a thread of its own."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import count, zip_longest
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import apsw
import msgspec

from noetl.model.normalisation import normalise
from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.sql.column import Column, DriverRow, bytes_from_text, json_from_driver
from noetl.tools.sql.input_rows import InputRows
from noetl.tools.sql.result_table import ResultTable
from noetl.tools.sql.sql_inputs import SqlSpec
from noetl.tools.sql.sql_task import (
    BoundStatement,
    bind_statements,
    controls_transaction,
    in_one_transaction,
    row_limit,
    single_statement,
)
from noetl.tools.sql.statement_result import StatementResult
from noetl.tools.sql.target_table import parse_target_table, quote_identifier
from noetl.tools.sql.text import SQLITE, Statement, plan_binding
from noetl.tools.sqlite.kind import SqliteInputs

T = TypeVar("T")

_READS = {"SELECT", "VALUES", "EXPLAIN", "PRAGMA"}
_CHANGES = {"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"}
_LONGEST_PAUSE = 0.1
"""Seconds between two looks whether a locked database is free."""


class SqliteSession:
    """One attempt. `current` is the statement that runs; `warnings` what its values lost."""

    def __init__(
        self, call: Call, inputs: SqliteInputs, spec: SqlSpec, given: InputRows | None, drafts: AsyncExitStack
    ) -> None:
        self.current: BoundStatement | None = None
        self.warnings: list[str] = []
        self._call = call
        self._inputs = inputs
        self._spec = spec
        self._given = given
        self._drafts = drafts
        self._most = row_limit(spec)
        self._loop = asyncio.get_running_loop()
        self._stopped = Event()
        self._connection: apsw.Connection | None = None

    def run_on_file(self, path: Path) -> list[StatementResult]:
        """The same as `run`, on a connection of its own."""
        connection = connect_in_folder(path, self._call.folder)
        try:
            return self.run(connection)
        finally:
            connection.close()

    def run(self, connection: apsw.Connection) -> list[StatementResult]:
        """What each statement gave. Raises apsw.Error, ToolError and ResultError."""
        self._connection = connection
        connection.set_busy_handler(self._wait)
        try:
            if self._given is not None:
                answers = [self._rows(connection, self._given)]
            else:
                answers = self._statements(connection)
            if connection.in_transaction:
                message = "the SQL leaves a transaction open, which is rolled back: end it with COMMIT"
                raise ToolError("sql", message)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.set_busy_handler(None)
        return answers

    def stop(self) -> None:
        """Has the thread end soon; to be called until it has, for a statement may be about to begin."""
        self._stopped.set()
        if self._connection is not None:
            self._connection.interrupt()

    def _wait(self, looks: int) -> bool:
        """Waits for a lock of somebody else, as long as the attempt may take."""
        return not self._stopped.wait(min(0.001 * 2 ** min(looks, 10), _LONGEST_PAUSE))

    def _statements(self, connection: apsw.Connection) -> list[StatementResult]:
        bound = bind_statements(self._inputs, SQLITE)
        statements = [one.statement for one in bound]
        if not in_one_transaction(statements, self._spec):
            return [self._statement(connection, one) for one in bound]
        # Most settings cannot be changed in a transaction.
        first = next((n for n, one in enumerate(statements) if one.words[0] != "PRAGMA"), len(bound))
        before = [self._statement(connection, one) for one in bound[:first]]
        with self._transaction(connection, statements[first:]):
            return before + [self._statement(connection, one) for one in bound[first:]]

    @contextmanager
    def _transaction(
        self, connection: apsw.Connection, statements: Sequence[Statement] = ()
    ) -> Iterator[None]:
        reads = bool(statements) and all(one.words[0] in _READS for one in statements)
        connection.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
        yield
        self.current = None
        connection.execute("COMMIT")

    def _statement(self, connection: apsw.Connection, bound: BoundStatement) -> StatementResult:
        self.current = bound
        self._check()
        rows, columns = _started(connection, bound.text, bound.values or ())
        table = ResultTable(self._call, columns)
        pending: list[DriverRow] = []
        count = 0
        for row in rows:
            count += 1
            if self._most is not None and count > self._most:
                continue
            pending.append(row)
            if len(pending) >= table.batch_size:
                self._add(table, pending)
                pending = []
        if not columns:
            return StatementResult(
                row_count=connection.changes() if bound.statement.words[0] in _CHANGES else 0
            )
        self._add(table, pending)
        return self._answer(table)._replace(row_count=count)

    def _rows(self, connection: apsw.Connection, given: InputRows) -> StatementResult:
        if self._inputs.into is not None:
            with self._transaction(connection):
                return StatementResult(row_count=self._insert(connection, given, self._inputs.into))
        statement = single_statement(self._inputs, SQLITE)
        if self._spec.transaction is False or controls_transaction(statement):
            return self._each(connection, given, statement)
        with self._transaction(connection):
            return self._each(connection, given, statement)

    def _insert(self, connection: apsw.Connection, given: InputRows, text: str) -> int:
        into = parse_target_table(text)
        columns = given.columns_to_load(into.columns)
        names = f" ({', '.join(map(quote_identifier, columns))})" if columns else ""
        blobs: list[bool] | None = None
        count = 0
        for batch in given.load_batches(columns):
            self._check()
            marks = ", ".join("?" * len(batch[0]))
            insert = f"INSERT INTO {into.table}{names} VALUES ({marks})"  # noqa: S608  # names are quoted
            if blobs is None:
                types = _declared(connection, into.table)
                blobs = [types.get(name.lower()) == "BLOB" for name in columns or types]
            rows = [_with_bytes(row, blobs) for row in batch] if any(blobs) else batch
            connection.executemany(insert, map(_values, rows))
            count += len(batch)
        return count

    def _each(self, connection: apsw.Connection, given: InputRows, statement: Statement) -> StatementResult:
        """Runs the statement with every row, one after the other."""
        plan = plan_binding(statement, SQLITE, named=given.columns is not None)
        self.current = BoundStatement(statement, plan.text, None, "")
        table: ResultTable | None = None
        count = 0
        for batch in given.pick(plan.keys):
            self._check()
            found: list[DriverRow] = []
            for row in batch:
                rows, columns = _started(connection, plan.text, row)
                if columns:
                    table = table or ResultTable(self._call, columns)
                    found += rows
                else:
                    count += connection.changes()
            count += len(found)
            if table is not None:
                self._add(table, found if self._most is None else found[: self._most - table.count])
        if table is None:
            return StatementResult(row_count=count)
        return self._answer(table)._replace(row_count=count)

    def _add(self, table: ResultTable, rows: list[DriverRow]) -> None:
        self._check()
        table.add(rows)
        if table.must_spill and (path := self._awaited(table.open_spill_file(self._drafts))):
            table.spill(path)

    def _answer(self, table: ResultTable) -> StatementResult:
        table.finish()
        self.warnings += table.warnings
        return self._awaited(table.result())

    def _check(self) -> None:
        if self._stopped.is_set():
            raise ToolError("cancelled", "the task was stopped")

    def _awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives, which is done in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _started(
    connection: apsw.Connection, text: str, values: DriverRow
) -> tuple[Iterator[tuple[Any, ...]], list[Column]]:
    """The rows that a statement gives, and their columns, known before the first of them."""
    columns: list[Column] = []

    def note(cursor: apsw.Cursor, _text: str, _values: Any) -> bool:
        columns.extend(Column(name, json_from_driver) for name, _ in cursor.get_description())
        return True

    cursor = connection.cursor()
    cursor.exec_trace = note
    cursor.execute(text, _values(values))
    return cursor, columns


def _declared(connection: apsw.Connection, table: str) -> dict[str, str | None]:
    """The columns of a table in order, and the types they were made with, all in one case."""
    found: list[tuple[str, str | None]] = []

    def note(cursor: apsw.Cursor, _text: str, _values: Any) -> bool:
        found.extend(cursor.get_description())
        return True

    cursor = connection.cursor()
    cursor.exec_trace = note
    cursor.execute(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608  # a name, as `into` was read
    return {name.lower(): kind and kind.upper() for name, kind in found}


def _with_bytes(row: DriverRow, blobs: Sequence[bool]) -> DriverRow:
    """The row with bytes where the text for a blob stands."""
    places = zip_longest(row, blobs[: len(row)], fillvalue=False)
    return [bytes_from_text(value, "BLOB") if is_blob else value for value, is_blob in places]


def _values(values: DriverRow) -> tuple[Any, ...]:
    return tuple(map(_value, values))


def _value(value: Any) -> Any:
    """A value as SQLite holds it: mappings and lists as JSON, moments as ISO text."""
    match value:
        case None | str() | int() | float() | bytes():
            return value
        case dict() | list():
            return msgspec.json.encode(value).decode()
    return normalise(value)


MEMORY = ":memory:"

_numbers = count(1)


def connect_in_folder(database: Path | None, folder: Path) -> apsw.Connection:
    """Opens the file, or a database in memory. What it attaches or writes by name is in the folder.

    Raises apsw.Error.
    """
    files = _Folder(folder)
    return apsw.Connection(MEMORY if database is None else str(database), vfs=files.name)


class _Folder(apsw.VFS):
    """The files of the machine, seen from a folder. It is known to SQLite while a connection uses it."""

    def __init__(self, folder: Path) -> None:
        self.name = f"noetl-{next(_numbers)}"
        self._folder = folder.absolute()
        super().__init__(self.name, "")

    def xFullPathname(self, name: str) -> str:  # noqa: N802  # as SQLite calls it
        return str(self._folder / name)
