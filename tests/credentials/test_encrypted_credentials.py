"""Credentials at rest: what opens them, what does not, and how the key is replaced."""

import asyncio
import base64
import stat
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from noetl.ports.credentials import (
    CredentialError,
    CredentialUnknown,
    KeyWrong,
    SealedCredential,
    StoredCredential,
)
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import (
    EncryptionKey,
    KeyLocation,
    generate_key,
    parse_key,
    read_key_file,
    write_key_file,
)
from noetl.stores.credentials.envelope import rewrap_credential, seal_credential, unseal_credential
from noetl.stores.sqlite.store import SqliteStore
from tests.secrets.secret_search import SECRET, secret_forms_in

T = TypeVar("T")

DB = StoredCredential("db", "postgres_credential", {"host": "h", "password": SECRET})
API = StoredCredential("api", "bearer", {"token": "another secret"})


class SealedStoreFolder:
    """A store and its key, opened anew each time."""

    def __init__(self, folder: Path, text: str = "") -> None:
        self.file = folder / "key"
        self.store = folder / "store.db"
        self.text = text

    def do(self, work: Callable[[EncryptedCredentials], Awaitable[T]]) -> T:
        async def use_credentials() -> T:
            store = SqliteStore.at(self.store)
            try:
                return await work(EncryptedCredentials(store, KeyLocation(self.text, self.file)))
            finally:
                await store.close()

        return asyncio.run(use_credentials())

    def find(self, name: str) -> StoredCredential | None:
        return self.do(lambda credentials: credentials.find(name))

    def change(self, *names: str, **columns: Any) -> None:
        """Writes into rows as somebody would who has the file."""

        async def rewrite_rows() -> None:
            store = SqliteStore.at(self.store)
            rows = [(await store.credential(name) or pytest.fail(name)) for name in names]
            for row in rows:
                await store.delete_credential(row.name)
            for row in rows:
                await store.put_credential(row._replace(**columns))
            await store.close()

        asyncio.run(rewrite_rows())


@pytest.fixture
def sealed_store(tmp_path: Path) -> SealedStoreFolder:
    new_store = SealedStoreFolder(tmp_path)
    new_store.do(lambda credentials: credentials.set(DB))
    new_store.do(lambda credentials: credentials.set(API))
    return new_store


def test_what_was_kept_is_found_and_the_file_does_not_tell_it(sealed_store: SealedStoreFolder) -> None:
    assert sealed_store.find("db") == DB
    assert sealed_store.find("absent") is None
    assert [row.name for row in sealed_store.do(lambda credentials: credentials.list())] == ["api", "db"]
    for path in sealed_store.store.parent.iterdir():
        assert not secret_forms_in(path.read_bytes(), (SECRET, "another secret", "password"))


def test_the_key_is_made_once_and_for_its_owner_alone(sealed_store: SealedStoreFolder) -> None:
    key = sealed_store.file.read_text()
    assert stat.S_IMODE(sealed_store.file.stat().st_mode) == 0o600
    sealed_store.do(lambda credentials: credentials.set(DB))
    assert sealed_store.file.read_text() == key
    assert len(base64.b64decode(key)) == 32


def test_one_is_replaced_and_deleted(sealed_store: SealedStoreFolder) -> None:
    first, _ = sealed_store.do(lambda credentials: credentials.show("db"))
    sealed_store.do(lambda credentials: credentials.set(StoredCredential("db", "static", {"value": 1})))
    then, opened = sealed_store.do(lambda credentials: credentials.show("db"))
    assert opened.fields == {"value": 1}
    assert then.kind == "static"
    assert then.created_at == first.created_at
    assert then.updated_at > first.updated_at
    sealed_store.do(lambda credentials: credentials.delete("db"))
    for work in (lambda credentials: credentials.delete("db"), lambda credentials: credentials.show("db")):
        with pytest.raises(CredentialUnknown, match="there is no credential `db`"):
            sealed_store.do(work)


def test_another_key_opens_nothing_and_adds_nothing(sealed_store: SealedStoreFolder) -> None:
    other = SealedStoreFolder(sealed_store.store.parent, base64.b64encode(bytes(32)).decode())
    with pytest.raises(KeyWrong, match="`db` was sealed with another key than the one in NOETL_KEY"):
        other.find("db")
    with pytest.raises(KeyWrong, match="was sealed with another key"):
        other.do(lambda credentials: credentials.set(DB))
    assert sealed_store.find("db") == DB


def test_without_the_key_that_is_said(sealed_store: SealedStoreFolder) -> None:
    sealed_store.file.unlink()
    with pytest.raises(KeyWrong, match="the key that seals them is not there"):
        sealed_store.find("db")
    with pytest.raises(KeyWrong, match="the key that seals them is not there"):
        sealed_store.do(lambda credentials: credentials.set(DB))
    assert not sealed_store.file.exists()


@pytest.mark.parametrize(
    "columns", [{"body": b"x" * 40}, {"body": b""}, {"wrapped_key": b"y" * 60}, {"kind": "other"}]
)
def test_a_damaged_row_is_told(sealed_store: SealedStoreFolder, columns: dict[str, Any]) -> None:
    sealed_store.change("db", **columns)
    with pytest.raises(CredentialError, match="the stored credential `db` is damaged") as caught:
        sealed_store.find("db")
    assert not isinstance(caught.value, KeyWrong)
    assert sealed_store.find("api") == API


