"""What one attempt does with its SQLite database, in a thread of its own."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import apsw
import msgspec

from noetl.model.normalisation import normalise
from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.sql.input_rows import Given
from noetl.tools.sql.result_table import Column, Row, Table, bytes_of, plain
from noetl.tools.sql.sql_inputs import SqlSpec
from noetl.tools.sql.sql_task import (
    Bound,
    bound_of,
    controls_transaction,
    in_one_transaction,
    most_rows,
    one_statement,
)
from noetl.tools.sql.statement_result import Answer
from noetl.tools.sql.target_table import into_of, quote
from noetl.tools.sql.text import SQLITE, Statement, plan_of
from noetl.tools.sqlite.folder import connect
from noetl.tools.sqlite.kind import SqliteInputs

T = TypeVar("T")

_READS = {"SELECT", "VALUES", "EXPLAIN", "PRAGMA"}
_CHANGES = {"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"}
_LONGEST_PAUSE = 0.1
"""Seconds between two looks whether a locked database is free."""


class Session:
    """One attempt. `current` is the statement that runs; `warnings` what its values lost."""

    def __init__(
        self, call: Call, inputs: SqliteInputs, spec: SqlSpec, given: Given | None, drafts: AsyncExitStack
    ) -> None:
        self.current: Bound | None = None
        self.warnings: list[str] = []
        self._call = call
        self._inputs = inputs
        self._spec = spec
        self._given = given
        self._drafts = drafts
        self._most = most_rows(spec)
        self._loop = asyncio.get_running_loop()
        self._stopped = Event()
        self._connection: apsw.Connection | None = None

    def on_file(self, path: Path) -> list[Answer]:
        """The same as `run`, on a connection of its own."""
        connection = connect(path, self._call.folder)
        try:
            return self.run(connection)
        finally:
            connection.close()

    def run(self, connection: apsw.Connection) -> list[Answer]:
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

    def _statements(self, connection: apsw.Connection) -> list[Answer]:
        bound = bound_of(self._inputs, SQLITE)
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

    def _statement(self, connection: apsw.Connection, bound: Bound) -> Answer:
        self.current = bound
        self._check()
        rows, columns = _started(connection, bound.text, bound.values or ())
        table = Table(self._call, columns)
        pending: list[Row] = []
        count = 0
        for row in rows:
            count += 1
            if self._most is not None and count > self._most:
                continue
            pending.append(row)
            if len(pending) >= table.batch:
                self._add(table, pending)
                pending = []
        if not columns:
            return Answer(row_count=connection.changes() if bound.statement.words[0] in _CHANGES else 0)
        self._add(table, pending)
        return self._answer(table)._replace(row_count=count)

    def _rows(self, connection: apsw.Connection, given: Given) -> Answer:
        if self._inputs.into is not None:
            with self._transaction(connection):
                return Answer(row_count=self._insert(connection, given, self._inputs.into))
        statement = one_statement(self._inputs, SQLITE)
        if self._spec.transaction is False or controls_transaction(statement):
            return self._each(connection, given, statement)
        with self._transaction(connection):
            return self._each(connection, given, statement)

    def _insert(self, connection: apsw.Connection, given: Given, text: str) -> int:
        into = into_of(text)
        columns = given.chosen(into.columns)
        names = f" ({', '.join(map(quote, columns))})" if columns else ""
        blobs: list[bool] | None = None
        count = 0
        for batch in given.loaded(columns):
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

    def _each(self, connection: apsw.Connection, given: Given, statement: Statement) -> Answer:
        """Runs the statement with every row, one after the other."""
        plan = plan_of(statement, SQLITE, named=given.columns is not None)
        self.current = Bound(statement, plan.text, None, "")
        table: Table | None = None
        count = 0
        for batch in given.picked(plan.keys):
            self._check()
            found: list[Row] = []
            for row in batch:
                rows, columns = _started(connection, plan.text, row)
                if columns:
                    table = table or Table(self._call, columns)
                    found += rows
                else:
                    count += connection.changes()
            count += len(found)
            if table is not None:
                self._add(table, found if self._most is None else found[: self._most - table.count])
        if table is None:
            return Answer(row_count=count)
        return self._answer(table)._replace(row_count=count)

    def _add(self, table: Table, rows: list[Row]) -> None:
        self._check()
        table.add(rows)
        if table.full and (path := self._awaited(table.open(self._drafts))):
            table.spill(path)

    def _answer(self, table: Table) -> Answer:
        table.end()
        self.warnings += table.warnings
        return self._awaited(table.answer())

    def _check(self) -> None:
        if self._stopped.is_set():
            raise ToolError("cancelled", "the task was stopped")

    def _awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives, which is done in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _started(
    connection: apsw.Connection, text: str, values: Row
) -> tuple[Iterator[tuple[Any, ...]], list[Column]]:
    """The rows that a statement gives, and their columns, known before the first of them."""
    columns: list[Column] = []

    def note(cursor: apsw.Cursor, _text: str, _values: Any) -> bool:
        columns.extend(Column(name, plain) for name, _ in cursor.get_description())
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


def _with_bytes(row: Row, blobs: Sequence[bool]) -> Row:
    """The row with bytes where the text for a blob stands."""
    places = zip_longest(row, blobs[: len(row)], fillvalue=False)
    return [bytes_of(value, "BLOB") if is_blob else value for value, is_blob in places]


def _values(values: Row) -> tuple[Any, ...]:
    return tuple(map(_value, values))


def _value(value: Any) -> Any:
    """A value as SQLite holds it: mappings and lists as JSON, moments as ISO text."""
    match value:
        case None | str() | int() | float() | bytes():
            return value
        case dict() | list():
            return msgspec.json.encode(value).decode()
    return normalise(value)
