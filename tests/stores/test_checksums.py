"""What is read is what was written, or an error."""

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from noetl.ports.store import NO_EFFECTS, Append, Row, Snapshot, Store, StoreDamaged, StoreError
from noetl.stores.checksums import StoredRow, row_faults
from noetl.stores.sqlite import queries
from noetl.stores.sqlite.connection import migrate_schema
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted

ENDS = (1, 4, 5, 9)
"""Where the appends of `ROWS` end; the last two were written together."""
ROWS = [
    Row(seq, 1_700_000_000_000_000 + seq, seq % 7, 1, b'{"result":{"v":%d}}' % seq, seq in ENDS)
    for seq in range(1, ENDS[-1] + 1)
]


def fill(path: Path) -> None:
    async def write() -> None:
        store = SqliteStore.at(path)
        for start, end in ((0, 1), (1, 4), (4, 9)):
            append = Append(execution_id="a", expected_version=start, rows=ROWS[start:end])
            await commit_accepted(store, append)
        await begin_execution(store, "other")
        await store.put_playbook("hash", b"document")
        await store.put_snapshot("a", Snapshot(4, 1, b"four"))
        await store.put_snapshot("a", Snapshot(9, 1, b"nine"))
        await store.close()

    asyncio.run(write())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "store.db")
    return tmp_path / "store.db"


def use(path: Path, work: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        store = SqliteStore.at(path)
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(run())


def change(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9, 1_000, 1 << 62])
@pytest.mark.parametrize("after", range(12))
def test_what_is_sound_is_read_from_anywhere(path: Path, after: int, limit: int) -> None:
    async def read(store: Store) -> None:
        assert await store.read("a", after=after, limit=limit) == ROWS[after : after + limit]
        assert await store.check() == []
        assert await store.unchecked_appends() == 0

    use(path, read)


CHANGES = {
    "a digit of the body": "body = CAST(replace(CAST(body AS TEXT), '}}', '}]') AS BLOB)",
    "a shorter body": "body = substr(body, 2)",
    "a time": "ts = ts + 1",
    "a kind": "kind = kind + 4",
    "a format": "v = v + 1",
    "an encoding": "enc = enc + 2",
    "the end of the append": "enc = 1 - enc",
    "a checksum": "checksum = coalesce(checksum, 0) + 1",
    "no checksum": "checksum = NULL",
    "a number": "seq = seq + 20",
    "an execution": "x = x + 20",
}


def harmless(name: str, seq: int) -> bool:
    """What is not looked at: a checksum where no append ends. The first may have none: it may be of before."""
    return "checksum" in name and (seq not in ENDS or (name == "no checksum" and seq == 1))


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("seq", range(1, 10))
def test_whatever_is_changed_is_an_error_for_whoever_reads_it(path: Path, name: str, seq: int) -> None:
    change(path, f"UPDATE event SET {CHANGES[name]} WHERE x = 1 AND seq = {seq}")  # noqa: S608 - our own

    async def read(store: Store) -> None:
        if harmless(name, seq):
            assert await store.read("a") == ROWS
            return
        assert await store.check()
        with pytest.raises(StoreDamaged, match=r"^a: event"):
            await store.read("a")
        with pytest.raises(StoreDamaged):
            await store.read("a", after=max(0, seq - 2), limit=3)

    use(path, read)


def test_two_rows_that_changed_places_are_an_error(path: Path) -> None:
    change(path, "UPDATE event SET seq = -2 WHERE x = 1 AND seq = 2")
    change(path, "UPDATE event SET seq = 2 WHERE x = 1 AND seq = 3")
    change(path, "UPDATE event SET seq = 3 WHERE x = 1 AND seq = -2")

    async def read(store: Store) -> None:
        with pytest.raises(StoreDamaged, match="events 2 to 4 are not what was written"):
            await store.read("a")
        assert await store.read("a", limit=1) == ROWS[:1]
        assert await store.read("a", after=4) == ROWS[4:]

    use(path, read)


