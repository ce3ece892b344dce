"""What `noetl store prune` drops of results that nothing names, in every store of results, and what it must leave."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from uuid_utils import uuid7

from bench.s3_server import S3Server
from noetl.engine.history.orphans import ORPHAN_AGE, Orphans, OrphanSearch
from noetl.ports.results import ResultMissing, ResultStore
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.stores.results.result_store_urls import open_result_stores
from tests.azure_server import AzureServer
from tests.cli.command_line import CompletedCommand
from tests.executions.in_process_command import InProcessCommand
from tests.gcs_server import GcsServer
from tests.nats_server import NatsServer, create_object_store
from tests.stores.test_result_stores import set_environment

EVERYTHING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: everything, path: tests/everything}
workload: {text: TEXT}
workflow:
  - step: start
    tool:
      - make: {kind: python, code: "result = {'n': 1, 'rows': [{'id': i, 'text': 'x' * 100} for i in range(2_000)]}"}
      - keep: {kind: artifact, action: put, key: report, content: "{{ make.rows }}", format: csv}
      - half: {kind: python, args: {rows: "{{ make.rows }}"}, code: "result = rows[:1_500]"}
    set: { ctx.page: "{{ event.result }}" }
    next: {arcs: [{step: each, args: {rows: "{{ event.result }}"}}]}
  - step: each
    loop: {in: "{{ args.rows }}", iterator: row, spec: {mode: parallel}}
    tool: [{copy: {kind: noop, args: {text: "{{ row.text * 20 }}"}}}]
    next: {arcs: [{step: table}]}
  - step: table
    tool: [{query: {kind: duckdb, query: "SELECT range AS id, repeat('x', 200) AS text FROM range(500)"}}]
    next: {arcs: [{step: rows, args: {rows: "{{ event.result.rows }}"}}]}
  - step: rows
    loop: {in: "{{ args.rows }}", iterator: row, spec: {mode: parallel, max_in_flight: 100}}
    tool: [{take: {kind: noop, args: {id: "{{ row.id }}"}}}]
    next: {arcs: [{step: child}]}
  - step: child
    tool:
      - call: {kind: playbook, path: tests/child, args: {rows: "{{ ctx.page }}"}}
"""
CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: tests/child}
workload: {rows: []}
executor: {spec: {output: "{{ workload.rows }}"}}
workflow:
  - step: start
    tool: [{t: {kind: noop}}]
"""
LATER = 2 * ORPHAN_AGE
OLD_ID = "0174876e-8000-7000-8000-000000000000"
"""Of an execution of 2020, which is nowhere."""


@pytest.fixture(params=["file", "database", "s3", "gs", "az", "nats"])
def location(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noetl: InProcessCommand
) -> str:
    """The URL of a store of each kind, empty for the home's own, with credentials in the environment."""
    match request.param:
        case "file":
            return ""
        case "database":
            return "store:"
        case "s3":
            s3: S3Server = request.getfixturevalue("s3")
            set_environment(monkeypatch, s3.environment)
            return f"s3://{s3.bucket}/{uuid4().hex}?endpoint={s3.endpoint}"
        case "nats":
            nats: NatsServer = request.getfixturevalue("nats")
            set_environment(monkeypatch, nats.environment)
            asyncio.run(create_object_store(nats, bucket := uuid4().hex))
            return f"{nats.url}/{bucket}"
        case scheme:
            server: GcsServer | AzureServer = request.getfixturevalue({"gs": "gcs", "az": "azure"}[scheme])
            set_environment(monkeypatch, server.environment)
            return server.location(uuid4().hex)


def key_of(execution_id: str, data: bytes) -> str:
    return f"{execution_id}/{hashlib.sha256(data).hexdigest()}"


class ResultsHome:
    """A home in which executions ran, and its results."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home = Home(folder / ".noetl")
        self.url = url

    def search(
        self,
        work: Callable[[NamedResults], object] = lambda _: None,
        *,
        now: float | None = None,
        dry: bool = False,
    ) -> Orphans:
        """What is dropped by then, as if nobody else used the stores, after `work` was awaited."""

        async def play() -> Orphans:
            store = open_store(f"sqlite:///{self.home.store}")
            results = open_result_stores(self.home, store, own=self.url)
            try:
                if (working := work(results)) is not None:
                    await working  # type: ignore[misc]  # some are no coroutines
                moment = time.time() + LATER if now is None else now
                owners = Owners(self.home.owners)
                search = OrphanSearch(store, owners, moment, dry=dry, exclusive=frozenset({""}))
                return await search.drop(results.stores)
            finally:
                await results.close()
                await store.close()

        return asyncio.run(play())


@pytest.fixture
def everything(
    noetl: InProcessCommand, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ResultsHome:
    """An execution whose events name bodies in every way: values, tables, parts, chunks, artifacts, a child."""
    (tmp_path / "everything.yaml").write_text(EVERYTHING.replace("TEXT", "t" * 70_000))
    (tmp_path / "child.yaml").write_text(CHILD)
    monkeypatch.setenv("NOETL_RESULT_STORE", location)
    ran = noetl("run", "everything.yaml", "-q")
    assert ran.code == 0, ran.err
    return ResultsHome(tmp_path, location)


def test_nothing_that_is_named_is_dropped_and_all_else_is(
    everything: ResultsHome, noetl: InProcessCommand
) -> None:
    executions = [
        each["execution_id"] for each in noetl("executions", "list", "-o", "json").json["executions"]
    ]
    assert len(executions) == 2
    unknown = OLD_ID
    left = [key_of(execution_id, b"left behind") for execution_id in (*executions, unknown)]

    async def leave(results: ResultStore) -> None:
        for key in left:
            await results.put(key, b"left behind")
        source = ResultStoreObjects(results, executions[0])
        async with source.draft() as draft:
            draft.path.write_bytes(b"never named")
            reference = await draft.keep("text/plain")
        await results.copy(reference["key"], f"artifact-{'0' * 32}-{'1' * 32}/{reference['hash']}")

    # The database does not know when a body was written: there the execution has to be old, and artifacts stay.
    is_timed = everything.url != "store:"
    assert everything.search(leave, now=time.time()).bodies == (0 if is_timed else 1)
    bodies = len(left) + 1 + 1 if is_timed else len(left)
    dropped = everything.search(dry=True)
    assert dropped.bodies == bodies
    assert dropped.bytes == 11 * bodies
    assert everything.search() == dropped
    assert everything.search() == Orphans()

    async def are_gone(results: ResultStore) -> None:
        for key in left:
            with pytest.raises(ResultMissing):
                await results.get(key)

    everything.search(are_gone)
    assert len(noetl("executions", "result", "latest").json) == 1_500
    for execution_id in executions:
        assert noetl("executions", "verify", execution_id).code == 0
    for name in ("start", "each", "table", "rows"):
        assert noetl("executions", "result", executions[1], name).code == 0
    artifact = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: again, path: tests/again}
workflow:
  - step: start
    tool: [{t: {kind: artifact, action: get, key: report, format: csv}}]
"""
    (everything.home.folder.parent / "again.yaml").write_text(artifact)
    ran = noetl("run", "again.yaml", "-q")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("location", ["file"], indirect=True)
