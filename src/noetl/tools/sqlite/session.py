"""What one attempt does with its SQLite database, in a thread of its own."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import count, zip_longest
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias, TypeVar

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
_Description: TypeAlias = list[tuple[str, str | None]]
"""Name and declared type of each column."""

MEMORY = ":memory:"

_READS = {"SELECT", "VALUES", "EXPLAIN", "PRAGMA"}
_CHANGES = {"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"}
_LONGEST_PAUSE = 0.1
"""Seconds between two looks whether a locked database is free."""

_vfs_numbers = count(1)


class SqliteSession:
    """One attempt. `current` is the statement that runs; `warnings` what its values lost."""

    def __init__(
        self, call: Call, inputs: SqliteInputs, spec: SqlSpec, rows: InputRows | None, drafts: AsyncExitStack
    ) -> None:
        self.current: BoundStatement | None = None
        self.warnings: list[str] = []
        self._call = call
        self._inputs = inputs
        self._spec = spec
        self._input_rows = rows
        self._drafts = drafts
        self._row_limit = row_limit(spec)
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
        connection.set_busy_handler(self._wait_for_lock)
        try:
            if self._input_rows is not None:
                results = [self._run_rows(connection, self._input_rows)]
            else:
                results = self._run_statements(connection)
            if connection.in_transaction:
                message = "the SQL leaves a transaction open, which is rolled back: end it with COMMIT"
                raise ToolError("sql", message)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.set_busy_handler(None)
        return results

    def stop(self) -> None:
        """Has the thread end soon; to be called until it has, for a statement may be about to begin."""
        self._stopped.set()
        if self._connection is not None:
            self._connection.interrupt()

    def _wait_for_lock(self, looks: int) -> bool:
        """Waits for a lock of somebody else, as long as the attempt may take."""
        return not self._stopped.wait(min(0.001 * 2 ** min(looks, 10), _LONGEST_PAUSE))

    def _run_statements(self, connection: apsw.Connection) -> list[StatementResult]:
        script = bind_statements(self._inputs, SQLITE)
        statements = [bound.statement for bound in script]
        if not in_one_transaction(statements, self._spec):
            return [self._run_statement(connection, bound) for bound in script]
        # Most settings cannot be changed in a transaction.
        is_pragma = [statement.words[0] == "PRAGMA" for statement in statements]
        first = is_pragma.index(False) if False in is_pragma else len(script)
        results = [self._run_statement(connection, bound) for bound in script[:first]]
        with self._transaction(connection, statements[first:]):
            return results + [self._run_statement(connection, bound) for bound in script[first:]]

    @contextmanager
    def _transaction(
        self, connection: apsw.Connection, statements: Sequence[Statement] = ()
    ) -> Iterator[None]:
        reads = bool(statements) and all(statement.words[0] in _READS for statement in statements)
        # Who reads first and then writes may be told that the database is locked without any waiting: what
        # may write takes the lock at once, and waits for it.
        connection.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
        yield
        self.current = None
        connection.execute("COMMIT")

    def _run_statement(self, connection: apsw.Connection, bound: BoundStatement) -> StatementResult:
        self.current = bound
        self._check_stopped()
        rows, description = _execute(connection, bound.text, bound.values or ())
        table = self._table(description)
        pending: list[DriverRow] = []
        count = 0
        for row in rows:
            count += 1
            if self._row_limit is not None and count > self._row_limit:
                continue  # all are read: `row_count` counts them, too
            pending.append(row)
            if len(pending) >= table.batch_size:
                self._add(table, pending)
                pending = []
        if not description:
            return StatementResult(
                row_count=connection.changes() if bound.statement.words[0] in _CHANGES else 0
            )
        self._add(table, pending)
        return self._result(table)._replace(row_count=count)

    def _run_rows(self, connection: apsw.Connection, rows: InputRows) -> StatementResult:
        if self._inputs.into is not None:
            with self._transaction(connection):
                return StatementResult(row_count=self._insert(connection, rows, self._inputs.into))
        statement = single_statement(self._inputs, SQLITE)
        if self._spec.transaction is False or controls_transaction(statement):
            return self._run_each(connection, rows, statement)
        with self._transaction(connection):
            return self._run_each(connection, rows, statement)

    def _insert(self, connection: apsw.Connection, rows: InputRows, text: str) -> int:
        into = parse_target_table(text)
        columns = rows.columns_to_load(into.columns)
        names = f" ({', '.join(map(quote_identifier, columns))})" if columns else ""
        blobs: list[bool] | None = None
        count = 0
        for batch in rows.load_batches(columns):
            self._check_stopped()
            marks = ", ".join("?" * len(batch[0]))
            insert = f"INSERT INTO {into.table}{names} VALUES ({marks})"  # noqa: S608 - names are quoted
            if blobs is None:
                types = _declared_types(connection, into.table)
                blobs = [types.get(name.lower()) == "BLOB" for name in columns or types]
            fitted = [_with_bytes(row, blobs) for row in batch] if any(blobs) else batch
            connection.executemany(insert, map(_bind_values, fitted))
            count += len(batch)
        return count

    def _run_each(
        self, connection: apsw.Connection, rows: InputRows, statement: Statement
    ) -> StatementResult:
        """Runs the statement with every row, one after the other."""
        plan = plan_binding(statement, SQLITE, named=rows.columns is not None)
        self.current = BoundStatement(statement, plan.text, None, "")
        table: ResultTable | None = None
        count = 0
        for batch in rows.pick(plan.keys):
            self._check_stopped()
            returned: list[DriverRow] = []
            for row in batch:
                run_rows, description = _execute(connection, plan.text, row)
                if description:
                    table = table or self._table(description)
                    returned += run_rows
                else:
                    count += connection.changes()
            count += len(returned)
            if table is not None:
                limit = None if self._row_limit is None else self._row_limit - table.count
                self._add(table, returned[:limit])
        if table is None:
            return StatementResult(row_count=count)
        return self._result(table)._replace(row_count=count)

    def _table(self, description: _Description) -> ResultTable:
        return ResultTable(self._call, [Column(name, json_from_driver) for name, _ in description])

    def _add(self, table: ResultTable, rows: list[DriverRow]) -> None:
        self._check_stopped()
        table.add(rows)
        if table.must_spill and (path := self._run_in_loop(table.open_spill_file(self._drafts))):
            table.spill(path)

    def _result(self, table: ResultTable) -> StatementResult:
        table.finish()
        self.warnings += table.warnings
        return self._run_in_loop(table.result())

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise ToolError("cancelled", "the task was stopped")

    def _run_in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives: result stores are used from the event loop only, not from this thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _execute(
    connection: apsw.Connection, text: str, values: DriverRow
) -> tuple[Iterator[tuple[Any, ...]], _Description]:
    """The rows that a statement gives, and the names and declared types of their columns."""
    description: _Description = []

    # A cursor without rows is done at once, and then it no longer tells its columns: they are noted before.
    def note_description(cursor: apsw.Cursor, _text: str, _values: Any) -> bool:
        description.extend(cursor.get_description())
        return True

    cursor = connection.cursor()
    cursor.exec_trace = note_description
    cursor.execute(text, _bind_values(values))
    return cursor, description


def _declared_types(connection: apsw.Connection, table: str) -> dict[str, str | None]:
    """The columns of a table in order, and the types they were made with, all in one case."""
    query = f"SELECT * FROM {table} LIMIT 0"  # noqa: S608 - a name, as `into` was read
    _, description = _execute(connection, query, ())
    return {name.lower(): kind and kind.upper() for name, kind in description}


def _with_bytes(row: DriverRow, blobs: Sequence[bool]) -> DriverRow:
    """The row with bytes where the text for a blob stands."""
    pairs = zip_longest(row, blobs[: len(row)], fillvalue=False)
    return [bytes_from_text(value, "BLOB") if is_blob else value for value, is_blob in pairs]


def _bind_values(values: DriverRow) -> tuple[Any, ...]:
    return tuple(map(_bind_value, values))


def _bind_value(value: Any) -> Any:
    """A value as SQLite holds it: mappings and lists as JSON, moments as ISO text."""
    match value:
        case None | str() | int() | float() | bytes():
            return value
        case dict() | list():
            return msgspec.json.encode(value).decode()
    return normalise(value)


def connect_in_folder(database: Path | None, folder: Path) -> apsw.Connection:
    """Opens the file, or a database in memory. What it attaches or writes by name is in the folder.

    Raises apsw.Error.
    """
    files = _FolderVfs(folder)
    return apsw.Connection(MEMORY if database is None else str(database), vfs=files.name)


class _FolderVfs(apsw.VFS):
    """The files of the machine, seen from a folder. It is known to SQLite while a connection uses it.

    SQL such as ATTACH names files, too, and SQLite knows one current folder only: that of the process, which
    belongs to all tasks.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f"noetl-{next(_vfs_numbers)}"
        self._folder = folder.absolute()
        super().__init__(self.name, "")

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - as SQLite calls it
        return str(self._folder / name)
