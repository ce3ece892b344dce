"""`noetl store export`: executions as tables of Parquet, and what DuckDB finds in them."""

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from msgspec import structs
from pyarrow import parquet

from noetl.engine.archive import parquet_archive
from noetl.engine.archive.parquet_archive import column_type, open_archive
from noetl.engine.archive.store_export import export_store
from noetl.engine.archive.table_rows import TABLES
from noetl.stores import open_store_to_read
from tests.executions.in_process_command import InProcessCommand

LOOP = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: orders, path: shop/orders, version: "1.2", labels: {team: shop}, description: Sends orders}
workload: {ids: [1, 2, 3], break_on: 0}
workflow:
  - step: start
    desc: Makes a large list
    tool:
      - make: {kind: python, code: "result = ['x' * 100] * 1_000"}
    next: {arcs: [{step: each, when: "{{ event.name == 'step.done' }}"}, {step: never, when: "{{ false }}"}]}
  - step: each
    loop: {in: "{{ workload.ids }}", iterator: id, spec: {mode: sequential}}
    tool:
      - send:
          kind: python
          args: {id: "{{ id }}", bad: "{{ workload.break_on }}"}
          code: "if id == bad: raise ValueError('no such order')\\nresult = id"
          spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0.01}}]}}
  - step: never
    tool: [{t: {kind: noop}}]
