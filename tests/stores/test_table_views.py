"""The tables of the language as views: what they show of real histories is what the export makes of their events."""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

import asyncpg
import psycopg
import pytest
from msgspec import structs
from psycopg.types.json import set_json_loads

from bench.postgres_server import PostgresServer
from noetl.dsl.document.playbook import Playbook
from noetl.engine.archive.execution_tables import ExecutionTables, event_row, reference_rows
from noetl.engine.archive.store_export import playbook_rows
from noetl.engine.archive.table_rows import TABLE_NAMES, TABLES, JsonText, Micros, TableRow
from noetl.engine.catalog.playbook_record import PlaybookSource, encode_source
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.kernel.net.execution_request import DECIDER
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import list_chunk, manifest, value_reference
from noetl.model.timestamp import parse_iso
from noetl.ports.store import Committed, Effects, Store, merge_effects
from noetl.stores import open_store
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.queries import schema_migrations
from noetl.stores.table_views import VIEW_NAMES, sqlite_views
from tests.cli.command_line import VALID, run
from tests.executions.recorded_executions import append_of
from tests.golden.golden_files import history, recordings
from tests.playbooks import playbook_of

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shop, path: a/shop, description: tells, version: "1.2", labels: {team: shop}}
workflow:
- step: start
  desc: the first
  loop: {in: "{{ [1] }}", iterator: n, spec: {mode: parallel}}
  tool: [{t: {kind: noop}}, {u: {kind: python, code: "1"}}]
  next:
    spec: {mode: inclusive}
    arcs: [{step: both, when: "{{ event.name == 'loop.done' }}"}, {step: both, when: "{{ false }}"}, {step: both}]
- step: both
  loop: {in: "{{ [1] }}", iterator: n}
  spec: {policy: {join: any}}
  tool: {kind: noop}
  next: {arcs: [{step: router}]}
- step: router
  next: {arcs: [{step: last}]}
- step: last
  tool: {kind: noop}
"""
ZERO = "a\0b \\u0000"


class StoredHistories:
    """Executions that are in a store, and the rows that the export would write of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._count = 0
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._playbooks: set[str] = set()

    async def add(self, playbook: Playbook, events: Sequence[Event], **facts: Any) -> str:
        self._count += 1
        execution_id = f"01939d2e-0000-7000-8000-{self._count:012d}"
        source = PlaybookSource("text", "playbook.yaml")
        await self._store.put_playbook(playbook.hash, encode_source(playbook=playbook, document=source))
        append = append_of(execution_id, [*events])
        effects = merge_effects(append.effects, Effects(playbook=playbook.hash, **facts))
        assert await self._store.commit([structs.replace(append, effects=effects)]) == [
            Committed(len(events))
        ]
        record = await self._store.execution(execution_id)
        assert record is not None
        tables = ExecutionTables(execution_id)
        for event in events:
            tables.follow(event)
            self._expect([event_row(event, execution_id), *reference_rows(event, execution_id)])
        self._expect(tables.rows(record, playbook))
        if playbook.hash not in self._playbooks:
            self._playbooks.add(playbook.hash)
            self._expect(playbook_rows(playbook))
        return execution_id

    def _expect(self, rows: Iterator[TableRow] | Sequence[TableRow]) -> None:
        for row in rows:
            self.rows[TABLE_NAMES[type(row)]].append(structs.astuple(row))


async def add_histories(histories: StoredHistories) -> None:
    """All that is recorded, also as it was before its end; then what is rare."""
    for name, decider in recordings():
        golden = history(name, decider)
        some = golden.ends[:-1:3] if decider == DECIDER else []
        for end in [*some, golden.ends[-1]]:
            await histories.add(golden.plan.playbook, golden.events[:end], path=name)
    playbook = playbook_of(PLAYBOOK)
    for bodies in RARE:
        events = [
            Event(number, 1_700_000_000_000_001 + 7 * number, body) for number, body in enumerate(bodies, 1)
        ]
        await histories.add(
            playbook, events, path="rare", labels={"team": "ä"}, priority=3, parent="p", root="q"
        )


