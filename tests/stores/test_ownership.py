"""Who runs an execution, over all processes of the machine."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from noetl.stores.ownership import Owners
from tests.file_rights import readable_only
from tests.stores.store_process import child, next_line

HOLD = """
owned = Owners(PATH).acquire("a")
say(os.getpid() if owned else "refused")
sys.stdin.readline()
owned.release()
say("released")
sys.stdin.readline()
"""
# Claims and releases a thousand times; two owners at once would find each other's mark.
RACE = """
owners, mark, won = Owners(PATH / "owners"), PATH / "mark", 0
while won < 300:
    if owned := owners.acquire("a"):
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        os.unlink(mark)
        owned.release()
        won += 1
say("done")
"""


@pytest.fixture
def owners(tmp_path: Path) -> Owners:
    return Owners(tmp_path / "owners")


def test_an_execution_has_one_owner(owners: Owners) -> None:
    owned = owners.acquire("a")
    assert owned
    assert owners.acquire("a") is None
    assert owners.acquire("b")
    assert owners.owner("a") == os.getpid()
    owned.release()
    owned.release()
    assert owners.owner("a") is None
    assert owners.acquire("a")


def test_who_may_only_read_sees_owners_and_waits_for_them(public_folder: Path) -> None:
    lock_path = public_folder / "owners"
    with child(HOLD, lock_path) as process:
        owner = int(next_line(process))
        with readable_only(public_folder), ThreadPoolExecutor() as pool:
            owners = Owners(lock_path)
            assert owners.owner("a") == owner
            waits = pool.submit(owners.wait_until_released, "a")
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
            waits.result()
            assert owners.owner("a") is None


def test_nobody_owns_what_was_never_claimed(owners: Owners) -> None:
    assert owners.owner("a") is None


def test_thousands_can_be_owned_and_leave_one_empty_file(owners: Owners, tmp_path: Path) -> None:
    ownerships = [owners.acquire(f"x{number}") for number in range(5_000)]
    assert all(ownerships)
    for ownership in ownerships:
        assert ownership
        ownership.release()
    assert owners.owner("x7") is None
    assert (tmp_path / "owners").stat().st_size == 0


def test_no_file_stays_open_when_nothing_is_owned(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for number in range(50):
        owners = Owners(tmp_path / str(number))
        owned = owners.acquire("a")
        assert owned
        owned.release()
        assert owners.owner("a") is None
    assert len(os.listdir("/dev/fd")) == before


def test_a_file_that_is_kept_open_is_opened_once_and_closed_at_the_end(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    keepers = [Owners(tmp_path / "owners"), Owners(tmp_path / "owners")]
    for owners in keepers:
        owners.keep_open()
    for number in range(50):
        for owners in keepers:
            owned = owners.acquire(f"x{number}")
            assert owned
            owned.release()
            assert owners.owner(f"x{number}") is None
            assert len(os.listdir("/dev/fd")) == before + 1
    keepers[0].close()
    keepers[0].close()
    assert len(os.listdir("/dev/fd")) == before + 1
    last = keepers[1].acquire("a")
    keepers[1].close()
    assert last
    assert keepers[0].owner("a") == os.getpid()
    last.release()
    assert len(os.listdir("/dev/fd")) == before


def test_a_file_that_was_removed_is_not_kept_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    owners = Owners(tmp_path / "owners")
    owners.keep_open()
    for _ in range(3):
        owned = owners.acquire("a")
        assert owned
        owned.release()
        (tmp_path / "owners").unlink()
    assert len(os.listdir("/dev/fd")) == before + 1
    owners.close()
    assert len(os.listdir("/dev/fd")) == before


def test_two_objects_on_one_file_know_of_each_other(owners: Owners, tmp_path: Path) -> None:
    other = Owners(tmp_path / "owners")
    owned = owners.acquire("a")
    assert owned
    assert other.acquire("a") is None
    assert other.owner("a") == os.getpid()
    assert other.owner("b") is None
    assert owners.acquire("a") is None
    owned.release()
    assert other.acquire("a")


def test_waiting_ends_with_the_owner(owners: Owners, tmp_path: Path) -> None:
    with child(HOLD, tmp_path / "owners") as process:
        next_line(process)
        with ThreadPoolExecutor() as pool:
            waits = pool.submit(owners.wait_until_released, "a")
            process.kill()
            waits.result()
    assert owners.owner("a") is None


def test_another_process_owns_it_until_it_releases(owners: Owners, tmp_path: Path) -> None:
    with child(HOLD, tmp_path / "owners") as process:
        owner = int(next_line(process))
        assert owner == process.pid
        assert owners.owner("a") == owner
        assert owners.acquire("a") is None
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        assert next_line(process) == "released"
        owned = owners.acquire("a")
        assert owned
        owned.release()


def test_the_kernel_frees_what_a_killed_process_owned(owners: Owners, tmp_path: Path) -> None:
    with child(HOLD, tmp_path / "owners") as process:
        assert int(next_line(process)) == process.pid
        process.kill()
        process.wait()
        assert owners.owner("a") is None
        owned = owners.acquire("a")
        assert owned
        assert owners.owner("a") == os.getpid()
        owned.release()


def test_processes_that_claim_at_once_never_own_it_together(tmp_path: Path) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(child(RACE, tmp_path)) for _ in range(3)]
        assert [next_line(process) for process in processes] == ["done"] * 3
