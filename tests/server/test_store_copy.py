"""`noetl store copy` between real stores: what a server and commands left there, and what goes on elsewhere."""

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

import noetl
from bench.postgres_server import PostgresServer
from noetl.client.http_client import Client
from noetl.engine.effects import effects_of_row
from noetl.engine.history.lookup import PAGE
from noetl.model.run_rows import LeasedRun, ReadyRun
from noetl.ports.catalog import ApiToken
from noetl.ports.credentials import SealedCredential
from noetl.ports.http_api import StartExecution
from noetl.ports.store import NO_EFFECTS, Append, Committed, Effects, Row, Store, merge_effects
from noetl.stores import open_store
from tests.cli.command_line import VALID, environment, run, run_on_terminal
from tests.server.server_process import (
    GREET,
    LARGE,
    PARENT,
    WAITING,
    ServerProcess,
    command,
    kill,
    server_process,
)

_numbers = count(1)
LONG = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: long, path: examples/long}
workflow:
- step: each
  loop: {in: "{{ range(700) | list }}", iterator: n}
  tool: {kind: noop, args: {}}
"""
GATED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: gated, path: examples/gated}
workload: {gate: ""}
workflow:
- step: start
  tool:
    kind: python
    args: {gate: "{{ workload.gate }}"}
    code: |
      import pathlib, time
      def main(gate):
          pathlib.Path(gate + ".reached").touch()
          while not pathlib.Path(gate).exists():
              time.sleep(0.05)
          return 42
"""
"""Its task ends when somebody makes the file `gate`."""
TABLES = {
    "execution": "x, id, started_at, status, path, playbook, namespace, parent, root, labels, priority, fair_key,"
    " next_wake, ended_at, expires_at, forked_from, served",
    "event": "x, seq, ts, kind, enc, v, body, checksum",
    "start": "key, x",
    "playbook": "hash, document, checksum",
    "inbox": "x, body",
    "timer": "x, key, due",
    "outbox": "x, key, body",
    "ready": "x, key, pool, kinds, priority",
    "lease": "x, key, session, fence",
    "credential": "name, kind, key_id, wrapped_key, body, created_at, updated_at",
    "blob": "name, data",
    "catalog": "path, version, hash, label, dialect, source, canonical, created_at, created_by",
    "catalog_number": "path, version",
    "api_token": "hash, name, role, created_at, created_by, expires_at, revoked_at",
    "audit": "id, at, by, role, action, target, address, status",
}
"""All columns but numbers that each store gives itself."""


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """A store that is not there yet."""
    return postgres.dsn(schema=f"copy_{next(_numbers)}")


def file_url(path: Path) -> str:
    return f"sqlite:///{path}"


def copy(cwd: Path, source: str, target: str, code: int = 0) -> Any:
    done = run("store", "copy", source, target, "-o", "json", cwd=cwd)
    assert done.code == code, done.err + done.out
    return done.json


def table_rows(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    with sqlite3.connect(file) as connection:
        return {
            table: sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)  # noqa: S608 - both are of this file
            for table, columns in TABLES.items()
        }


def check(cwd: Path, store: str) -> str:
    done = run("store", "check", "--store", store, cwd=cwd)
    assert done.code == 0, done.out
    return done.out


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        pass


def with_store(url: str, work: Callable[[Store], Any]) -> Any:
    async def play() -> Any:
        store = open_store(url)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(play())


def start(client: Client, path: str, **workload: object) -> str:
    return client.start(StartExecution(path=path, workload=dict(workload))).execution_id