def test_what_somebody_runs_is_left_alone(everything: ResultsHome, noetl: InProcessCommand) -> None:
    (execution,) = noetl("executions", "list", "-o", "json", "--path", "tests/everything").json["executions"]
    key = key_of(execution["execution_id"], b"left behind")
    owners = Owners(everything.home.owners)
    with owners.acquire(execution["execution_id"]):  # type: ignore[union-attr]  # nobody else has it
        assert everything.search(lambda results: results.put(key, b"left behind")) == Orphans()
    assert everything.search().bodies == 1


@pytest.mark.parametrize("location", ["file", "database"], indirect=True)
def test_what_an_execution_is_about_to_start_is_left_alone(
    noetl: InProcessCommand, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id of a child begins as that of its parent does, and its values are there before it is."""
    monkeypatch.setenv("NOETL_RESULT_STORE", location)
    (tmp_path / "child.yaml").write_text(CHILD)
    assert noetl("run", "child.yaml", "-q").code == 0
    (ended,) = noetl("executions", "list", "-o", "json").json["executions"]
    forked = noetl("executions", "fork", "latest", "--at", "2", "--no-run", "-o", "json")
    assert forked.code == 0, forked.err
    open_parent = forked.json["execution_id"]
    children = [name[:13] + str(uuid7())[13:] for name in (ended["execution_id"], open_parent)]
    assert children[0][:13] != children[1][:13]

    async def put(results: ResultStore) -> None:
        for child in children:
            await results.put(key_of(child, b"soon"), b"soon")

    results_home = ResultsHome(tmp_path, location)
    assert results_home.search(put).bodies == 1

    async def look(results: ResultStore) -> None:
        assert await results.get(key_of(children[1], b"soon")) == b"soon"

    results_home.search(look)


def test_prune_says_what_it_drops(
    noetl: InProcessCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prune(*flags: str) -> CompletedCommand:
        return noetl("store", "prune", "--days", "36500", *flags)

    (tmp_path / "child.yaml").write_text(CHILD)
    assert noetl("run", "child.yaml", "-q").code == 0
    (execution,) = noetl("executions", "list", "-o", "json").json["executions"]
    folder = tmp_path / ".noetl" / "results" / execution["execution_id"]
    folder.mkdir(parents=True)
    body = folder / hashlib.sha256(b"left behind").hexdigest()
    body.write_bytes(b"left behind")
    assert prune("-o", "json").json["orphans"] == {"bodies": 0, "bytes": 0, "unknown": 0}
    now = time.time
    monkeypatch.setattr("noetl.cli.command.store.now_micros", lambda: int((now() + LATER) * 1_000_000))
    assert "would be dropped: 1 result of 11 bytes that nothing names" in prune("--dry-run").err
    assert body.exists()
    ran = prune("-o", "json")
    assert (ran.code, ran.json["orphans"]) == (0, {"bodies": 1, "bytes": 11, "unknown": 0})
    assert not body.exists()


def test_where_others_may_keep_theirs_only_with_a_flag(
    noetl: InProcessCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_RESULT_STORE", "file://shared")
    (tmp_path / "child.yaml").write_text(CHILD)
    assert noetl("run", "child.yaml", "-q").code == 0
    body = tmp_path / "shared" / OLD_ID / hashlib.sha256(b"theirs").hexdigest()
    body.parent.mkdir(parents=True)
    body.write_bytes(b"theirs")
    segment = tmp_path / "shared" / f"{OLD_ID}.log" / "0001-a"
    segment.parent.mkdir()
    segment.write_bytes(b"line\n")
    now = time.time
    monkeypatch.setattr("noetl.cli.command.store.now_micros", lambda: int((now() + LATER) * 1_000_000))
    ran = noetl("store", "prune", "--days", "36500")
    assert "left: 2 results of executions that are not in this store (--with-unknown" in ran.err
    assert body.exists()
    ran = noetl("store", "prune", "--days", "36500", "--with-unknown", "-o", "json")
    assert json.loads(ran.out)["orphans"] == {"bodies": 2, "bytes": 11, "unknown": 0}
    assert [path for path in (body, segment) if path.exists()] == []
