"""What tasks print."""

import asyncio
import os
from pathlib import Path

import pytest

from noetl.engine import task_log
from noetl.engine.task_log import MAX_TEXT, LogLine, TaskLog

LOG_LABELS: dict[str, str | int] = {"step": "start", "run": "r5", "task": "say", "iteration": 2, "attempt": 3}


@pytest.fixture
def log(tmp_path: Path) -> TaskLog:
    return TaskLog(tmp_path / "logs")


def texts(log: TaskLog, name: str = "x") -> list[str]:
    return [line.text for line in log.tail(name).read()]


def test_lines_are_kept_with_their_place(log: TaskLog) -> None:
    log.write("x", LOG_LABELS, "one\ntwo\n")
    log.write("x", {}, "")
    first, second, third = log.tail("x").read()
    assert first == LogLine(
        ts=first.ts, step="start", run="r5", task="say", iteration=2, attempt=3, text="one"
    )
    assert (second.text, third.text, third.attempt) == ("two", "", 1)
    assert first.ts.endswith("Z")
    log.close()


def test_another_process_goes_on_after_a_line_that_was_cut_off(log: TaskLog) -> None:
    log.write("x", {}, "one")
    with open(log.path("x"), "ab") as file:
        file.write(b'{"ts": "2025')
    log.close()
    log.write("x", {}, "two")
    log.close()
    assert texts(log) == ["one", "two"]


def test_long_lines_and_full_logs_are_cut(log: TaskLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write("x", {}, "a" * (MAX_TEXT + 5))
    assert texts(log) == ["a" * MAX_TEXT + "…"]
    monkeypatch.setattr(task_log, "MAX_BYTES", 1_000)
    for _ in range(100):
        log.write("full", {}, "a" * 20)
    log.close()
    log.write("full", {}, "later")
    lines = log.tail("full").read()
    assert lines[-1].full
    assert "the log is full" in lines[-1].text
    assert "later" not in texts(log, "full")
    assert log.path("full").stat().st_size < 1_300
    log.close()


def test_text_that_is_no_unicode_is_escaped(log: TaskLog) -> None:
    log.write("x", {}, b"\xff".decode("utf-8", "surrogateescape"))
    assert texts(log) == ["\\udcff"]
    log.close()


def test_many_executions_share_few_open_files(log: TaskLog) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
    for number in range(3 * task_log.OPEN_FILES):
        log.write(f"x{number}", {}, str(number))
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + task_log.OPEN_FILES + 1
    log.write("x0", {}, "again")
    assert texts(log, "x0") == ["0", "again"]
    log.close()


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = TaskLog(tmp_path / "file" / "logs")
    log.write("x", {}, "lost")
    log.write("x", {}, "lost, too")
    assert isinstance(log.failure, OSError)


def test_a_reader_sees_what_is_new(log: TaskLog) -> None:
    tail = log.tail("x")
    assert tail.read() == []
    log.write("x", {}, "one")
    assert [line.text for line in tail.read()] == ["one"]
    with open(log.path("x"), "ab") as file:
        file.write(b'{"ts":"","te')
    assert tail.read() == []
    with open(log.path("x"), "ab") as file:
        file.write(b'xt":"two"}\nnot json\n')
    assert [line.text for line in tail.read()] == ["two"]
    log.close()


def test_following_ends_when_all_is_read(log: TaskLog) -> None:
    async def follow() -> list[str]:
        ended = asyncio.Event()
        seen: list[str] = []
        log.write("x", {}, "one")
        async for lines in log.tail("x").follow(ended):
            seen += [line.text for line in lines]
            if seen == ["one"]:
                log.write("x", {}, "two")
                ended.set()
        return seen

    assert asyncio.run(follow()) == ["one", "two"]
    log.close()


def test_a_log_is_removed_once(log: TaskLog) -> None:
    log.write("x", {}, "one")
    log.close()
    assert (log.remove("x"), log.remove("x")) == (True, False)
