"""What a process that is killed leaves behind."""

import asyncio
from pathlib import Path

import pytest

from noetl.ports.store import Committed, Effects, Row
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import effects_in_row, new_append
from tests.stores.store_process import child, next_line

# Four executions append three rows at a time, as fast as they can, and say what was acknowledged.
WRITE = """
effects = [Effects(status="one", timers={"t": 1}), Effects(outbox={"m": b"x" * 500}), Effects(status="three")]
async def write(store, name):
    version = (await store.execution(name) or begun).version
    while True:
        [verdict] = await store.commit([new_append(name, version, *effects)])
        version = verdict.version
        say(name, version)
async def main():
    store = SqliteStore.at(PATH, inline=INLINE)
    await asyncio.gather(*(write(store, name) for name in "abcd"))
class begun: version = 0
asyncio.run(main())
"""


@pytest.mark.parametrize("inline", ["commits", "nothing"])
def test_what_was_acknowledged_survives_a_kill_and_nothing_is_half(tmp_path: Path, inline: str) -> None:
    store_path = tmp_path / "store.db"
    acknowledged: dict[str, int] = {}
    for lines in (1, 7, 40, 100, 333):
        with child(WRITE.replace("INLINE", repr(inline)), store_path) as process:
            lines_of_child = [next_line(process) for _ in range(lines)]
            process.kill()
            assert process.stdout
            lines_of_child += [line.strip() for line in process.stdout if line.endswith("\n")]
        for name, version in map(str.split, lines_of_child):
            acknowledged[name] = max(acknowledged.get(name, 0), int(version))
        histories = asyncio.run(_histories(store_path))
        for name, rows in histories.items():
            assert len(rows) >= acknowledged.get(name, 0)
            assert [row.last for row in rows] == [False, False, True] * (len(rows) // 3)


async def _histories(store_path: Path) -> dict[str, list[Row]]:
    store = SqliteStore.at(store_path)
    assert await store.check(effects_in_row) == []
    histories = {name: await store.read(name, limit=1_000_000) for name in "abcd"}
    assert await store.commit([new_append("after", 0)]) == [Committed(1)]
    await store.delete("after")
    await store.close()
    return histories


def test_a_file_whose_making_was_interrupted_is_made_again(tmp_path: Path) -> None:
    store_path = tmp_path / "store.db"
    store_path.touch()

    async def use() -> None:
        store = SqliteStore.at(store_path)
        assert await store.commit([new_append("a", 0, Effects(status="running"))]) == [Committed(1)]
        assert await store.check(effects_in_row) == []
        await store.close()

    asyncio.run(use())
