"""The stored objects of one execution, over any result store."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from noetl.kernel.result_rules import ResultRules
from noetl.model.json import Json
from noetl.model.reference import StoredReference, hash_of_key, object_reference, store_of_key
from noetl.ports.results import ResultError, ResultMissing, ResultStore
from noetl.stores.results.result_key import key_in_store, split_store_key

ARTIFACT_OWNER = "artifact-"
"""How the names begin under which bodies of artifacts are kept."""
_FIELDS_OF_COPY = ("key", "store", "ttl", "scope")
"""What belongs to one copy of an object, and not to the object."""


class ResultStoreObjects:
    """Drafts are files in the store's scratch folder until they are kept.

    `store` names the store that keeps them, `about` goes into every reference.
    """

    def __init__(
        self,
        results: ResultStore,
        execution_id: str,
        *,
        store: str = "",
        compression: str = "none",
        about: Mapping[str, Json] | None = None,
    ) -> None:
        self._results = results
        self._execution_id = execution_id
        self._store = store
        self._compression = compression
        self._about = dict(about or {})

    @asynccontextmanager
    async def draft(self) -> AsyncIterator["FileDraft"]:
        path = self._results.scratch(self._execution_id) / f".draft-{uuid4().hex}"
        try:
            yield FileDraft(self, path)
        finally:
            path.unlink(missing_ok=True)

    @asynccontextmanager
    async def local(self, reference: Mapping[str, Any]) -> AsyncIterator[Path]:
        key = reference.get("key")
        if not isinstance(key, str) or not split_store_key(key)[1].startswith(f"{self._execution_id}/"):
            message = f"`{key}` is not stored by this execution"
            raise ResultMissing(message, "hand on the reference that a task of it gave")
        async with self._results.local(key) as path:
            yield path

    async def keep(
        self, path: Path, media_type: str, preview: str, about: Mapping[str, Json]
    ) -> StoredReference:
        """What stands for a file, which is gone afterwards."""
        size, digest = await asyncio.to_thread(_size_and_hash, path)
        key = key_in_store(self._store, f"{self._execution_id}/{digest}")
        await self._results.put_file(key, path, self._compression)
        return object_reference(
            key, size=size, media_type=media_type, preview=preview, **{**self._about, **about}
        )

    async def publish(self, name: str, reference: StoredReference, store: str = "") -> dict[str, Json]:
        before = await self._entry(name, store)
        owner = _artifact_owner(name, hash_of_key(reference["key"]))
        await self._results.copy(
            reference["key"], key_in_store(store, f"{owner}/{hash_of_key(reference['key'])}")
        )
        about = {key: value for key, value in reference.items() if key not in _FIELDS_OF_COPY}
        entry: dict[str, Json] = {
            "name": name,
            "owner": owner,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "execution_id": self._execution_id,
            "about": about,
        }
        await self._results.put_entry(name, msgspec.json.encode(entry), store)
        if before is not None and before["owner"] != owner:
            await self._results.delete(before["owner"])
        return _artifact_summary(entry, store)

    async def published(self, name: str, store: str = "") -> StoredReference | None:
        entry = await self._entry(name, store)
        if entry is None:
            return None
        digest = entry["about"]["hash"]
        key = key_in_store(self._store, f"{self._execution_id}/{digest}")
        await self._results.copy(key_in_store(store, f"{entry['owner']}/{digest}"), key)
        return StoredReference({**entry["about"], "key": key, "store": store_of_key(key), **self._about})

    async def artifacts(self, prefix: str = "", store: str = "") -> list[dict[str, Json]]:
        entries = [await self._entry(name, store) for name in await self._results.entries(prefix, store)]
        return [_artifact_summary(entry, store) for entry in entries if entry is not None]

    async def withdraw(self, name: str, store: str = "") -> bool:
        entry = await self._entry(name, store)
        if entry is None:
            return False
        await self._results.delete_entry(name, store)
        await self._results.delete(entry["owner"])
        return True

    async def _entry(self, name: str, store: str) -> dict[str, Any] | None:
        data = await self._results.entry(name, store)
        if data is None:
            return None
        return _decode_entry(name, data)


def task_objects(results: ResultStore, execution_id: str, rules: ResultRules) -> ResultStoreObjects:
    """The objects of an execution for a task with these rules."""
    return ResultStoreObjects(
        results,
        execution_id,
        store=rules.store,
        # What tools store is mostly packed already, or read in parts: only who asks for it has it packed.
        compression=rules.compression if rules.packs_objects else "none",
        about=rules.reference_fields,
    )


async def artifact_owners(results: ResultStore) -> set[str]:
    """Under which names the bodies of all artifacts are kept that there are. Raises ResultError."""
    owners: set[str] = set()
    for name in await results.entries():
        if (data := await results.entry(name)) is not None:
            owners.add(_decode_entry(name, data)["owner"])
    return owners


class FileDraft:
    """A file that becomes an object."""

    def __init__(self, objects: ResultStoreObjects, path: Path) -> None:
        self._objects = objects
        self.path = path

    async def keep(self, media_type: str, *, preview: str = "", **about: Json) -> StoredReference:
        return await self._objects.keep(self.path, media_type, preview, about)


def _artifact_owner(name: str, digest: str) -> str:
    """Who has the body of an artifact: nobody but this version of it."""
    return f"{ARTIFACT_OWNER}{hashlib.sha256(name.encode()).hexdigest()[:32]}-{digest[:32]}"


def _decode_entry(name: str, data: bytes) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise ResultError(f"the artifact `{name}` is damaged", "put it again") from None
    return entry


def _artifact_summary(entry: Mapping[str, Any], store: str) -> dict[str, Json]:
    about = entry["about"]
    return {
        "key": entry["name"],
        "store": store or None,
        "size": about["size"],
        "media_type": about["media_type"],
        "hash": about["hash"],
        "created_at": entry["created_at"],
    }


def _size_and_hash(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()
