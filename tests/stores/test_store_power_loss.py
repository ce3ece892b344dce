"""What stores acknowledge is on the disk: the power goes before each sync, and they are opened again."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from noetl.ports.credentials import SealedCredential, StoredCredential
from noetl.ports.store import Effects, Snapshot
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import KeyLocation
from noetl.stores.home_folder import Home
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.stores.sqlite import writer
from noetl.stores.sqlite.store import SqliteStore
from noetl.stores.sqlite.writer import Inline
from noetl.testing.crash.power_loss import record_losses
from noetl.testing.results_suite import EXECUTION, OTHER_EXECUTION, result_key_of
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted, effects_in_row, new_append

Promises: TypeAlias = dict[str, Any]
"""What was acknowledged so far, by what to ask for."""
CREDENTIAL = SealedCredential("api", "bearer", "k1", b"wrapped", b"sealed", 1, 2)


def lose_power(
    folder: Path,
    use: Callable[[Promises], Coroutine[Any, Any, None]],
    read: Callable[[Promises], Coroutine[Any, Any, Promises]],
) -> None:
    """`use` says what it was promised; `read`, given that, what is there on each disk that may be left."""
    promises: Promises = {}
    with record_losses(folder, promises.copy, disks=3) as losses:
        asyncio.run(use(promises))
    assert len(losses) > 5
    for number, loss in enumerate(losses, 1):
        loss.image.restore(folder)
        contents = asyncio.run(read(loss.seen))
        assert contents == loss.seen, f"loss {number} of {len(losses)}"


@pytest.mark.parametrize("inline", ["commits", "nothing"])
def test_whatever_a_store_acknowledged_survives_the_loss_of_power(
    memory_folder: Path, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 8)
    monkeypatch.setattr(writer, "LOG_ROOM", 64 << 10)
    home = Home(memory_folder / "folder" / ".noetl")

    async def use(promises: Promises) -> None:
        home.make()
        store = SqliteStore.at(home.store, inline=inline)
        await store.put_playbook("h1", b"document")
        promises["playbook"] = b"document"
        await begin_execution(store, "doomed")
        for version in range(6):
            effects = Effects(
                status=f"s{version}", timers={"t": version}, outbox={f"m{version}": b"x" * 9_000}
            )
            await commit_accepted(store, new_append("a", version, effects))
            promises["version"] = version + 1
        await store.put_snapshot("a", Snapshot(3, 1, b"state"))
        promises["snapshot"] = b"state"
        await store.send("a", b"command")
        promises["inbox"] = [b"command"]
        assert await store.put_credential(CREDENTIAL)
        promises["credential"] = CREDENTIAL
        await store.put_blob("results/1", b"value" * 4_000)
        promises["blob"] = b"value" * 4_000
        await store.delete("doomed")
        promises["deleted"] = True
        await store.close()

    async def read(promises: Promises) -> Promises:
        home.make()
        store = SqliteStore.at(home.store, inline=inline)
        assert await store.check(effects_in_row) == []
        record = await store.execution("a")
        snapshot = await store.snapshot("a", state_format=1)
        contents = {
            "playbook": await store.playbook("h1"),
            "version": min(record.version if record else 0, promises.get("version", 0)),
            "snapshot": snapshot.body if snapshot else None,
            "inbox": [message.body for message in await store.inbox(["a"])],
            "credential": await store.credential("api"),
            "blob": await store.blob("results/1"),
            "deleted": await store.execution("doomed") is None,
        }
        await commit_accepted(store, new_append("b", 0))
        await store.close()
        return {name: contents[name] for name in promises}

    lose_power(memory_folder, use, read)


def test_whatever_a_folder_of_results_acknowledged_survives_the_loss_of_power(memory_folder: Path) -> None:
    folder = memory_folder / "home" / "results"
    value, moved, raced, first, second = (
        text * 400 for text in (b"value ", b"moved ", b"raced ", b"first ", b"second ")
    )

    async def keep(objects: ResultStoreObjects, data: bytes) -> Any:
        async with objects.draft() as draft:
            draft.path.write_bytes(data)
            return await draft.keep("text/plain")

    async def use(promises: Promises) -> None:
        results = FileResults(folder)
        objects = ResultStoreObjects(results, EXECUTION)
        key, copy = result_key_of(EXECUTION, value), result_key_of(OTHER_EXECUTION, value)
        await results.put(key, value)
        promises[key] = value
        await results.copy(key, copy)
        promises[copy] = value
        promises[(await keep(objects, moved))["key"]] = moved
        # Another process has just given it its name, and is not there yet to flush that.
        with (folder / EXECUTION / ".raced").open("wb") as file:
            file.write(raced)
            file.flush()
            os.fsync(file.fileno())
        (folder / EXECUTION / ".raced").rename(folder / result_key_of(EXECUTION, raced))
        await results.put(result_key_of(EXECUTION, raced), raced)
        promises[result_key_of(EXECUTION, raced)] = raced
        for data in (first, second):
            reference = await keep(objects, data)
            promises.pop("artifact", None)  # while it is replaced it may be the one or the other
            await objects.publish("name", reference)
            promises["artifact"] = data
        del promises["artifact"]
        await objects.withdraw("name")
        promises["artifact"] = None

    async def read(promises: Promises) -> Promises:
        results = FileResults(folder)
        # A third execution asks: what the first two have is looked at as it is.
        objects = ResultStoreObjects(results, EXECUTION.replace("1", "3"))
        artifact = await objects.published("name")
        body = await results.get(artifact["key"]) if artifact else None
        assert body in (first, second, None)
        for execution_id in (EXECUTION, OTHER_EXECUTION):
            for key in await results.keys(execution_id):
                await results.get(key)
        keys = [name for name in promises if name != "artifact"]
        return {key: await results.get(key) for key in keys} | (
            {"artifact": body} if "artifact" in promises else {}
        )

    lose_power(memory_folder, use, read)


def test_credentials_can_be_opened_after_the_loss_of_power(memory_folder: Path) -> None:
    """At every moment a key that opens them is on the disk, also while it is replaced."""
    home = Home(memory_folder / ".noetl")
    secret = StoredCredential("api", "bearer", {"token": "secret"})

    async def use(promises: Promises) -> None:
        home.make()
        store = SqliteStore.at(home.store)
        credentials = EncryptedCredentials(store, KeyLocation(file=home.key))
        await credentials.set(secret)
        promises["api"] = secret
        for _ in range(2):
            await credentials.rotate()
        await store.close()

    async def read(promises: Promises) -> Promises:
        home.make()
        store = SqliteStore.at(home.store)
        credentials = EncryptedCredentials(store, KeyLocation(file=home.key))
        contents = {name: await credentials.find(name) for name in promises}
        await credentials.set(secret)
        await store.close()
        return contents

    lose_power(memory_folder, use, read)
