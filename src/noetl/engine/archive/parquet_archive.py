"""Tables as files of Parquet in a folder, to which rows are added so that a crash adds none or all of them.

    DIR/TABLE/date=2026-11-18/7-0.parquet   rows of the seventh addition, by their day where they have one
    DIR/playbook/7-0.parquet                and where they have none
    DIR/export.json                         what has been added, and from where the next one goes on
    DIR/views.sql                           the tables as views of DuckDB

An addition is written apart first. A file then says what belongs to it; from there on it is completed, by the
next one if need be. Readers may see some of its files before the others, and no row twice.
"""

import fcntl
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct, structs

from noetl.engine.archive.table_rows import TABLE_NAMES, TABLES, JsonText, Micros, TableRow, has_versions
from noetl.model.errors import NoetlError
from noetl.stores.durable_folder import flush_folder

FORMAT = 1
"""Of the folder: changes when older releases could not go on with it."""
MOST_ROWS = 50_000
"""Rows that are gathered for one file."""
MOST_BYTES = 64 << 20
"""Bytes of them, about."""
MOST_WAITING = 256 << 20
"""The same of all that are gathered."""
_ROW_BYTES = 500
"""What a row takes beside its texts."""
_DAY = {"execution": "started_at", "event_log": "timestamp"}
"""By which time rows belong to a day; those of the other tables to that of their execution."""