def test_a_row_cannot_take_the_place_of_another(sealed_store: SealedStoreFolder) -> None:
    sealed_store.change("db", name="api2")
    with pytest.raises(CredentialError, match="damaged"):
        sealed_store.find("api2")


def test_each_has_a_data_key_of_its_own() -> None:
    key = generate_key()
    first, second = seal_credential(DB, key, 1), seal_credential(DB, key, 1)
    assert first.wrapped_key != second.wrapped_key
    assert first.body != second.body
    assert unseal_credential(first, key) == unseal_credential(second, key) == DB


def test_a_new_key_takes_the_place_of_the_old_one(sealed_store: SealedStoreFolder) -> None:
    old = sealed_store.file.read_text()
    before, _ = sealed_store.do(lambda credentials: credentials.show("db"))
    assert sealed_store.do(lambda credentials: credentials.rotate()) == 2
    after, opened = sealed_store.do(lambda credentials: credentials.show("db"))
    assert opened == DB
    assert after.body == before.body
    assert after.key_id != before.key_id
    assert sealed_store.file.read_text() != old
    assert sorted(
        path.name for path in sealed_store.file.parent.iterdir() if path.name.startswith("key")
    ) == ["key"]
    assert stat.S_IMODE(sealed_store.file.stat().st_mode) == 0o600


def test_a_key_that_is_given_is_used_from_then_on(sealed_store: SealedStoreFolder) -> None:
    new = generate_key()
    assert sealed_store.do(lambda credentials: credentials.rotate(new)) == 2
    with pytest.raises(KeyWrong):
        sealed_store.find("db")
    assert SealedStoreFolder(sealed_store.store.parent, new.data.hex()).find("db") == DB


def test_a_key_in_the_environment_is_not_replaced(tmp_path: Path) -> None:
    sealed_store = SealedStoreFolder(tmp_path, generate_key().data.hex())
    sealed_store.do(lambda credentials: credentials.set(DB))
    with pytest.raises(KeyWrong, match="the key stands in NOETL_KEY") as caught:
        sealed_store.do(lambda credentials: credentials.rotate())
    assert "--new-key-file" in caught.value.hint
    assert not sealed_store.file.exists()


class Breaking:
    """A store that fails before or after it has wrapped the keys anew."""

    def __init__(self, store: SqliteStore, *, written: bool) -> None:
        self._store = store
        self._written = written
        self.credentials = store.credentials
        self.credential = store.credential
        self.put_credential = store.put_credential
        self.delete_credential = store.delete_credential

    async def rewrap_credentials(
        self, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
    ) -> bool:
        if self._written:
            await self._store.rewrap_credentials(before, after)
        raise OSError("the machine lost its power")


@pytest.mark.parametrize("written", [False, True])
def test_whenever_it_is_interrupted_the_key_that_is_needed_is_there(
    sealed_store: SealedStoreFolder, written: bool
) -> None:
    async def interrupt_rotation() -> None:
        store = SqliteStore.at(sealed_store.store)
        credentials = EncryptedCredentials(
            Breaking(store, written=written), KeyLocation("", sealed_store.file)
        )
        with pytest.raises(OSError, match="power"):
            await credentials.rotate()
        await store.close()

    asyncio.run(interrupt_rotation())
    assert sealed_store.find("db") == DB
    sealed_store.do(lambda credentials: credentials.set(StoredCredential("third", "static", {"value": "v"})))
    assert sealed_store.do(lambda credentials: credentials.rotate()) == 3
    assert [sealed_store.find(name) for name in ("db", "api")] == [DB, API]
    assert not sealed_store.file.with_name("key.new").exists()


def test_a_change_meanwhile_stops_the_replacement(sealed_store: SealedStoreFolder) -> None:
    class Slow(Breaking):
        async def rewrap_credentials(
            self, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
        ) -> bool:
            await self._store.delete_credential("api")
            return await self._store.rewrap_credentials(before, after)

    async def rotate() -> None:
        store = SqliteStore.at(sealed_store.store)
        with pytest.raises(CredentialError, match="changed in this very moment"):
            await EncryptedCredentials(Slow(store, written=True), KeyLocation("", sealed_store.file)).rotate()
        await store.close()

    asyncio.run(rotate())
    assert sealed_store.find("db") == DB


@pytest.mark.parametrize("text", ["", "short", "z" * 64, base64.b64encode(bytes(31)).decode(), "ü"])
def test_what_is_no_key_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(text)
    with pytest.raises(KeyWrong, match="holds no key") as caught:
        read_key_file(tmp_path / "key")
    assert "32 random bytes" in caught.value.hint


def test_keys_are_read_in_every_common_form(tmp_path: Path) -> None:
    key = EncryptionKey(bytes(range(224, 256)), "")
    for text in (
        base64.b64encode(key.data).decode(),
        base64.urlsafe_b64encode(key.data).decode().rstrip("="),
        key.data.hex() + "\n",
    ):
        assert parse_key(text, "").data == key.data
    assert write_key_file(key, tmp_path / "key")
    assert not write_key_file(generate_key(), tmp_path / "key")
    read_back = read_key_file(tmp_path / "key")
    assert read_back is not None
    assert read_back.id == key.id
    assert str(key.data) not in repr(key)
    assert (
        unseal_credential(rewrap_credential(seal_credential(DB, key, 1), key, new := generate_key()), new)
        == DB
    )