class UsedStore:
    """What a server left that was killed: executions of all kinds, one at work and one that waits."""

    def __init__(self, folder: Path) -> None:
        self.gate = folder / "gate"
        with server_process(folder, env={"NOETL_RESULT_STORE": "store:"}) as server:
            self.home = server.home
            self._use(server)
            until((folder / "gate.reached").exists)
            kill(server)
        done = run(
            *("credential", "set", "api", "--kind", "bearer", "--field", "token=secret-token-1"),
            *("--home", str(self.home)),
            cwd=folder,
        )
        assert done.code == 0, done.err
        with_store(self.url, self._put_what_no_server_does)

    def _use(self, server: ServerProcess) -> None:
        client = server.client
        for text in (GREET, PARENT, WAITING, LARGE, GATED, GREET.replace("hello", "hi"), GREET):
            client.register(text)
        client.wait(start(client, "examples/parent"))
        client.wait(start(client, "examples/large"))
        self.keyed = client.start(
            StartExecution(path="examples/greet", workload={"name": "Ü"}, idempotency_key="once")
        ).execution_id
        client.wait(self.keyed)
        self.waiting = start(client, "examples/waiting")
        self.at_work = start(client, "examples/gated", gate=str(self.gate))

    async def _put_what_no_server_does(self, store: Store) -> None:
        await store.send(self.waiting, b"{}")
        [greet] = [entry for entry in await store.catalog_versions("examples/greet") if entry.version == 2]
        assert await store.delete_catalog_entries(greet.path, greet.version) == []
        for number in (1, 2):
            token = ApiToken("ci", f"hash-{number}", "viewer", number * 10, "ada", 0, 0)
            assert await store.put_api_token(token)
            await store.revoke_api_token("ci", number * 10 + 5)

    @property
    def file(self) -> Path:
        return self.home / "store.db"

    @property
    def url(self) -> str:
        return file_url(self.file)


@pytest.fixture
def used(tmp_path: Path) -> UsedStore:
    return UsedStore(tmp_path)


def test_there_and_back_is_the_same_row_for_row_and_what_lives_goes_on_at_a_server(
    tmp_path: Path, url: str, used: UsedStore
) -> None:
    before = table_rows(used.file)
    assert {table for table, rows in before.items() if not rows} <= {"outbox", "ready", "timer"}
    assert len(before["lease"]) == 1
    there = copy(tmp_path, used.url, url)
    assert "correct" not in json.dumps(there)
    assert (there["executions"], there["events"]) == (len(before["execution"]), len(before["event"]))
    assert (there["credentials"], there["tokens"]) == (1, len(before["api_token"]))
    assert (there["results"], there["audit"]) == (len(before["blob"]), len(before["audit"]))
    assert (there["commands"], there["skipped"]) == (1, 0)
    again = copy(tmp_path, used.url, url)
    assert {name: number for name, number in again.items() if isinstance(number, int) and number} == {
        "skipped": there["executions"]
    }
    back = tmp_path / "back.db"
    assert copy(tmp_path, url, file_url(back))["events"] == there["events"]
    assert table_rows(back) == before
    assert table_rows(used.file) == before
    assert "0 problems" in check(tmp_path, url)
    assert "0 problems" in check(tmp_path, file_url(back))
    used.gate.touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with server_process(elsewhere, "--store", url) as server:
        assert server.client.wait(used.at_work).result == 42
        done = run("executions", "signal", used.waiting, "go", "--store", url, cwd=elsewhere)
        assert done.code == 0, done.err
        assert server.client.wait(used.waiting).status == "completed"
        same = StartExecution(path="examples/greet", workload={"name": "Ü"}, idempotency_key="once")
        assert server.client.start(same).execution_id == used.keyed
    further = copy(tmp_path, url, file_url(back))
    assert (further["executions"], further["skipped"]) == (2, there["executions"] - 2)
    assert "0 problems" in check(tmp_path, file_url(back))
    newer = copy(tmp_path, used.url, url)
    assert (newer["executions"], newer["skipped"]) == (0, there["executions"])


def test_a_run_that_was_killed_goes_on_in_the_other_store(tmp_path: Path, url: str) -> None:
    (tmp_path / "gated.yaml").write_text(GATED)
    gate = tmp_path / "gate"
    process = subprocess.Popen(
        command("run", "gated.yaml", "--set", f"gate={gate}", "-q"), cwd=tmp_path, env=environment(tmp_path)
    )
    with process:
        until((tmp_path / "gate.reached").exists)
        source = file_url(tmp_path / ".noetl" / "store.db")
        refused = run("store", "copy", source, url, cwd=tmp_path)
        assert refused.code == 3
        assert f"is run by process {process.pid}" in refused.err
        process.kill()
    assert copy(tmp_path, source, url)["executions"] == 1
    gate.touch()
    [listed] = run("executions", "list", "-o", "json", cwd=tmp_path).json["executions"]
    name = listed["execution_id"]
    done = run("run", "--resume", name, "--store", url, "-o", "json", cwd=tmp_path)
    assert (done.code, done.json["result"]) == (0, 42), done.err
    assert copy(tmp_path, url, source)["executions"] == 1
    assert run("executions", "result", name, "-o", "json", cwd=tmp_path).json["result"] == 42