class ArchiveUnusable(NoetlError):
    """A folder cannot be added to. `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class LastEntry(Struct, frozen=True):
    """The last entry of the feed that was added: the store must still have it."""

    pos: int = 0
    execution_id: str = ""
    seq: int = 0


class ArchiveState(Struct, frozen=True, kw_only=True):
    """What stands in `export.json`."""

    format: int = FORMAT
    additions: int = 0
    last: LastEntry = LastEntry()
    playbooks: tuple[str, ...] = ()
    """Hashes of those that are in it."""


class _Pending(Struct, frozen=True):
    """What an addition consists of, written when all of it is there."""

    files: tuple[str, ...]
    state: ArchiveState


class ParquetArchive:
    """A folder that nobody else writes to, as long as `open_archive` lasts."""

    def __init__(self, folder: Path, arrow: Any, parquet: Any) -> None:
        self._folder = folder
        self._arrow = arrow
        self._parquet = parquet
        self._apart = folder / ".adding"
        self._pending = folder / ".pending.json"
        self._state_file = folder / "export.json"
        self._files: list[str] = []
        self._batches: dict[tuple[str, str], _Batch] = {}
        self._waiting = 0
        """Bytes in all of them."""
        self.rows = 0
        self.state = ArchiveState()

    def recover(self) -> None:
        """Completes what was complete but for its names, and forgets what was not. Raises ArchiveUnusable."""
        if self._pending.exists():
            self._publish(msgspec.json.decode(self._pending.read_bytes(), type=_Pending))
        shutil.rmtree(self._apart, ignore_errors=True)
        self.state = self._read_state()

    def add(self, rows: Iterable[TableRow], day: str = "") -> None:
        """`day` is that of rows without a time of their own, such as `2026-11-18`; playbooks have none."""
        for row in rows:
            table = TABLE_NAMES[type(row)]
            time = getattr(row, _DAY[table]) if table in _DAY else None
            key = table, day_of(time) if time is not None else day
            batch = self._batches.setdefault(key, _Batch())
            self._waiting += batch.append(row)
            self.rows += 1
            if len(batch.rows) >= MOST_ROWS or batch.bytes >= MOST_BYTES:
                self._write(*key)
            elif self._waiting >= MOST_WAITING:  # of many days, each with a few
                self._write_all()

    def commit(self, state: ArchiveState) -> None:
        """All that was added is in the folder, and survives the loss of power, or nothing is."""
        self._write_all()
        pending = _Pending(tuple(self._files), structs.replace(state, additions=self.state.additions + 1))
        if self._apart.exists():
            flush_folder(self._apart)
        _write_file(self._pending, msgspec.json.encode(pending))
        self._publish(pending)

    def _publish(self, pending: _Pending) -> None:
        """A second time does what is left."""
        for name in pending.files:
            path = self._folder / name
            apart = self._apart / name.replace("/", "@")
            path.parent.mkdir(parents=True, exist_ok=True)
            if apart.exists():
                apart.rename(path)
            flush_folder(path.parent)
            flush_folder(path.parent.parent)
        tables = {name.partition("/")[0] for name in pending.files}
        tables |= {table for table in TABLES if (self._folder / table).is_dir()}
        _write_file(self._folder / "views.sql", views_sql(tables).encode())
        _write_file(self._state_file, msgspec.json.encode(pending.state))
        flush_folder(self._folder)
        self._pending.unlink(missing_ok=True)
        shutil.rmtree(self._apart, ignore_errors=True)
        self._files.clear()
        self.state = pending.state

    def _write_all(self) -> None:
        for key in list(self._batches):
            self._write(*key)

    def _write(self, table: str, day: str) -> None:
        batch = self._batches.pop((table, day))
        self._waiting -= batch.bytes
        rows = batch.rows
        number = sum(name.startswith(f"{table}/") for name in self._files)
        folder = f"{table}/date={day}" if day else table
        name = f"{folder}/{self.state.additions + 1}-{number}.parquet"
        self._apart.mkdir(parents=True, exist_ok=True)
        columns = {
            column.name: self._column([getattr(row, column.name) for row in rows], column.type)
            for column in structs.fields(TABLES[table])
        }
        apart = self._apart / name.replace("/", "@")
        self._parquet.write_table(self._arrow.table(columns), str(apart), compression="zstd")
        with apart.open("rb") as file:
            os.fsync(file.fileno())
        self._files.append(name)

    def _column(self, values: list[Any], field_type: Any) -> Any:
        arrow = self._arrow
        types = {
            str: arrow.string(),
            JsonText: arrow.string(),
            Micros: arrow.timestamp("us"),
            int: arrow.int64(),
            float: arrow.float64(),
            bool: arrow.bool_(),
        }
        return arrow.array(values, type=types[column_type(field_type)])

    def _read_state(self) -> ArchiveState:
        try:
            state = msgspec.json.decode(self._state_file.read_bytes(), type=ArchiveState)
        except FileNotFoundError:
            if any(not entry.name.startswith(".") for entry in self._folder.iterdir()):
                message = f"{self._folder} has other files, and no export"
                raise ArchiveUnusable(message, "name a folder that is empty or not there") from None
            return ArchiveState()
        except msgspec.DecodeError as error:
            raise ArchiveUnusable(
                f"{self._state_file} is damaged: {error}", "export into a new folder"
            ) from None
        if state.format != FORMAT:
            message = f"{self._folder} was written by another release (format {state.format})"
            raise ArchiveUnusable(message, "export into a new folder")
        return state


class _Batch(Struct):
    """Rows that wait to be written."""

    rows: list[TableRow] = []
    bytes: int = 0

    def append(self, row: TableRow) -> int:
        """How many bytes it takes, about."""
        size = _ROW_BYTES + sum(len(value) for value in structs.astuple(row) if isinstance(value, str))
        self.rows.append(row)
        self.bytes += size
        return size


@contextmanager
def open_archive(folder: Path) -> Iterator[ParquetArchive]:
    """The folder, made if it is not there. Raises ArchiveUnusable, OSError."""
    arrow, parquet = _import_arrow()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"somebody else exports into {folder} now"
            raise ArchiveUnusable(message, "wait for it, or name another folder") from None
        archive = ParquetArchive(folder, arrow, parquet)
        archive.recover()
        yield archive


def _import_arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as arrow  # noqa: PLC0415 - only who exports needs it
        from pyarrow import parquet  # noqa: PLC0415 - likewise
    except ImportError:
        raise ArchiveUnusable("an export needs pyarrow", "pip install 'noetl[arrow]'") from None
    return arrow, parquet


def column_type(field_type: Any) -> Any:
    """Of a column that may be empty, too."""
    (column,) = [part for part in get_args(field_type) or (field_type,) if part is not type(None)]
    return column


def day_of(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).date().isoformat()


_DUCKDB_TYPES = {
    str: "VARCHAR",
    JsonText: "VARCHAR",
    Micros: "TIMESTAMP",
    int: "BIGINT",
    float: "DOUBLE",
    bool: "BOOLEAN",
}


def views_sql(tables: Collection[str]) -> str:
    """All tables as views of DuckDB, read in the folder; these have files, and the others no rows.

    Of what was exported again only the last counts.
    """
    statements = []
    for table, row_type in TABLES.items():
        if table in tables:
            files = f"'{table}/**/*.parquet', hive_partitioning = true"
            query = f"SELECT * FROM read_parquet({files})"  # noqa: S608 - names of ours
            if has_versions(table):
                query += "\nQUALIFY as_of = max(as_of) OVER (PARTITION BY execution_id)"
        else:
            columns = [
                f"NULL::{_DUCKDB_TYPES[column_type(field.type)]} AS {field.name}"
                for field in structs.fields(row_type)
            ]
            query = f"SELECT {', '.join(columns)} WHERE false"
        statements.append(f"CREATE OR REPLACE VIEW {table} AS\n{query};\n")
    return "\n".join(statements)


def _write_file(path: Path, data: bytes) -> None:
    """All of it or what was there, and durable on return but for the name."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    flush_folder(path.parent)
