"""The SQL of one task, done in a thread."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from noetl.model.outcome import ToolError
from noetl.model.table_reader import batch_rows
from noetl.model.table_stream import TableStream, read_batches
from noetl.tools.duckdb.auth import attachment_of
from noetl.tools.duckdb.databases import DuckdbConnection
from noetl.tools.duckdb.failure import StatementPosition
from noetl.tools.duckdb.insert import ROWS_TABLE, insert_statement
from noetl.tools.duckdb.kind import DuckdbInputs, DuckdbSpec
from noetl.tools.duckdb.relation import batch_reader, chain_relations, count_rows, run_to_relation
from noetl.tools.duckdb.statements import DuckdbStatement, ParameterBinding, extract_statements
from noetl.tools.duckdb.tables import SourceTables, as_variable, register_table
from noetl.tools.host.input_rules import byte_count
from noetl.tools.sql.statement_result import StatementResult, distinct_names
from noetl.tools.sql.target_table import parse_target_table


class StatementRunner:
    """What a task asks of its database. `position` says which statement is at work."""

    def __init__(
        self,
        inputs: DuckdbInputs,
        spec: DuckdbSpec,
        folder: Path,
        tables: SourceTables,
        variables: SourceTables,
    ) -> None:
        self.inputs = inputs
        self.position = StatementPosition()
        self.statements: list[DuckdbStatement] = []
        self.warnings: list[str] = []
        self.total_rows: int | None = None
        """How many rows the statement gave, where not all of them are kept."""
        self.unfit = {**variables.unfit, **tables.unfit}
        self.labels = {name.lower(): name for name in (*variables.sources, *variables.unfit)}
        self._spec = spec
        self._folder = folder
        self._tables = tables
        self._label_tables = variables
        self._variables: dict[str, Any] = {}
        self._in_transaction = False

    def begin(self, connection: DuckdbConnection) -> None:
        """Prepares the connection. Raises `duckdb.Error` and ToolError."""
        self._cursor = cursor = connection.cursor
        if self._spec.memory is not None:
            cursor.execute(f"SET memory_limit = '{byte_count(self._spec.memory)} bytes'")
        if self._spec.threads is not None:
            cursor.execute(f"SET threads = {self._spec.threads}")
        if self.inputs.auth is not None:
            self._attach(connection, self.inputs.auth)
        for name, source in self._tables.sources.items():
            register_table(cursor, name, source)
        for name, source in self._label_tables.sources.items():
            self._variables[name] = as_variable(cursor, source)
        self.statements = self._statements()
        has_own_transaction = any(statement.controls_transaction for statement in self.statements)
        if self._spec.transaction is not False and not has_own_transaction:
            cursor.execute("BEGIN")
            self._in_transaction = True

    def run(self, statement: DuckdbStatement, limit: int) -> StatementResult | TableStream:
        """What one statement gives. Raises `duckdb.Error`, and what pyarrow makes of it."""
        self.position = StatementPosition(self.statements.index(statement), statement.lines)
        self.total_rows = None
        if self.inputs.rows is not None and self.inputs.into is None:
            return self._run_each(statement, limit)
        try:
            relation = self._relation(statement, statement.values)
        except duckdb.Error as error:
            raise self._with_line(error, statement) from None
        return self._result(statement, relation, limit)

    def finish(self) -> None:
        if self._in_transaction:
            self._cursor.execute("COMMIT")

    def _attach(self, connection: DuckdbConnection, auth: str | dict[str, Any]) -> None:
        if isinstance(auth, str):
            raise ToolError("credential", f"the credential `{auth}` is not known")
        connection.database.attach(connection.cursor, attachment_of(auth, self._folder))

    def _statements(self) -> list[DuckdbStatement]:
        inputs = self.inputs
        sql = inputs.command or inputs.query or inputs.commands or ()
        if inputs.into is not None:
            sql = insert_statement(self._cursor, parse_target_table(inputs.into), inputs.rows)
        binding = ParameterBinding(inputs.params) if inputs.rows is None else None
        texts = [sql] if isinstance(sql, str) else sql
        statements = extract_statements(self._cursor, texts, binding, self._folder)
        if not statements:
            raise ToolError("input", "there is no SQL to run: the text is empty")
        if inputs.rows is not None and len(statements) != 1:
            raise ToolError("input", f"rows go through one statement, and here are {len(statements)}")
        return statements

    def _relation(self, statement: DuckdbStatement, values: Mapping[str, Any]) -> Any:
        return run_to_relation(self._cursor, statement.text, values, self._variables)

    def _result(self, statement: DuckdbStatement, relation: Any, limit: int) -> StatementResult | TableStream:
        if relation is None:
            return StatementResult()
        if statement.only_counts and list(relation.columns) == ["Count"]:
            return StatementResult(row_count=_changed_rows(relation))
        # What DuckDB says of a statement that gives nothing; a query may have a column of that name, too.
        if list(relation.columns) == ["Success"] and not statement.reads:
            return StatementResult()
        return self._read(batch_reader(relation), limit)

    def _read(self, reader: pa.RecordBatchReader, limit: int) -> StatementResult | TableStream:
        if self._spec.fetch in ("one", "none"):
            reader, self.total_rows = count_rows(reader, rows=1 if self._spec.fetch == "one" else 0)
        table = read_batches(reader, distinct_names(reader.schema.names), limit)
        if isinstance(table, TableStream):
            return table
        for name, count in table.lost.items():
            self.warnings.append(f"column `{name}`: {count} values are null, for there is no form for them")
        return StatementResult(table.columns, table.rows, len(table.rows))

    def _with_line(self, error: duckdb.Error, statement: DuckdbStatement) -> duckdb.Error:
        """The error with its line in the statement, which DuckDB tells only where it runs it at once.

        Relations are what may be read batch by batch; `execute` says the line, so it is asked, once all is
        lost anyway. Only what reads is run a second time.
        """
        if not statement.reads or "LINE " in str(error):
            return error
        try:
            if self._in_transaction:
                self._cursor.execute("ROLLBACK")
                self._in_transaction = False
            self._cursor.execute(statement.text, statement.values or None)
        except duckdb.Error as second:
            # What the transaction had made is gone: another error is not the one to tell.
            return second if str(second).startswith(str(error).strip()) else error
        return error

    def _run_each(self, statement: DuckdbStatement, limit: int) -> StatementResult | TableStream:
        """Runs the statement with the values of each row, one after the other."""
        relations = (relation for relation in self._run_with_rows(statement) if relation is not None)
        if statement.only_counts:
            return StatementResult(row_count=sum(map(_changed_rows, relations)))
        first = next(relations, None)
        if first is None:
            return StatementResult()
        return self._read(chain_relations(first, relations), limit)

    def _run_with_rows(self, statement: DuckdbStatement) -> Iterator[Any]:
        for number, row in enumerate(self._rows(), start=1):
            try:
                values = statement.bind_row(row)
            except ToolError as error:
                raise ToolError("input", f"row {number}: {error}") from None
            yield self._relation(statement, values)

    def _rows(self) -> Iterable[Any]:
        if isinstance(self.inputs.rows, list):
            return self.inputs.rows
        if ROWS_TABLE in self.unfit:
            raise ToolError("input", f"`rows` is no table: {self.unfit[ROWS_TABLE]}")
        return (row for batch in self._tables.sources[ROWS_TABLE].to_batches() for row in batch_rows(batch))


def _changed_rows(relation: Any) -> int:
    rows = relation.fetchall()
    return int(rows[0][0]) if rows else 0