def count_executions(url: str) -> int:
    dsn, _, schema = url.rpartition("&schema=")
    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            row = connection.execute(f"SELECT count(*) FROM {schema}.execution").fetchone()  # noqa: S608 - likewise
        except psycopg.errors.UndefinedTable:
            return 0
        return int(row[0]) if row else 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_copy_that_is_killed_or_interrupted_goes_on_where_it_was(
    tmp_path: Path, url: str, number: signal.Signals
) -> None:
    source = file_url(tmp_path / "runs.db")
    total = 60
    for _ in range(total):
        assert noetl.run(VALID, store=source).status == "completed"
    process = subprocess.Popen(
        command("store", "copy", source, url),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        until(lambda: count_executions(url) >= 5 or process.poll() is not None)
        process.send_signal(number)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (
        (1, "\nnoetl: interrupted\n") if number == signal.SIGINT else (-9, "")
    )
    reached = count_executions(url)
    assert 5 <= reached < total
    (tmp_path / "greet.yaml").write_text(VALID)
    for words in (["server", "start", "--port", "0", "--home", "h"], ["run", "greet.yaml"]):
        refused = run(*words, "--store", url, cwd=tmp_path)
        assert refused.code == 3
        assert f"is an unfinished copy of {source}" in refused.err
        assert "`noetl store copy FROM TO` goes on with it" in refused.err
    onward = run("store", "copy", url, file_url(tmp_path / "onward.db"), cwd=tmp_path)
    assert (onward.code, "is an unfinished copy" in onward.err) == (3, True)
    rest = copy(tmp_path, source, url)
    assert rest["executions"] + rest["skipped"] == total
    assert reached - 1 <= rest["skipped"] <= total - 1
    assert f"{total} executions, 0 problems" in check(tmp_path, url)
    back = tmp_path / "back.db"
    copy(tmp_path, url, file_url(back))
    assert table_rows(back) == table_rows(tmp_path / "runs.db")
    assert run("run", "greet.yaml", "--store", url, cwd=tmp_path).code == 0


def put_beginning(
    source: str, target: str, name: str, rows: int, *, body: bytes = b"", more: Effects = NO_EFFECTS
) -> None:
    """The first rows of an execution, of which the last may have another body, and `more` effects."""

    async def play() -> None:
        first, second = open_store(source), open_store(target)
        try:
            history = await first.read(name, limit=rows)
            effects = reduce(merge_effects, [*map(effects_of_row, history), more])
            history[-1] = replace(history[-1], last=True, body=body or history[-1].body)
            append = Append(execution_id=name, expected_version=0, rows=history, effects=effects)
            assert await second.commit([append]) == [Committed(rows)]
        finally:
            await first.close()
            await second.close()

    asyncio.run(play())


def cuts(store: str, name: str) -> list[int]:
    rows: list[Row] = with_store(store, lambda store: store.read(name, limit=10_000))
    return [row.seq for row in rows if row.last]


def test_what_differs_is_an_error_that_names_execution_and_event(tmp_path: Path) -> None:
    source, target = (file_url(tmp_path / name) for name in ("a.db", "b.db"))
    name = noetl.run(VALID, store=source).execution_id
    end = cuts(source, name)[0]
    put_beginning(source, target, name, end, body=b'{"x":1}')
    done = run("store", "copy", source, target, cwd=tmp_path)
    assert done.code == 3
    assert f"execution {name} differs from event {end} on" in done.err


def test_a_long_history_is_copied_in_parts_and_a_part_is_completed(tmp_path: Path, url: str) -> None:
    source = file_url(tmp_path / "a.db")
    name = noetl.run(LONG, store=source).execution_id
    ends = cuts(source, name)
    assert ends[-1] > 2 * PAGE
    begun = next(end for end in ends if end > PAGE)
    put_beginning(source, url, name, begun)
    rest = copy(tmp_path, source, url)
    assert (rest["executions"], rest["events"]) == (1, ends[-1] - begun)
    assert "1 execution, 0 problems" in check(tmp_path, url)
    assert cuts(url, name) == ends
    back = tmp_path / "back.db"
    assert copy(tmp_path, url, file_url(back))["events"] == ends[-1]
    assert table_rows(back) == table_rows(tmp_path / "a.db")


@pytest.mark.parametrize(
    ("source", "target", "code", "message"),
    [
        ("{file}", "{file}", 2, "are the same store"),
        ("{file}", "sqlite:///./a.db", 2, "are the same store"),
        ("{url}", "{url}", 2, "are the same store"),
        ("mysql://host/db", "{file}", 2, "is not the URL of a store"),
        ("{file}", "mysql://host/db", 2, "is not the URL of a store"),
        ("{file}", "sqlite:///:memory:", 2, "is memory"),
        ("sqlite:///missing.db", "{url}", 2, "there is no store at sqlite:///missing.db"),
        ("{url}", "sqlite:///new.db", 2, "there is no store at postgresql://"),
        ("{file}", "{newer}", 3, "newer NoETL"),
        ("{newer}", "sqlite:///new.db", 3, "newer NoETL"),
        ("{file}", "postgresql://nowhere.invalid:1/db", 3, "nowhere.invalid"),
    ],
)
def test_what_cannot_be_copied_is_refused_and_nothing_is_made(
    tmp_path: Path, url: str, *, source: str, target: str, code: int, message: str
) -> None:
    newer = file_url(tmp_path / "newer.db")
    for store in (file_url(tmp_path / "a.db"), newer):
        with_store(store, lambda store: store.feed_end())
    with sqlite3.connect(tmp_path / "newer.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    names = {"file": file_url(tmp_path / "a.db"), "url": url, "newer": newer}
    done = run("store", "copy", source.format(**names), target.format(**names), cwd=tmp_path)
    assert done.code == code, done.err
    assert message in done.err
    assert "correct" not in done.err
    assert not (tmp_path / "missing.db").exists()


def test_a_store_that_is_served_is_neither_copied_nor_copied_into(tmp_path: Path, url: str) -> None:
    other = file_url(tmp_path / "other.db")
    noetl.run(VALID, store=other)
    for words, hint in (((), "noetl server stop"), (("--store", url), "stop all servers on it")):
        folder = tmp_path / f"server-{len(words)}"
        folder.mkdir()
        with server_process(folder, *words) as server:
            served = url if words else file_url(server.home / "store.db")
            for pair in ((served, other), (other, served)):
                done = run("store", "copy", *pair, cwd=tmp_path)
                assert (done.code, hint in done.err) == (3, True), done.err


def test_results_in_files_stay_where_they_are_and_are_found_there(tmp_path: Path, url: str) -> None:
    (tmp_path / "large.yaml").write_text(LARGE)
    name = run("run", "large.yaml", "-o", "json", cwd=tmp_path).json["execution_id"]
    done = run("store", "copy", file_url(tmp_path / ".noetl" / "store.db"), url, cwd=tmp_path)
    assert (done.code, "of 1 execution" in done.out) == (0, True), done.err
    setting = re.search(r"(NOETL_RESULT_STORE)=(\S+)", done.err)
    assert setting is not None
    words = ("executions", "result", name, "--store", url, "-o", "json")
    assert run(*words, cwd=tmp_path).code != 0
    answer = run(*words, cwd=tmp_path, env={setting[1]: setting[2]})
    assert (answer.code, "abcdefghij" in answer.out) == (0, True), answer.err


def test_logs_are_missing_in_another_home_only(tmp_path: Path, url: str) -> None:
    (tmp_path / "words.yaml").write_text(GREET)
    assert run("run", "words.yaml", cwd=tmp_path).code == 0
    home = tmp_path / ".noetl"
    for target, missing in ((url, []), (file_url(home / "copy.db"), [str(home / "logs")])):
        assert copy(tmp_path, file_url(home / "store.db"), target)["not_copied"] == missing


def test_what_tasks_printed_comes_along_into_a_database(tmp_path: Path, url: str) -> None:
    (tmp_path / "words.yaml").write_text(GREET)
    name = run("run", "words.yaml", "-o", "json", cwd=tmp_path).json["execution_id"]
    (tmp_path / ".noetl" / "logs" / "of-nobody.jsonl").touch()
    file = file_url(tmp_path / ".noetl" / "store.db")
    assert [copy(tmp_path, file, url)["logs"] for _ in range(2)] == [1, 0]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (tmp_path, elsewhere):
        lines = run("executions", "logs", name, "--store", url, "-o", "json", cwd=folder).json["lines"]
        assert [entry["text"] for entry in lines] == ["hello World"], "once, also beside the file"


def test_a_terminal_shows_how_far_it_is(tmp_path: Path) -> None:
    for _ in range(2):
        noetl.run(VALID, store=file_url(tmp_path / "a.db"))
    words = ("store", "copy", file_url(tmp_path / "a.db"), file_url(tmp_path / "b.db"))
    displayed = run_on_terminal(*words, cwd=tmp_path, terminal="stderr")
    assert (displayed.code, "2 of 2 executions" in displayed.err) == (0, True)


def test_rows_of_a_server_come_along_and_take_the_place_of_older_ones(tmp_path: Path, url: str) -> None:
    first, source = (file_url(tmp_path / name) for name in ("first.db", "a.db"))
    name = noetl.run(VALID, store=first).execution_id
    end = cuts(first, name)[-1]
    document = with_store(first, lambda store: store.playbooks())[0]
    body = with_store(first, lambda store: store.playbook(document))
    with_store(source, lambda store: store.put_playbook(document, body))
    rows = Effects(
        timers={"t": 7},
        ready={"r2": ReadyRun("pool", ("python", "http"), 5), "r1": ReadyRun("pool", (), 0)},
        leases={"l": LeasedRun("session", 3)},
        outbox={"m2": b"2", "m1": b"1"},
        served=True,
    )
    put_beginning(first, source, name, end, more=rows)
    assert copy(tmp_path, source, url)["executions"] == 1
    there = with_store(url, lambda store: store.rows_of(name))
    assert there == rows
    assert (list(there.ready), list(there.outbox)) == (["r2", "r1"], ["m2", "m1"])
    older = Effects(timers={"old": 1}, ready={"r1": ReadyRun("other", (), 0)}, served=False)
    assert with_store(url, lambda store: store.put_rows(name, end, older))
    assert copy(tmp_path, source, url)["skipped"] == 1
    assert with_store(url, lambda store: store.rows_of(name)) == rows


@pytest.mark.parametrize("damaged", ["a.db", "b.db"])
def test_bytes_that_are_not_those_that_were_written_are_found(tmp_path: Path, damaged: str) -> None:
    source, target = (file_url(tmp_path / name) for name in ("a.db", "b.db"))
    name = noetl.run(VALID, store=source).execution_id
    with_store(target, lambda store: store.feed_end())
    with sqlite3.connect(tmp_path / damaged) as connection:
        if damaged == "a.db":
            connection.execute("UPDATE event SET body = x'7b2278223a317d' WHERE seq = 3")
        else:  # a disk that writes something else
            connection.execute(
                "CREATE TRIGGER wrong AFTER INSERT ON event WHEN new.seq = 3"
                " BEGIN UPDATE event SET body = x'7b2278223a317d' WHERE pos = new.pos; END"
            )
    done = run("store", "copy", source, target, cwd=tmp_path)
    assert done.code == 3, done.out
    assert name in done.err


def test_what_both_stores_have_by_one_name_must_be_the_same(tmp_path: Path) -> None:
    urls = source, target = [file_url(tmp_path / name) for name in ("a.db", "b.db")]

    def put(method: str, *arguments: Any) -> Callable[[Store], Any]:
        return lambda store: getattr(store, method)(*arguments)

    def refusal() -> str:
        done = run("store", "copy", source, target, cwd=tmp_path)
        assert done.code == 3, done.out
        return done.err

    for number, url in enumerate(urls):
        with_store(url, put("put_blob", "r", b"%d" % number))
    assert "the result r is another one there" in refusal()
    with_store(target, lambda store: store.delete_blobs(["r"]))
    for number, url in enumerate(urls):
        token = ApiToken("ci", f"hash-{number}", "viewer", 1, "ada", 0, 0)
        with_store(url, put("put_api_token", token))
    assert "the token `ci` is another one there" in refusal()
    with_store(target, lambda store: store.revoke_api_token("ci", 1))
    for number, url in enumerate(urls):
        row = SealedCredential("api", "bearer", f"key-{number}", b"", b"", 1, 1)
        with_store(url, put("put_credential", row))
    assert "the credential `api` is another one there" in refusal()
    with_store(target, lambda store: store.delete_credential("api"))
    other = SealedCredential("other", "bearer", "key-1", b"", b"", 1, 1)
    with_store(target, lambda store: store.put_credential(other))
    assert "sealed with another key" in refusal()
    with_store(target, lambda store: store.delete_credential("other"))
    assert copy(tmp_path, source, target)["credentials"] == 1
    with_store(source, lambda store: store.revoke_api_token("ci", 9))
    copy(tmp_path, source, target)
    token = with_store(target, lambda store: store.api_token("hash-0"))
    assert token.revoked_at == 9
