"""Logs that are kept with the results, where any machine finds them."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path

import pytest

from noetl.engine import segment_log
from noetl.engine.segment_log import COPIED_SEGMENT, SegmentLog, copy_log_files, open_task_log
from noetl.engine.task_log import FileLog, TaskLog
from noetl.stores.home_folder import Home
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.sqlite.store import SqliteStore
from tests.executions.execution_playbooks import GREET, GREETED
from tests.executions.recorded_executions import RecordedExecutions

EXECUTION = "01939d2e-0000-7000-8000-000000000001"
OTHER = "01939d2e-0000-7000-8000-000000000002"


def in_loop(test: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    @wraps(test)
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    return run


def open_log(folder: Path) -> SegmentLog:
    """As another process on another machine has it: what they share are the results."""
    return SegmentLog(FileResults(folder / "shared"), FileLog(folder / "logs"))


async def texts(log: TaskLog, execution_id: str = EXECUTION) -> list[str]:
    return [line.text for line in await log.tail(execution_id).read()]


async def segment_sizes(folder: Path, execution_id: str = EXECUTION) -> list[int]:
    return [segment.size for segment in await FileResults(folder / "shared").log_segments(execution_id)]


@in_loop
async def test_lines_are_where_any_machine_finds_them(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write(EXECUTION, {"step": "start", "task": "say", "iteration": 2}, "one\ntwo")
    log.write(OTHER, {}, "of another")
    assert await texts(log) == ["one", "two"], "who wrote them sees them at once"
    assert await texts(open_log(tmp_path)) == ["one", "two"]
    assert await texts(open_log(tmp_path), OTHER) == [], "it was not asked for yet"
    await log.close()
    assert await texts(open_log(tmp_path), OTHER) == ["of another"]
    (line, _) = await open_log(tmp_path).tail(EXECUTION).read()
    assert (line.step, line.task, line.iteration) == ("start", "say", 2)


@in_loop
async def test_lines_are_written_without_being_asked_for(tmp_path: Path) -> None:
    log, reader = open_log(tmp_path), open_log(tmp_path).tail(EXECUTION)
    log.write(EXECUTION, {}, "one")
    assert log._writing is not None
    await log._writing
    assert [line.text for line in await reader.read()] == ["one"]
    log.write(EXECUTION, {}, "two")
    await log._writing
    assert [line.text for line in await reader.read()] == ["two"], "only what is new"
    assert len(await segment_sizes(tmp_path)) == 1
    await log.close()


@in_loop
async def test_several_processes_write_of_one_execution(tmp_path: Path) -> None:
    logs = [open_log(tmp_path) for _ in range(2)]
    for number in range(6):
        logs[number % 2].write(EXECUTION, {}, str(number))
    for log in logs:
        await log.close()
    assert await texts(open_log(tmp_path)) == ["0", "1", "2", "3", "4", "5"]
    assert len(await segment_sizes(tmp_path)) == 2


@in_loop
async def test_a_full_segment_is_not_written_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(4):
        log.write(EXECUTION, {}, f"{number} " + "x" * 15_000)
        await log.flush(EXECUTION)
    assert len(await segment_sizes(tmp_path)) == 1
    log.write(EXECUTION, {}, "\n".join(["x" * 15_000] * 8))
    await log.close()
    sizes = await segment_sizes(tmp_path)
    assert len(sizes) == 3
    assert max(sizes) < segment_log.SEGMENT_BYTES + 16_384
    assert len(await texts(open_log(tmp_path))) == 12


def test_a_log_says_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_log, "MAX_BYTES", 1_000)

    async def write() -> None:
        first = open_log(tmp_path)
        first.write(EXECUTION, {}, "\n".join(["a" * 20] * 6))
        await first.close()
        later = open_log(tmp_path)
        for _ in range(100):
            later.write(EXECUTION, {}, "b" * 20)
            await later.flush(EXECUTION)
        await later.close()
        *_, last = await open_log(tmp_path).tail(EXECUTION).read()
        assert (last.full, "the log is full" in last.text) == (True, True)
        assert "b" * 20 in await texts(open_log(tmp_path))
        assert sum(await segment_sizes(tmp_path)) < 1_300

    asyncio.run(write())


def test_lines_wait_for_a_store_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_log, "MOST_PENDING", 300)
    shared = tmp_path / "shared"

    async def write() -> None:
        log = open_log(tmp_path)
        shared.write_text("no folder")
        log.write(EXECUTION, {}, "one")
        await log.flush(EXECUTION)
        for _ in range(10):
            log.write(EXECUTION, {}, "x" * 100)
        shared.unlink()
        await log.close()
        first, *some, last = await texts(open_log(tmp_path))
        assert first == "one"
        assert set(some) == {"x" * 100}
        assert last == f"{10 - len(some)} lines are lost: the result store was away for too long"

    asyncio.run(write())


@in_loop
async def test_few_logs_are_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(segment_log.IDLE_LOGS + 20):
        log.write(f"x{number}", {}, "one")
        await log.flush(f"x{number}")
    assert len(log._writers) <= segment_log.IDLE_LOGS + 1
    log.write("x0", {}, "again")
    assert await texts(log, "x0") == ["one", "again"]
    assert len(await segment_sizes(tmp_path, "x0")) == 2
    await log.close()


@in_loop
async def test_files_of_before_are_read_until_they_are_copied(tmp_path: Path) -> None:
    files = FileLog(tmp_path / "logs")
    files.write(OTHER, {}, "of an earlier release")
    await files.close()
    log = open_log(tmp_path)
    log.write(OTHER, {}, "new")
    assert await texts(log, OTHER) == ["of an earlier release", "new"]
    recorded = RecordedExecutions(tmp_path)
    store = SqliteStore.at(recorded.home.store)
    execution = recorded.begin(GREET, GREETED)
    execution.driver.run()
    await execution.save_in(store)
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, text in ((execution.id, "copied"), (OTHER, "unknown")):
        (mine / f"{name}.jsonl").write_text(f'{{"ts":"2026","text":"{text}"}}\n')
    results = FileResults(tmp_path / "shared")
    assert [await copy_log_files(mine, store, results) for _ in range(2)] == [1, 0]
    assert [segment.key for segment in await results.log_segments(execution.id)] == [COPIED_SEGMENT]
    assert await texts(SegmentLog(results, FileLog(mine)), execution.id) == ["copied"], "once"
    await store.close()
    await log.close()


def test_logs_are_files_unless_results_are_elsewhere(tmp_path: Path) -> None:
    own = FileResults(tmp_path)
    assert isinstance(open_task_log(Home(tmp_path), NamedResults(own, {"s3": own})), FileLog)
    assert isinstance(open_task_log(Home(tmp_path), NamedResults(own, {}, own_is_set=True)), SegmentLog)