ERROR = ErrorInfo(kind="timeout", message=ZERO, retryable=True, details={"step": "start"})
KEY = f"01939d2e-0000-7000-8000-000000000001/{'a' * 64}"
PART = {"$noetl": "ref", "key": KEY, "path": ["a"]}
STORED = {
    "text": {"$noetl": "escaped", "ref": "no"},
    "one": value_reference(f"archive:{KEY}", {"n": 1}, size=70_000),
    "many": [manifest([list_chunk(KEY, 0, 2, 9)]), {"deep": value_reference(KEY, [1], size=1), "part": PART}],
}
RARE: list[list[EventBody]] = [
    [of.PlaybookExecutionRequested(path="p", hash="h"), of.PlaybookRequestEvaluated(error=ERROR)],
    [
        of.StepScheduled(step="start"),
        of.TokenClaimed(run="r1", worker="w"),
        of.TaskStarted(run="r1", task="t"),
        of.TaskStarted(run="r1", task="t", redelivery=2),
        of.TaskProcessed(run="r1", task="t", outcome=Outcome(status="error", error=ERROR), do="retry"),
        of.TaskStarted(run="r1", task="t", attempt=2),
        of.TaskProcessed(
            run="r1", task="t", attempt=2, outcome=Outcome(status="ok", meta={"duration_ms": 1.5}), do="jump"
        ),
        of.TaskStarted(run="r1", task="u", iteration=3, visit=2),
        of.TaskProcessed(
            run="r1", task="u", iteration=3, visit=2, outcome=Outcome(status="ok", meta={"duration_ms": "no"})
        ),
        of.TaskStarted(run="r1", task="unknown", attempt=10),
        of.TaskStarted(run="r1", task="unknown", attempt=9),
        of.StepDone(run="r1", result=STORED),
    ],
    [
        of.StepScheduled(step="start"),
        of.TokenClaimed(run="r1", worker="w"),
        of.StepFailed(run="r1", error=ERROR),
        of.LeaseExpired(run="r1", fence=2),
        of.ExecutionRetried(runs=("r1",)),
        of.TokenClaimed(run="r1"),
        of.LeaseExpired(run="r1", fence=2, shard=4),
    ],
    [of.StepScheduled(step="start"), of.StepCompletedByHand(run="r1", result={"text": ZERO, "big": 2**62})],
    [
        of.StepScheduled(step="start"),
        of.StepSkipped(run="r1"),
        of.IterationsRedriven(runs=("r1",), iterations=2),
    ],
    [of.StepScheduled(step="start"), of.StepFailed(run="r1", error=ErrorInfo(kind="cancelled", message=""))],
    [of.StepScheduled(step="start"), of.RunSuspended(run="r1", reason="pause", source="server")],
    [
        of.SignalReceived(signal="s", payload=ZERO),
        of.CtxPatched(patches=(of.Patch(scope="ctx", path=("a",)),)),
    ],
]


def is_type(hint: Any, kind: Any) -> bool:
    """Whether it is that, or that or None."""
    return kind in (hint, *getattr(hint, "__args__", ()))


