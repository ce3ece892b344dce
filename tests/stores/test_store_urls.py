import asyncio
from pathlib import Path

import pytest

from noetl.ports.store import StoreUnusable
from noetl.stores import open_store
from noetl.testing.store.store_fixtures import begin_execution


@pytest.mark.parametrize("absolute", [True, False])
def test_a_url_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    prefix = f"sqlite:///{tmp_path}/" if absolute else "sqlite:///"

    async def use() -> None:
        store = open_store(f"{prefix}folder/my store.db")
        await begin_execution(store, "a")
        await store.close()

    asyncio.run(use())
    assert (tmp_path / "folder" / "my store.db").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_url_names_memory(url: str) -> None:
    async def use() -> None:
        store = open_store(url)
        await begin_execution(store, "a")
        await store.close()

    asyncio.run(use())


@pytest.mark.parametrize(
    "url", ["", "store.db", "sqlite:store.db", "sqlite://host/store.db", "sqlite:///", "mysql://x/y"]
)
def test_other_urls_are_refused_with_a_hint(url: str) -> None:
    with pytest.raises(StoreUnusable) as caught:
        open_store(url)
    assert "sqlite:///" in caught.value.hint
