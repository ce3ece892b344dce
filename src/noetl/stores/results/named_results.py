"""Several result stores as one: a key may begin with the name of the store that has it."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from uuid import uuid4

from noetl.ports.results import AccessGrant, GrantMethod, ResultError, ResultMissing, ResultStore, StoredBody
from noetl.stores.results.result_key import key_in_store, split_store_key


def store_names(results: ResultStore) -> frozenset[str]:
    """The names that playbooks may give."""
    return results.names if isinstance(results, NamedResults) else frozenset()


class NamedResults:
    """The engine's own store and those by name. See `noetl.ports.results.ResultStore`."""

    def __init__(
        self, own: ResultStore, named: Mapping[str, ResultStore], *, own_is_set: bool = False
    ) -> None:
        self._stores = {"": own, **named}
        self.own_is_set = own_is_set
        """Whether the settings name the engine's own, so that other machines may find it."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._stores) - {""}

    @property
    def stores(self) -> Mapping[str, ResultStore]:
        """By name; the engine's own has none."""
        return self._stores

    def locate(self, key: str) -> tuple[ResultStore, str]:
        """The store of a key, and the key as that store knows it. Raises ResultMissing."""
        name, bare_key = split_store_key(key)
        if name not in self._stores:
            raise ResultMissing(f"there is no result store `{name}` here", "name it in `result_stores`")
        return self._stores[name], bare_key

    async def put(self, key: str, data: bytes, compression: str = "none") -> None:
        store, key = self.locate(key)
        await store.put(key, data, compression)

    async def get(self, key: str) -> bytes:
        store, key = self.locate(key)
        return await store.get(key)

    async def read(self, key: str, start: int, end: int | None = None) -> bytes:
        store, key = self.locate(key)
        return await store.read(key, start, end)

    def scratch(self, execution_id: str) -> Path:
        return self._stores[""].scratch(execution_id)

    async def put_file(self, key: str, path: Path, compression: str = "none") -> None:
        store, key = self.locate(key)
        await store.put_file(key, path, compression)

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        store, key = self.locate(key)
        return store.local(key)

    async def copy(self, key: str, to: str) -> None:
        store, source_key = self.locate(key)
        target, target_key = self.locate(to)
        if store is target:
            await store.copy(source_key, target_key)
            return
        # Through a file: the stores know nothing of each other, and a body need not fit into memory.
        async with store.local(source_key) as path:
            copy = target.scratch(target_key.partition("/")[0]) / f".copy-{uuid4().hex}"
            await asyncio.to_thread(shutil.copyfile, path, copy)
            await target.put_file(target_key, copy)

    async def keys(self, execution_id: str) -> list[str]:
        return [
            key_in_store(name, key)
            for name, store in self._stores.items()
            for key in await store.keys(execution_id)
        ]

    async def owners(self) -> list[str]:
        return sorted({owner for store in self._stores.values() for owner in await store.owners()})

    async def bodies(self, execution_id: str) -> list[StoredBody]:
        return [
            body._replace(key=key_in_store(name, body.key))
            for name, store in self._stores.items()
            for body in await store.bodies(execution_id)
        ]

    async def remove(self, keys: Sequence[str]) -> None:
        for store_key in keys:
            store, key = self.locate(store_key)
            await store.remove([key])

    async def grant(self, key: str, method: GrantMethod, seconds: float) -> AccessGrant | None:
        store, key = self.locate(key)
        return await store.grant(key, method, seconds)

    async def expire(self, key: str, since: str) -> int:
        store, key = self.locate(key)
        return await store.expire(key, since)

    async def delete(self, execution_id: str) -> None:
        for store in self._stores.values():
            await store.delete(execution_id)

    async def put_entry(self, name: str, entry: bytes, store: str = "") -> None:
        await self._store_named(store).put_entry(name, entry)

    async def entry(self, name: str, store: str = "") -> bytes | None:
        return await self._store_named(store).entry(name)

    async def entries(self, prefix: str = "", store: str = "") -> list[str]:
        return await self._store_named(store).entries(prefix)

    async def delete_entry(self, name: str, store: str = "") -> None:
        await self._store_named(store).delete_entry(name)

    async def put_log(self, execution_id: str, segment: str, lines: bytes) -> None:
        await self._stores[""].put_log(execution_id, segment, lines)

    async def log_segments(self, execution_id: str) -> list[StoredBody]:
        return await self._stores[""].log_segments(execution_id)

    async def log_segment(self, execution_id: str, segment: str, start: int = 0) -> bytes:
        return await self._stores[""].log_segment(execution_id, segment, start)

    async def delete_log(self, execution_id: str) -> None:
        await self._stores[""].delete_log(execution_id)

    async def check(self) -> None:
        """Of those that settings name: of what else there is, whoever made it has looked."""
        for name, store in self._stores.items():
            if name or self.own_is_set:
                try:
                    await store.check()
                except ResultError as error:
                    setting = f"`result_stores`, `{name}`" if name else "`result_store`"
                    raise ResultError(f"{setting}: {error}", error.hint) from None

    async def sweep(self, before: float) -> int:
        return sum([await store.sweep(before) for store in self._stores.values()])

    async def close(self) -> None:
        for store in self._stores.values():
            await store.close()

    def _store_named(self, name: str) -> ResultStore:
        return self.locate(key_in_store(name, ""))[0]