"""


class Archive:
    """An export, as DuckDB sees it."""

    def __init__(self, noetl: InProcessCommand, folder: Path) -> None:
        self._noetl = noetl
        self.folder = folder

    def export(self) -> dict[str, Any]:
        ran = self._noetl("store", "export", str(self.folder), "-o", "json")
        assert ran.code == 0, ran.err
        report: dict[str, Any] = ran.json
        return report

    def query(self, sql: str, monkeypatch: pytest.MonkeyPatch, *values: str) -> list[Any]:
        with monkeypatch.context() as patch:
            patch.chdir(self.folder)
            with duckdb.connect() as connection:
                connection.execute((self.folder / "views.sql").read_text())
                return connection.execute(sql, values).fetchall()

    @property
    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*.parquet")
        }


@pytest.fixture
def archive(noetl: InProcessCommand, tmp_path: Path) -> Archive:
    (tmp_path / "orders.yaml").write_text(LOOP)
    return Archive(noetl, tmp_path / "archive")


def run(noetl: InProcessCommand, *flags: str) -> str:
    ran = noetl("run", "orders.yaml", "-q", "-o", "json", *flags)
    return str(ran.json["execution_id"])


def test_the_tables_say_what_the_events_say(
    noetl: InProcessCommand, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = run(noetl), run(noetl, "--set", "break_on=2")
    report = archive.export()
    assert (report["executions"], report["playbooks"]) == (2, 1)
    for name in (good, bad):
        events = noetl("executions", "events", name, "-o", "json").json["events"]
        fields = ("seq", "name", "source", "entity", "entity_id", "status")
        sql = "SELECT seq, name, source, entity, entity_id, status FROM event_log WHERE execution_id = ? ORDER BY seq"
        rows = archive.query(sql, monkeypatch, name)
        assert rows == [tuple(event[field] for field in fields) for event in events]
    assert archive.query(
        "SELECT execution_id, status, error_kind, error_step FROM execution ORDER BY 1", monkeypatch
    ) == [
        (good, "completed", None, None),
        (bad, "failed", "iteration_failed", "each"),
    ]
    assert archive.query("SELECT path, version, steps, labels FROM playbook", monkeypatch) == [
        ("shop/orders", "1.2", 3, '{"team":"shop"}')
    ]
    assert archive.query(
        "SELECT step, kinds, loop_mode FROM playbook_step ORDER BY position", monkeypatch
    ) == [
        ("start", '["python"]', None),
        ("each", '["python"]', "sequential"),
        ("never", '["noop"]', None),
    ]
    assert archive.query("SELECT step, arc, target, guard FROM playbook_arc ORDER BY arc", monkeypatch) == [
        ("start", 0, "each", "{{ event.name == 'step.done' }}"),
        ("start", 1, "never", "{{ false }}"),
    ]
    assert archive.query(
        "SELECT step, status, iterations, iterations_failed, error_kind FROM step_run "
        "WHERE execution_id = ? ORDER BY scheduled_at",
        monkeypatch,
        bad,
    ) == [("start", "completed", None, None, None), ("each", "failed", 3, None, "iteration_failed")]
    assert archive.query(
        "SELECT iteration, kind, attempts, status, directive FROM task_run "
        "WHERE execution_id = ? AND task = 'send' ORDER BY iteration",
        monkeypatch,
        bad,
    ) == [(0, "python", 1, "ok", "continue"), (1, "python", 2, "error", "fail")]
    assert archive.query(
        "SELECT attempt, status, error_kind, duration_ms > 0 FROM attempt WHERE execution_id = ? "
        "AND task_run_id LIKE '%/1/send/1' ORDER BY attempt",
        monkeypatch,
        bad,
    ) == [(1, "error", "python", True), (2, "error", "python", True)]
    assert archive.query(
        "SELECT step, status, from_arc FROM token WHERE execution_id = ? ORDER BY enqueued_at",
        monkeypatch,
        good,
    ) == [("start", "consumed", None), ("each", "consumed", 0)]
    ((key, size, events_with_it),) = archive.query(
        "SELECT key, any_value(size), count(*) FROM result_ref WHERE execution_id = ? GROUP BY key",
        monkeypatch,
        good,
    )
    assert (key.startswith(good), size > 100_000, events_with_it >= 1) == (True, True, True)
    assert archive.query("SELECT count(*) FROM manifest_ref", monkeypatch) == [(0,)]


def test_a_second_export_adds_what_is_new_and_touches_nothing_else(
    noetl: InProcessCommand, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(noetl, "--set", "break_on=2")
    archive.export()
    before = archive.files
    assert archive.export() == {
        "directory": str(archive.folder),
        "events": 0,
        "executions": 0,
        "playbooks": 0,
        "rows": 0,
    }
    assert archive.files == before
    (archive.folder.parent / "mended.yaml").write_text(LOOP.replace("id == bad", "id == bad and id > 9"))
    assert noetl("executions", "retry", first, "--playbook", "mended.yaml").code == 0
    second = run(noetl)
    report = archive.export()
    assert (report["executions"], report["playbooks"]) == (2, 1)
    assert before.items() <= archive.files.items()
    statuses = "SELECT execution_id, status FROM execution ORDER BY execution_id"
    assert archive.query(statuses, monkeypatch) == [(first, "completed"), (second, "completed")]
    runs = "SELECT step, status FROM step_run WHERE execution_id = ? ORDER BY scheduled_at"
    assert archive.query(runs, monkeypatch, first) == [("start", "completed"), ("each", "completed")]
    doubles = "SELECT execution_id, seq FROM event_log GROUP BY ALL HAVING count(*) > 1"
    assert archive.query(doubles, monkeypatch) == []
    for name in (first, second):
        events = len(noetl("executions", "events", name, "-o", "json").json["events"])
        assert archive.query(
            "SELECT max(seq), count(*) FROM event_log WHERE execution_id = ?", monkeypatch, name
        ) == [(events, events)]
    assert noetl("executions", "prune", "--before", "2999-01-01", "-y").code == 0
    third = run(noetl)
    archive.export()
    assert [name for name, _ in archive.query(statuses, monkeypatch)] == [first, second, third]


class Crash(BaseException):
    """Ends an export where it stands."""


class CrashAt:
    """Raises before the n-th step of those that change the folder."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int) -> None:
        self._left = number
        for owner, name in (
            (Path, "rename"),
            (Path, "replace"),
            (Path, "unlink"),
            (parquet_archive, "_write_file"),
            (parquet_archive.ParquetArchive, "_write"),
        ):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def run_step(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                raise Crash
            return step(*arguments, **options)

        return run_step


def test_after_a_crash_anywhere_the_next_export_has_each_event_once(
    noetl: InProcessCommand, archive: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def export(folder: Path) -> None:
        store = open_store_to_read(f"sqlite:///{tmp_path / '.noetl' / 'store.db'}")
        try:
            await export_store(store, folder)
        finally:
            await store.close()

    ids = [run(noetl)]
    archive.export()
    ids.append(run(noetl, "--set", "break_on=1"))
    crashes = 0
    while True:
        crashed = Archive(noetl, tmp_path / f"crashed-{crashes}")
        shutil.copytree(archive.folder, crashed.folder)
        with monkeypatch.context() as patch:
            CrashAt(patch, crashes + 1)
            try:
                asyncio.run(export(crashed.folder))
            except Crash:
                crashes += 1
            else:
                break
        doubles = "SELECT execution_id, seq FROM event_log GROUP BY ALL HAVING count(*) > 1"
        assert crashed.query(doubles, monkeypatch) == []
        asyncio.run(export(crashed.folder))
        assert crashed.query(doubles, monkeypatch) == []
        assert crashed.query("SELECT execution_id FROM execution ORDER BY 1", monkeypatch) == [
            (name,) for name in ids
        ]
        counts = crashed.query("SELECT max(seq), count(*) FROM event_log GROUP BY execution_id", monkeypatch)
        assert all(last == count for last, count in counts)
        assert not list(crashed.folder.glob(".adding*")) + list(crashed.folder.glob(".pending*"))
    assert crashes > 10


@pytest.mark.parametrize(
    ("limit", "value"), [("MOST_ROWS", 5), ("MOST_BYTES", 5_000), ("MOST_WAITING", 9_000)]
)
def test_many_rows_become_several_files(
    noetl: InProcessCommand, archive: Archive, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(parquet_archive, limit, value)
    name = run(noetl)
    archive.export()
    assert len([file for file in archive.files if file.startswith("event_log/")]) >= 3
    events = len(noetl("executions", "events", name, "-o", "json").json["events"])
    assert archive.query("SELECT count(*), count(DISTINCT seq) FROM event_log", monkeypatch) == [
        (events, events)
    ]


def test_what_is_no_folder_for_it_is_refused(
    noetl: InProcessCommand, archive: Archive, tmp_path: Path
) -> None:
    def failure(folder: Path) -> str:
        ran = noetl("store", "export", str(folder), "-o", "json")
        error = ran.json["error"]
        assert (ran.code, error["code"], bool(error["hint"]) or "orders.yaml" in error["message"]) == (
            3,
            "export",
            True,
        )
        return str(error["message"])

    run(noetl)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear Ada")
    assert "has other files, and no export" in failure(tmp_path / "full")
    assert "orders.yaml" in failure(tmp_path / "orders.yaml")
    archive.export()
    with open_archive(archive.folder):
        assert "somebody else exports" in failure(archive.folder)
    other = tmp_path / "other"
    assert noetl("run", "orders.yaml", "-q", "--home", str(other)).code == 0
    ran = noetl("store", "export", str(archive.folder), "--home", str(other), "-o", "json")
    assert (ran.code, "another store" in ran.json["error"]["message"]) == (3, True)
    state = archive.folder / "export.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 2}))
    assert "another release" in failure(archive.folder)
    state.write_text("{")
    assert "damaged" in failure(archive.folder)


def test_a_copy_of_the_store_does_not_go_on_where_the_store_ended(
    noetl: InProcessCommand, archive: Archive, tmp_path: Path, dsn: str
) -> None:
    run(noetl)
    archive.export()
    files = archive.files
    assert noetl("store", "copy", "sqlite:///.noetl/store.db", dsn).code == 0
    ran = noetl("store", "export", str(archive.folder), "--store", dsn, "-o", "json")
    assert (ran.code, "another store" in ran.json["error"]["message"]) == (3, True)
    assert archive.files == files
    assert noetl("store", "export", str(tmp_path / "of-the-copy"), "--store", dsn).code == 0


def test_files_have_the_columns_that_are_defined(noetl: InProcessCommand, archive: Archive) -> None:
    run(noetl)
    archive.export()
    for file in archive.files:
        row_type = TABLES[file.partition("/")[0]]
        schema = parquet.read_schema(archive.folder / file)
        assert schema.names == [column.name for column in structs.fields(row_type)]


def test_the_page_has_every_column_and_its_queries_work(
    noetl: InProcessCommand, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text()
    for table, row_type in TABLES.items():
        columns = ", ".join(f"`{column.name}`" for column in structs.fields(row_type))
        assert f"| `{table}` | {columns} |" in page
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(queries) >= 5
    run(noetl)
    run(noetl, "--set", "break_on=2")
    archive.export()
    for query in queries:
        assert archive.query(query, monkeypatch), query


def test_a_table_without_files_is_empty_and_has_its_types(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(parquet_archive.views_sql(()))
        for table, row_type in TABLES.items():
            described = connection.execute(f"DESCRIBE {table}").fetchall()
            assert [row[0] for row in described] == [column.name for column in structs.fields(row_type)]
            assert connection.table(table).fetchall() == []
        assert column_type(int | None) is int
