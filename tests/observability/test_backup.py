"""A backup of a server that works, and a server that goes on from it."""

import asyncio
import json
import subprocess
import threading
from pathlib import Path

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError, ServerUnreachable
from noetl.ports.admin_api import TokenRequest
from noetl.ports.http_api import StartExecution
from noetl.ports.store import StoreError
from noetl.stores.api_tokens import make_token
from noetl.stores.home_backup import back_up_home
from noetl.stores.home_folder import Home
from noetl.stores.sqlite.store import SqliteStore
from tests.cli.command_line import run
from tests.server.server_process import GREET, LARGE, WAITING, kill, server_process


def unpack(file: Path, home: Path) -> None:
    """As the page about backups says."""
    home.mkdir(mode=0o700)
    subprocess.run(["tar", "-xf", file, "-C", home], check=True)


class Load(threading.Thread):
    """Starts executions until it is stopped, or the server is gone."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._stopped = threading.Event()
        self.started: list[str] = []

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.started.append(self._client.start(StartExecution(path="examples/greet")).execution_id)
            except (ServerError, ServerUnreachable):
                return

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def test_a_server_goes_on_from_a_backup_that_was_made_while_another_worked(tmp_path: Path) -> None:
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "noetl.tar"
    first.mkdir()
    second.mkdir()
    with server_process(first) as server:
        client = server.client
        for text in (GREET, WAITING, LARGE):
            client.register(text)
        client.set_credential("door", "static", {"value": "sesame"})
        large = client.wait(client.start(StartExecution(path="examples/large")).execution_id)
        held = client.start(StartExecution(path="examples/waiting")).execution_id
        token = client.create_token("ci", "operator").token
        load = Load(client)
        load.start()
        greeted = client.wait(client.start(StartExecution(path="examples/greet")).execution_id)
        backup = run("store", "backup", str(file), "--home", str(server.home), "-o", "json", cwd=tmp_path)
        load.stop()
        assert (backup.code, backup.json["key"], backup.json["bytes"]) == (0, True, file.stat().st_size)
        assert backup.json["results"] >= 1
        assert (file.stat().st_mode & 0o777) == 0o600
        kill(server)
    unpack(file, second / "server-home")
    with server_process(second) as restored:
        client = Client(restored.url, token)
        assert client.show(greeted.execution_id).result == greeted.result
        client.signal(held, "go")
        assert client.wait(held).status == "completed"
        assert client.result(large.result) == restored.client.result(large.result)  # its bytes are there
        assert b"abcdefghij" in client.result(large.result)
        assert [line["text"] for line in client.logs(greeted.execution_id).lines] == ["hello World"]
        assert restored.client.credential("door").name == "door"  # which the key opens
        for item in client.list(limit=1_000).executions:
            assert client.wait(item.execution_id).status == "completed"
        assert restored.stop() == 0
    check = run("store", "check", "--home", str(second / "server-home"), "-o", "json", cwd=tmp_path)
    assert (check.code, check.json["problems"]) == (0, [])
    assert check.json["executions"] >= 3


def test_a_backup_overwrites_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    assert run("run", "greet.yaml", "--home", "h", cwd=tmp_path).code == 0
    (tmp_path / "there.tar").write_text("mine")
    refused = run("store", "backup", "there.tar", "--home", "h", "-o", "json", cwd=tmp_path)
    assert (refused.code, refused.json["error"]["code"]) == (2, "file")
    assert (tmp_path / "there.tar").read_text() == "mine"
    missing = run("store", "backup", "no/folder.tar", "--home", "h", "-o", "json", cwd=tmp_path)
    assert (missing.code, missing.json["error"]["code"]) == (3, "file")
    nothing = run("store", "backup", "b.tar", "--home", "other", "-o", "json", cwd=tmp_path)
    assert (nothing.code, nothing.json["error"]["code"]) == (2, "no-executions")
    assert {path.name for path in tmp_path.iterdir()} == {"greet.yaml", "there.tar", "h"}


def test_the_key_stays_out_of_a_backup_that_is_to_have_none(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    made = run("credential", "set", "door", "--home", "h", "--field", "value=open sesame", cwd=tmp_path)
    assert made.code == 0, made.err
    both = [tmp_path / "with.tar", tmp_path / "without.tar"]
    assert back_up_home(home, both[0], with_key=True).key
    assert not back_up_home(home, both[1], with_key=False).key
    names = [
        subprocess.run(["tar", "-tf", file], check=True, capture_output=True, text=True).stdout.split()
        for file in both
    ]
    assert set(names[0]) - set(names[1]) == {"key"}
    assert json.dumps(home.key.read_text()).strip('"')[:20].encode() not in both[1].read_bytes()


def test_what_is_only_in_the_log_of_the_store_is_in_the_backup(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    home.make()

    async def names(folder: Path) -> list[str]:
        store = SqliteStore.at(folder / "store.db")
        try:
            return [token.name for token in await store.api_tokens()]
        finally:
            await store.close()

    async def back_up() -> None:
        store = SqliteStore.at(home.store)
        try:
            assert await make_token(store, TokenRequest(name="late", role="viewer"), "test")
            back_up_home(home, tmp_path / "b.tar", with_key=True)
        finally:
            await store.close()

    asyncio.run(back_up())
    unpack(tmp_path / "b.tar", tmp_path / "again")
    assert asyncio.run(names(tmp_path / "again")) == ["late"]


def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    home.make()
    home.store.write_text("no database at all, however long it may be " * 100)
    with pytest.raises(StoreError):
        back_up_home(home, tmp_path / "b.tar", with_key=True)
    assert {path.name for path in tmp_path.iterdir()} == {"h"}
