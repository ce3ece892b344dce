"""`noetl.open`: the executions of a home, for Python programs."""

import asyncio
import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import noetl
from noetl.kernel.errors import Refused
from noetl.model.normalisation import NotJson
from noetl.ports.store import ExecutionUnknown, StoreUnusable
from tests.cli.command_line import COMMAND, environment, run

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: it, path: test/it}\n"
HOLD = HEADER + (
    "workflow:\n- step: start\n"
    "  tool: [{name: door, kind: wait, signal: go}, {name: after, kind: noop, args: {said: '{{ door }}'}}]\n"
)
NEED = HEADER.replace("test/it", "test/need") + (
    "workflow: [{step: start, tool: {kind: python, code: \"result = open('wanted.txt').read() * 40000\"}}]\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hold.yaml").write_text(HOLD)
    (tmp_path / "need.yaml").write_text(NEED)
    (tmp_path / ".noetl").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Holder:
    """A process that runs `hold.yaml` and waits for its signal."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "run", "hold.yaml", "-o", "json"],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr
        for line in self.process.stderr:
            if "waits for the signal" in line:
                return
        raise AssertionError("it never waited")

    def end(self) -> str:
        out, _ = self.process.communicate(timeout=60)
        status: str = json.loads(out)["status"]
        return status


def test_what_a_home_holds_is_listed_and_shown(folder: Path) -> None:
    failed = noetl.run(folder / "need.yaml", labels={"team": "shop"})
    executions = noetl.open(folder / ".noetl")
    (entry,) = executions.list()
    assert (entry.execution_id, entry.playbook, entry.status) == (failed.execution_id, "test/need", "failed")
    assert (entry.labels, entry.parent) == ({"team": "shop"}, None)
    assert entry.ended_at is not None
    assert timedelta() < datetime.now(UTC) - entry.started_at < timedelta(minutes=5)
    assert entry.started_at <= entry.ended_at
    for nothing in (
        executions.list(status=["completed"]),
        executions.list(path="other"),
        executions.list(labels={"team": "x"}),
        executions.list(since=datetime.now(UTC)),
        executions.list(limit=0),
    ):
        assert nothing == []
    assert executions.list(status=["completed", "failed"], path="test/", since=entry.started_at) == [entry]
    assert executions.show(entry.execution_id[:20]) == failed
    printed = run("executions", "events", "latest", "-o", "json", cwd=folder).json["events"]
    assert executions.events() == printed
    assert executions.events("latest", after=3) == printed[3:]


def test_lists_go_on_beyond_a_page(folder: Path) -> None:
    text = HEADER + "workflow: [{step: start, tool: {kind: noop}}]\n"
    ids = [noetl.run(text).execution_id for _ in range(3)]
    executions = noetl.open()
    assert [entry.execution_id for entry in executions.list()] == ids[::-1]
    assert [entry.execution_id for entry in executions.list(limit=2)] == ids[:0:-1]


def test_failed_iterations_are_redriven_to_the_end(folder: Path) -> None:
    text = HEADER.replace("test/it", "test/loop") + (
        "workflow:\n- step: start\n"
        "  loop: {in: '{{ [1, 2] }}', iterator: n, spec: {policy: {failure: {mode: best_effort}}}}\n"
        "  tool: {kind: python, args: {n: '{{ n }}'}, code: \"result = n if n == 1 else open('w.txt').read()\"}\n"
    )
    (folder / "loop.yaml").write_text(text)
    assert noetl.run(folder / "loop.yaml").result == [1, None]
    (folder / "w.txt").write_text("two")
    executions = noetl.open(folder / ".noetl")
    with pytest.raises(Refused, match="no step `stat`"):
        executions.redrive(step="stat")
    assert executions.redrive("latest", "start").result == [1, "two"]
    with pytest.raises(Refused, match="no loop"):
        executions.redrive()


def test_a_failed_one_is_retried_to_its_end(folder: Path) -> None:
    noetl.run(folder / "need.yaml")
    executions = noetl.open(str(folder / ".noetl"))
    assert executions.retry("latest").status == "failed"
    (folder / "wanted.txt").write_text("ab")
    execution = executions.retry()
    assert (execution.status, execution.result) == ("completed", "ab" * 40_000)
    assert executions.show() == execution  # a large result is whole here, too
    for refused in (executions.retry, executions.resume):
        with pytest.raises(Refused, match="completed"):
            refused("latest")
    with pytest.raises(Refused, match="completed"):
        executions.signal("latest", "go")


def test_another_process_is_steered(folder: Path) -> None:
    holder = Holder(folder)
    executions = noetl.open()
    assert executions.show().status == "running"
    with pytest.raises(Refused, match="was not paused"):
        executions.resume()
    run("executions", "pause", "latest", cwd=folder)
    assert executions.resume("latest").status == "running"
    with pytest.raises(NotJson):
        executions.signal("latest", "go", object())
    executions.signal("latest", "go", {"by": "me"})
    assert holder.end() == "completed"
    assert executions.show().result == {"said": {"by": "me"}}


def test_what_a_killed_process_left_is_resumed_or_cancelled(folder: Path) -> None:
    holder = Holder(folder)
    holder.process.kill()
    holder.process.communicate()
    executions = noetl.open()
    executions.signal("latest", "go")
    assert executions.resume().result == {"said": True}
    holder = Holder(folder)
    executions.cancel("latest", "no longer needed")
    assert holder.end() == "cancelled"
    cancelled = [event["data"] for event in executions.events() if event["name"] == "CancelRequested"]
    assert [data["reason"] for data in cancelled] == ["no longer needed"]


def test_it_works_where_an_event_loop_runs(folder: Path) -> None:
    async def main() -> list[str]:
        await noetl.arun(folder / "need.yaml")
        executions = noetl.open()
        (folder / "wanted.txt").write_text("ab")
        return [executions.show().status, executions.retry().status, executions.list()[0].status]

    assert asyncio.run(main()) == ["failed", "completed", "completed"]


def test_where_nothing_is_nothing_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreUnusable, match="there are no executions here yet"):
        noetl.open(folder / "absent")
    assert not (folder / "absent").exists()
    noetl.run(folder / "need.yaml")
    monkeypatch.setenv("NOETL_STORE", "sqlite:///:memory:")
    with pytest.raises(StoreUnusable):
        noetl.open()
    with pytest.raises(ExecutionUnknown, match="there is no execution `x`"):
        noetl.open(folder / ".noetl").show("x")
