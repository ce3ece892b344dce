"""What tasks print."""

import asyncio
import os
from pathlib import Path

import pytest

from noetl.engine import task_log
from noetl.engine.history import lookup
from noetl.engine.history.family_log import FamilyLog
from noetl.engine.task_log import MAX_TEXT, FileLog, LogLine
from noetl.events.bodies import ParentTask
from noetl.ports.ledger import LogSource
from noetl.ports.store import Store
from tests.executions.execution_playbooks import BREAK, BROKEN, GREET, GREETED, HOLD
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecutions

LOG_LABELS: LogSource = {"step": "start", "run": "r5", "task": "say", "iteration": 2, "attempt": 3}


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    return FileLog(tmp_path / "logs")


def texts(log: FileLog, name: str = "x") -> list[str]:
    return [line.text for line in asyncio.run(log.tail(name).read())]


def test_lines_are_kept_with_their_place(log: FileLog) -> None:
    log.write("x", LOG_LABELS, "one\ntwo\n")
    log.write("x", {}, "")
    first, second, third = asyncio.run(log.tail("x").read())
    assert first == LogLine(
        ts=first.ts, step="start", run="r5", task="say", iteration=2, attempt=3, text="one"
    )
    assert (second.text, third.text, third.attempt) == ("two", "", 1)
    assert first.ts.endswith("Z")
    log.close_files()


def test_another_process_goes_on_after_a_line_that_was_cut_off(log: FileLog) -> None:
    log.write("x", {}, "one")
    with open(log.path("x"), "ab") as file:
        file.write(b'{"ts": "2025')
    log.close_files()
    log.write("x", {}, "two")
    log.close_files()
    assert texts(log) == ["one", "two"]


def test_long_lines_and_full_logs_are_cut(log: FileLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write("x", {}, "a" * (MAX_TEXT + 5))
    assert texts(log) == ["a" * MAX_TEXT + "…"]
    monkeypatch.setattr(task_log, "MAX_BYTES", 1_000)
    for _ in range(100):
        log.write("full", {}, "a" * 20)
    log.close_files()
    log.write("full", {}, "later")
    lines = asyncio.run(log.tail("full").read())
    assert lines[-1].full
    assert "the log is full" in lines[-1].text
    assert "later" not in texts(log, "full")
    assert log.path("full").stat().st_size < 1_300
    log.close_files()


def test_text_that_is_no_unicode_is_escaped(log: FileLog) -> None:
    log.write("x", {}, b"\xff".decode("utf-8", "surrogateescape"))
    assert texts(log) == ["\\udcff"]
    log.close_files()


def test_many_executions_share_few_open_files(log: FileLog) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
    for number in range(3 * task_log.OPEN_FILES):
        log.write(f"x{number}", {}, str(number))
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + task_log.OPEN_FILES + 1
    log.write("x0", {}, "again")
    assert texts(log, "x0") == ["0", "again"]
    log.close_files()


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = FileLog(tmp_path / "file" / "logs")
    log.write("x", {}, "lost")
    log.write("x", {}, "lost, too")
    assert isinstance(log.failure, OSError)


def test_a_reader_sees_what_is_new(log: FileLog) -> None:
    tail = log.tail("x")
    assert asyncio.run(tail.read()) == []
    log.write("x", {}, "one")
    assert [line.text for line in asyncio.run(tail.read())] == ["one"]
    with open(log.path("x"), "ab") as file:
        file.write(b'{"ts":"","te')
    assert asyncio.run(tail.read()) == []
    with open(log.path("x"), "ab") as file:
        file.write(b'xt":"two"}\nnot json\n')
    assert [line.text for line in asyncio.run(tail.read())] == ["two"]
    log.close_files()


def test_following_ends_when_all_is_read_of_children_that_come_meanwhile(
    recorded: RecordedExecutions, log: FileLog
) -> None:
    parent = recorded.begin(HOLD).start()
    parent.save()
    middle = recorded.begin(HOLD).start(parent=ParentTask(execution_id=parent.id, task_run_id="r5/0/say/1/1"))
    child = recorded.begin(BREAK, BROKEN)
    child.driver.run(parent=ParentTask(execution_id=middle.id, task_run_id="r5/0/say/1/1"))

    async def follow(store: Store) -> list[tuple[str, str, str]]:
        ended = asyncio.Event()
        seen: list[tuple[str, str, str]] = []
        record = await store.execution(parent.id)
        assert record is not None
        log.write(parent.id, {}, "one")
        async for lines in FamilyLog(store, log, record).follow(ended):
            seen += [(line.execution_id, line.child_path, line.line.text) for line in lines]
            if len(seen) == 1:
                log.write(child.id, {}, "two")
                await middle.save_in(store)
                await child.save_in(store)
            elif len(seen) == 2:
                log.write(child.id, {}, "nobody looks at one that has ended again")
                log.write(middle.id, {}, "three")
                log.write(parent.id, {}, "four")
                ended.set()
        return seen

    assert recorded.with_store(follow) == [
        (parent.id, "", "one"),
        (child.id, "docs/page", "two"),
        (middle.id, "docs/page", "three"),
        (parent.id, "", "four"),
    ]
    log.close_files()


def test_lines_of_children_stand_among_those_of_their_parent(
    noetl: InProcessCommand, recorded: RecordedExecutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "PAGE", 2)  # more children than are listed at once
    parent = recorded.run(GREET, GREETED)
    above = ParentTask(execution_id=parent, task_run_id="r5/0/say/1/1")
    children = [recorded.run(GREET, GREETED, parent=above) for _ in range(3)]
    lowest = recorded.run(
        BREAK, BROKEN, parent=ParentTask(execution_id=children[1], task_run_id="r5/0/say/1/1")
    )
    stranger = recorded.run(GREET, GREETED)
    log = FileLog(recorded.home.logs)
    order = [parent, children[0], lowest, parent, stranger, children[2]]
    for number, execution_id in enumerate(order):
        log.write(execution_id, {"step": "start", "task": "say" if number else "first"}, str(number))
    log.close_files()
    lines = noetl("executions", "logs", parent, "-o", "json").json["lines"]
    assert [(entry["text"], entry["execution_id"]) for entry in lines] == [
        (str(number), execution_id) for number, execution_id in enumerate(order) if execution_id != stranger
    ]
    printed = noetl("executions", "logs", parent).out.splitlines()
    assert [line.split("  ", 1)[1] for line in printed[:3]] == [
        "start/first  0",
        "[docs/page] start/say  1",
        "[docs/page] start/say  2",
    ]
    only = noetl("executions", "logs", parent, "--task", "say", "-o", "json").json["lines"]
    assert [entry["text"] for entry in only] == ["1", "2", "3", "5"]
    below = noetl("executions", "logs", children[1], "-o", "json").json["lines"]
    assert [entry["text"] for entry in below] == ["2"]


def test_a_log_is_removed_once(log: FileLog) -> None:
    log.write("x", {}, "one")
    log.close_files()
    assert (log.remove("x"), log.remove("x")) == (True, False)