def test_any_bit_that_flips_in_the_file_is_an_error_never_a_wrong_value(path: Path, tmp_path: Path) -> None:
    """At random, from a seed: in the pages of the events and of all else."""
    choose = random.Random(12)  # noqa: S311 - no secret
    whole_file = path.read_bytes()
    body = whole_file.index(ROWS[-1].body)
    damaged = tmp_path / "damaged.db"
    noticed = 0
    for number in range(400):
        content = bytearray(whole_file)
        # The rows of an event lie behind one another: half of the bits are chosen there.
        at = choose.randrange(body, body + 450) if number % 2 else choose.randrange(100, len(content))
        content[at] ^= 1 << choose.randrange(8)
        damaged.write_bytes(content)

        async def read() -> bool:
            try:
                store = SqliteStore.at(damaged)
            except StoreError:
                return True
            try:
                rows = await store.read("a")
                if rows != ROWS:
                    # What cannot be found any more is missing; that, the check says.
                    assert rows == ROWS[: len(rows)]
                    assert await store.check()
                    return True
            except StoreError:
                return True
            finally:
                await store.close()
            return False

        noticed += asyncio.run(read())
    assert noticed > 150


def test_a_damaged_snapshot_is_not_used_and_goes_when_it_is_rebuilt(path: Path) -> None:
    change(path, "UPDATE snapshot SET body = x'00' WHERE seq = 9")

    async def read(store: Store) -> None:
        assert await store.snapshot("a", state_format=1) == Snapshot(4, 1, b"four")
        assert [wrong.message for wrong in await store.check()] == [
            "the snapshot at 9 is not what was written"
        ]

    use(path, read)
    change(path, "UPDATE snapshot SET format = 2 WHERE seq = 4")

    async def rebuild(store: Store) -> None:
        assert await store.snapshot("a", state_format=1) is None
        assert await store.snapshot("a", state_format=2) is None
        await store.rebuild(lambda _: NO_EFFECTS)
        assert await store.check() == []

    use(path, rebuild)


def test_a_damaged_document_is_an_error(path: Path) -> None:
    change(path, "UPDATE playbook SET document = x'00'")

    async def read(store: Store) -> None:
        with pytest.raises(StoreDamaged, match="document hash"):
            await store.playbook("hash")
        assert [wrong.message for wrong in await store.check()] == [
            "the document hash is not what was written"
        ]

    use(path, read)


def test_what_an_older_release_wrote_is_read_unchecked_and_what_follows_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
    migrate_schema(connection, 0, queries.migration_scripts()[:4])
    facts = ("running", "p", "hash", "", "", "", "{}", 0, "", 0, 0, 0)
    connection.execute("INSERT INTO execution VALUES (1,'a',1,?,?,?,?,?,?,?,?,?,?,?,?)", facts)
    for row in ROWS[:4]:
        connection.execute(
            "INSERT INTO event (x, seq, ts, kind, enc, v, body) VALUES (1,?,?,?,?,?,?)",
            (row.seq, row.ts, row.kind, row.last, row.version, row.body),
        )
    connection.execute("INSERT INTO playbook VALUES ('hash', x'31')")
    connection.execute("INSERT INTO snapshot VALUES (1, 4, 1, x'31')")
    connection.close()

    async def go_on(store: Store) -> None:
        assert await store.read("a") == ROWS[:4]
        assert await store.playbook("hash") == b"1"
        assert await store.snapshot("a", state_format=1) is None
        assert await store.unchecked_appends() == 2
        await commit_accepted(store, Append(execution_id="a", expected_version=4, rows=ROWS[4:]))
        assert await store.read("a") == ROWS
        assert await store.read("a", after=2, limit=4) == ROWS[2:6]
        assert await store.unchecked_appends() == 2

    use(path, go_on)
    change(path, "UPDATE event SET body = x'7b7d' WHERE seq IN (2, 6)")

    async def read(store: Store) -> None:
        assert (await store.read("a", limit=4))[1].body == b"{}"
        with pytest.raises(StoreDamaged, match="events 6 to 9"):
            await store.read("a", after=4)

    use(path, read)


def test_a_row_that_lost_the_end_of_its_append_is_a_fault() -> None:
    rows = [StoredRow(row, int(row.last), None) for row in ROWS[:3]]
    assert [*row_faults(rows)] == ["events 2 to 3 are of an append that has no end"]


def test_a_store_that_is_copied_while_it_is_closed_is_sound(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy.db")

    async def read(store: Store) -> None:
        assert await store.read("a") == ROWS
        assert await store.check() == []

    use(tmp_path / "copy.db", read)