def plain(table: str, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """With values that compare: times in microseconds, JSON as it is meant."""
    types = list(get_type_hints(TABLES[table]).values())

    def value(hint: Any, item: Any) -> Any:
        if item is None:
            return None
        if is_type(hint, JsonText):
            parsed = json.loads(item) if isinstance(item, str) else item
            return json.dumps(parsed, sort_keys=True)
        if is_type(hint, Micros):
            if isinstance(item, datetime):
                item = item.astimezone(UTC).isoformat()
            return parse_iso(item) if isinstance(item, str) else item
        if isinstance(item, str):
            return item
        return float(item)

    return [tuple(value(hint, item) for hint, item in zip(types, row, strict=True)) for row in rows]


def differences(expected: dict[str, list[tuple[Any, ...]]], ask: Any) -> dict[str, Any]:
    """By table, some rows that are shown and should not be, and some that should."""
    wrong = {}
    for table in VIEW_NAMES:
        columns = ", ".join(TABLES[table].__struct_fields__)
        view_rows = Counter(plain(table, ask(f"SELECT {columns} FROM {table}")))  # noqa: S608 - ours
        wanted = Counter(plain(table, expected[table]))
        if view_rows != wanted:
            wrong[table] = [*(view_rows - wanted)][:2], [*(wanted - view_rows)][:2]
    return wrong


def fill(url: str) -> dict[str, list[tuple[Any, ...]]]:
    async def play() -> dict[str, list[tuple[Any, ...]]]:
        store = open_store(url)
        try:
            histories = StoredHistories(store)
            await add_histories(histories)
            return histories.rows
        finally:
            await store.close()

    return asyncio.run(play())


def with_texts(
    rows: dict[str, list[tuple[Any, ...]]], change: Callable[[str], str], in_json: Callable[[str], str]
) -> dict[str, list[tuple[Any, ...]]]:
    """The same rows with other texts."""

    def changed(value: Any) -> Any:
        match value:
            case dict():
                return {key: changed(item) for key, item in value.items()}
            case list():
                return [changed(item) for item in value]
            case str():
                return in_json(value)
            case _:
                return value

    def column(hint: Any, item: Any) -> Any:
        if isinstance(item, str) and is_type(hint, JsonText):
            return json.dumps(changed(json.loads(item)))
        return change(item) if isinstance(item, str) else item

    return {
        table: [tuple(map(column, get_type_hints(TABLES[table]).values(), row)) for row in table_rows]
        for table, table_rows in rows.items()
    }


def test_a_file_shows_the_tables_of_the_export(tmp_path: Path) -> None:
    rows = fill(f"sqlite:///{tmp_path / 'a #1.db'}")
    script = sqlite_views(str(tmp_path / "a #1.db"))
    connection = sqlite3.connect(":memory:", uri=True)
    try:
        connection.executescript(script)
        # SQLite gives out no more of a text than what is before its first character 0.
        expected = with_texts(rows, lambda text: text.partition("\0")[0], str)
        assert differences(expected, lambda query: connection.execute(query).fetchall()) == {}
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM noetl.event")
    finally:
        connection.close()


def test_a_database_shows_the_tables_of_the_export(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.dsn(schema="shown")
    rows = fill(url)
    done = run("store", "views", "--store", url, "-o", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (done.code, done.json["schema"], done.json["views"]) == (0, "shown_views", [*VIEW_NAMES]), done.err
    with psycopg.connect(url.rpartition("&schema=")[0]) as connection:
        connection.execute("SET search_path = shown_views")
        set_json_loads(lambda data: data if isinstance(data, str) else data.decode(), connection)
        # In PostgreSQL no text has character 0.
        expected = with_texts(rows, *[lambda text: text.replace("\0", "\ufffd")] * 2)
        assert differences(expected, lambda query: connection.execute(query).fetchall()) == {}


def test_views_in_a_database_are_made_anew(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.dsn(schema="anew")
    assert run("run", "-", "--store", url, cwd=tmp_path, stdin=VALID).code == 0
    again = [run("store", "views", "--store", url, cwd=tmp_path) for _ in range(2)]
    assert [done.code for done in again] == [0, 0], again[1].err
    assert "anew_views has 11 views: playbook, " in again[0].out
    with psycopg.connect(url.rpartition("&schema=")[0], autocommit=True) as connection:
        statuses = "SELECT path, status FROM anew_views.execution"
        assert connection.execute(statuses).fetchall() == [("examples/greet", "completed")]
        connection.execute("CREATE VIEW anew_views.mine AS SELECT * FROM anew_views.token")
        refused = run("store", "views", "--store", url, cwd=tmp_path)
        assert (refused.code, "view anew_views.mine depends on view" in refused.err) == (3, True)
        assert "drop it" in refused.err
        connection.execute("DROP VIEW anew_views.mine")
        # A new form of the store takes them along: they hold on to its columns.
        change = "ALTER TABLE execution ALTER COLUMN priority TYPE integer"
        asyncio.run(migrate_with(DatabaseAddress.parse(url), change))
        kind = "SELECT data_type FROM information_schema.columns WHERE table_schema = 'anew_views'"
        assert connection.execute(f"{kind} AND column_name = 'priority'").fetchall() == [("integer",)]
        assert connection.execute(statuses).fetchall() == [("examples/greet", "completed")]


async def migrate_with(address: DatabaseAddress, change: str) -> None:
    """As a release does whose last step is this."""
    connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
    try:
        await PostgresSchema(address).migrate(connection, [*schema_migrations(), change])
    finally:
        await connection.close()


def test_a_reader_needs_no_right_to_the_store(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.dsn(schema="granted")
    assert run("run", "-", "--store", url, cwd=tmp_path, stdin=VALID).code == 0
    assert run("store", "views", "--store", url, cwd=tmp_path).code == 0
    with psycopg.connect(url.rpartition("&schema=")[0], autocommit=True) as connection:
        connection.execute("CREATE ROLE analyst; GRANT USAGE ON SCHEMA granted_views TO analyst")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA granted_views TO analyst; SET ROLE analyst")
        assert connection.execute("SELECT count(*) FROM granted_views.execution").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT count(*) FROM granted.execution")
        connection.execute("RESET ROLE; DROP OWNED BY analyst; DROP ROLE analyst")


def test_a_script_shows_the_store_of_a_home(tmp_path: Path) -> None:
    missing = run("store", "views", cwd=tmp_path)
    assert (missing.code, missing.out) == (2, "")
    assert "there are no executions here yet" in missing.err
    assert run("run", "-", cwd=tmp_path, stdin=VALID).code == 0
    script = run("store", "views", cwd=tmp_path).out
    described = run("store", "views", "-o", "json", cwd=tmp_path).json
    assert (described["script"], described["schema"], described["views"]) == (script, None, [*VIEW_NAMES])
    with closing(sqlite3.connect(":memory:", uri=True)) as connection:
        connection.executescript(script)
        assert connection.execute("SELECT status FROM execution").fetchall() == [("completed",)]


def test_views_have_the_columns_of_the_export() -> None:
    assert [*VIEW_NAMES] == [*TABLES]
