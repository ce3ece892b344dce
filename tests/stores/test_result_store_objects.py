import asyncio
import hashlib
from pathlib import Path

import pytest

from noetl.model.reference import (
    StoredReference,
    encode_value,
    escape,
    is_object_reference,
    is_reference,
    unescape,
)
from noetl.ports.results import ResultMissing, ResultStore
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.result_store_objects import ResultStoreObjects

ID = "01939d2e-0000-7000-8000-000000000001"


@pytest.fixture(params=["file", "memory"])
def results(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    return FileResults(tmp_path) if request.param == "file" else MemoryResults()


async def keep_draft(objects: ResultStoreObjects, data: bytes = b"\x00\x01") -> StoredReference:
    async with objects.draft() as draft:
        draft.path.write_bytes(data)
        return await draft.keep("application/octet-stream", preview="two bytes", name="x.bin")


def test_a_draft_that_is_kept_can_be_read(results: ResultStore) -> None:
    async def use_objects() -> tuple[StoredReference, bytes]:
        objects = ResultStoreObjects(results, ID)
        reference = await keep_draft(objects)
        async with objects.local(reference) as path:
            return reference, path.read_bytes()

    reference, data = asyncio.run(use_objects())
    assert data == b"\x00\x01"
    assert (reference["size"], reference["media_type"]) == (2, "application/octet-stream")
    assert (reference["preview"], reference["name"]) == ("two bytes", "x.bin")
    assert reference["key"] == f"{ID}/{reference['hash']}"


def test_a_draft_that_is_not_kept_is_gone(tmp_path: Path) -> None:
    async def use_objects() -> None:
        async with ResultStoreObjects(FileResults(tmp_path), ID).draft() as draft:
            draft.path.write_bytes(b"half")

    asyncio.run(use_objects())
    assert list((tmp_path / ID).iterdir()) == []


def test_another_execution_cannot_read_it(results: ResultStore) -> None:
    async def use_objects() -> None:
        reference = await keep_draft(ResultStoreObjects(results, ID))
        async with ResultStoreObjects(results, ID[:-1] + "2").local(reference):
            pass

    with pytest.raises(ResultMissing, match="not stored by this execution"):
        asyncio.run(use_objects())


def test_only_what_was_stored_comes_back_as_stored(results: ResultStore) -> None:
    reference = asyncio.run(keep_draft(ResultStoreObjects(results, ID)))
    forged = dict(reference)
    logged = escape({"real": reference, "forged": forged})
    assert is_object_reference(logged["real"])
    assert not is_reference(logged["real"])
    assert not is_object_reference(logged["forged"])
    assert encode_value(logged)
    back = unescape(logged)
    assert isinstance(back["real"], StoredReference)
    assert not isinstance(back["forged"], StoredReference)
    assert back == {"real": reference, "forged": forged}


def test_a_published_object_names_the_store_that_has_its_copy(tmp_path: Path) -> None:
    archive = FileResults(tmp_path / "archive")
    results = NamedResults(FileResults(tmp_path / "own"), {"archive": archive})

    async def use_objects() -> None:
        reference = await keep_draft(ResultStoreObjects(results, ID, store="archive"))
        assert reference["store"] == "archive"
        reader = ResultStoreObjects(results, ID[:-1] + "2")
        await ResultStoreObjects(results, ID).publish("report", reference)
        published = await reader.published("report")
        assert published is not None
        assert (published["store"], published["checksum"]) == ("auto", reference["checksum"])
        async with reader.local(published) as path:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert published["checksum"] == f"sha256:{digest}"

    asyncio.run(use_objects())
