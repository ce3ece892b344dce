"""`noetl executions events`, `logs` and `watch`: what was, and what comes while they look."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from noetl.engine.task_log import FileLog
from noetl.kernel.net.commands import Pause, Signal
from noetl.ports.ledger import LogSource
from noetl.stores.ownership import Owners
from tests.cli.command_line import COMMAND, environment, run
from tests.executions.execution_playbooks import BREAK, BROKEN, GREET, GREETED, HOLD
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecution, RecordedExecutions

LOG_LABELS: LogSource = {"step": "start", "run": "r5", "task": "say", "attempt": 1}


def names(ran: Any) -> list[str]:
    return [event["name"] for event in ran.json["events"]]


def test_events_are_envelopes(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    name = recorded.run(GREET, GREETED, trace_id="t" * 32)
    events = noetl("executions", "events", name, "-o", "json").json["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["event_id"] == f"{name}/1"
    assert {event["trace_id"] for event in events} == {"t" * 32}
    assert events[-1]["name"] == "PlaybookProcessed"


@pytest.mark.spec("003 §9.3")
def test_the_draft_form_of_envelopes_is_json_with_its_names(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    name = recorded.run(GREET, GREETED, trace_id="t" * 32)
    canonical = noetl("executions", "events", name, "-o", "json").json["events"]
    draft = noetl("executions", "events", name, "--envelope", "draft").json["events"]
    assert [event["event_type"] for event in draft][-1] == "playbook.processed"
    assert {event["trace_id"] for event in draft} == {"t" * 32}
    assert [event["payload"] for event in draft] == [event["data"] for event in canonical]
    assert [event["ts"] for event in draft] == [event["timestamp"] for event in canonical]
    assert noetl("executions", "events", name, "--envelope", "canonical").json["events"] == canonical
    lines = noetl("executions", "events", name, "--envelope", "draft", "--follow").out.splitlines()
    assert [json.loads(line) for line in lines] == draft
    refused = noetl("executions", "events", name, "--envelope", "drft")
    assert refused.code == 2
    assert "draft" in refused.err


def test_events_are_filtered(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED)
    for words, expected in (
        ("--name step.done", ["StepDone", "StepDone"]),
        ("--name StepDone --step finish", ["StepDone"]),
        ("--name step.started --name task.done --step start", ["StepScheduled", "TaskProcessed"]),
        ("--name token.created --after 4", ["TokenEnqueued"]),
        ("--after 999", []),
        ("--step nowhere", []),
    ):
        ran = noetl("executions", "events", "latest", "-o", "json", *words.split())
        assert names(ran) == expected, words
    steps = noetl("executions", "events", "latest", "--step", "finish", "-o", "json")
    assert names(steps)[0] == "TokenEnqueued"
    assert names(steps)[-1] == "StepDone"


def test_an_unknown_name_gets_a_hint(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED)
    ran = noetl("executions", "events", "latest", "--name", "step.dne")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean `step.done`?" in ran.err


def test_people_get_a_line_for_each_event(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(BREAK, BROKEN)
    lines = noetl("executions", "events", "latest").out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert any("TaskProcessed" in line and "connection: it broke" in line for line in lines)


def test_following_what_nobody_runs_ends(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    for name in (recorded.run(GREET, GREETED), recorded.run(HOLD)):
        ran = noetl("executions", "events", name, "--follow", "-o", "json")
        assert ran.code == 0
        assert [json.loads(line)["seq"] for line in ran.out.splitlines()][:3] == [1, 2, 3]


@contextmanager
def following(recorded: RecordedExecutions, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    folder = recorded.home.folder.parent
    with subprocess.Popen(
        [*COMMAND, "executions", *arguments],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        yield child


def line(child: "subprocess.Popen[bytes]", *, error: bool = False) -> str:
    stream = child.stderr if error else child.stdout
    assert stream is not None
    return stream.readline().decode()


def read_until(child: "subprocess.Popen[bytes]", word: str, *, error: bool = False) -> str:
    while True:
        text = line(child, error=error)
        assert text, "it ended"
        if word in text:
            return text


@pytest.fixture
def held(recorded: RecordedExecutions) -> RecordedExecution:
    """An execution that waits for the signal `go`."""
    execution = recorded.begin(HOLD)
    execution.driver.run()
    execution.save()
    return execution


def test_events_are_followed_while_another_process_writes_them(
    recorded: RecordedExecutions, held: RecordedExecution
) -> None:
    ownership = Owners(recorded.home.owners).acquire(held.id)
    assert ownership is not None
    with following(recorded, "events", held.id, "--follow", "-o", "json") as child:
        read_until(child, "RunSuspended")
        held.driver.submit(Signal("go"))
        held.save()
        assert json.loads(line(child))["name"] == "SignalReceived"
        held.driver.run()
        held.save()
        assert json.loads(read_until(child, "PlaybookProcessed"))["data"]["status"] == "completed"
        assert child.wait() == 0
    ownership.release()


def test_watching_ends_with_the_execution(recorded: RecordedExecutions, held: RecordedExecution) -> None:
    ownership = Owners(recorded.home.owners).acquire(held.id)
    assert ownership is not None
    with following(recorded, "watch", held.id) as child:
        read_until(child, "waits for the signal", error=True)
        held.driver.submit(Signal("go"))
        held.driver.run()
        held.save()
        assert child.stderr is not None
        assert (child.wait(), "completed in" in child.stderr.read().decode()) == (0, True)
    ownership.release()


@pytest.mark.parametrize("paused", [True, False])
def test_watching_ends_when_the_owner_is_gone(
    recorded: RecordedExecutions, held: RecordedExecution, paused: bool
) -> None:
    ownership = Owners(recorded.home.owners).acquire(held.id)
    assert ownership is not None
    with following(recorded, "watch", held.id) as child:
        read_until(child, "waits for the signal", error=True)
        if paused:
            held.driver.submit(Pause())
            held.save()
            read_until(child, "paused; go on with", error=True)
        ownership.release()
        assert child.stderr is not None
        errors = child.stderr.read().decode()
        assert child.wait() == 1
    assert (f"executions resume {held.id}" if paused else f"run --resume {held.id}") in errors


def test_watching_says_how_it_ended(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    good, bad = recorded.run(GREET, GREETED), recorded.run(BREAK, BROKEN)
    assert noetl("executions", "watch", good).code == 0
    ran = noetl("executions", "watch", bad)
    assert (ran.code, "it broke" in ran.err) == (1, True)
    json_run = noetl("executions", "watch", bad, "-o", "json")
    assert (json_run.code, json_run.json["status"], json_run.json["error"]["kind"]) == (
        1,
        "failed",
        "connection",
    )


def test_a_reader_that_left_ends_the_following(recorded: RecordedExecutions, held: RecordedExecution) -> None:
    ownership = Owners(recorded.home.owners).acquire(held.id)
    assert ownership is not None
    with following(recorded, "events", held.id, "--follow") as child:
        read_until(child, "RunSuspended")
        assert child.stdout is not None
        child.stdout.close()
        held.driver.submit(Signal("go"))
        held.save()
        assert child.wait() == 0
    ownership.release()


def test_logs_are_filtered_and_shown(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    name = recorded.run(GREET, GREETED)
    assert noetl("executions", "logs", name).err == "nothing was written\n"
    assert noetl("executions", "logs", name, "-o", "json").json == {"lines": []}
    log = FileLog(recorded.home.logs)
    log.write(name, LOG_LABELS, "one\x1b[2J")
    log.write(name, {**LOG_LABELS, "step": "finish", "task": "end", "iteration": 2, "attempt": 3}, "two")
    log.close_files()
    output = noetl("executions", "logs", name).out
    assert "start/say" in output
    assert "finish/end[2]#3" in output
    assert "\x1b" not in output
    for words, expected in (("--step start", ["one\x1b[2J"]), ("--task end", ["two"]), ("--task x", [])):
        lines = noetl("executions", "logs", name, *words.split(), "-o", "json").json["lines"]
        assert [entry["text"] for entry in lines] == expected
    assert set(noetl("executions", "logs", name, "-o", "json").json["lines"][0]) == {
        "ts", "step", "run", "task", "text", "execution_id",
    }  # fmt: skip


def test_logs_are_followed_while_another_process_writes_them(
    recorded: RecordedExecutions, held: RecordedExecution
) -> None:
    log = FileLog(recorded.home.logs)
    ownership = Owners(recorded.home.owners).acquire(held.id)
    assert ownership is not None
    log.write(held.id, LOG_LABELS, "one")
    with following(recorded, "logs", held.id, "--follow", "-o", "json") as child:
        assert json.loads(line(child))["text"] == "one"
        log.write(held.id, LOG_LABELS, "two")
        assert json.loads(line(child))["text"] == "two"
        log.write(held.id, LOG_LABELS, "three")
        ownership.release()
        assert json.loads(line(child))["text"] == "three"
        assert child.wait() == 0
    log.close_files()


def test_owners_are_waited_for_in_other_processes(
    recorded: RecordedExecutions, held: RecordedExecution
) -> None:
    """The follower itself owns nothing: the execution can be claimed while somebody watches it."""
    ownership = Owners(recorded.home.owners).acquire(held.id)
    assert ownership is not None
    with following(recorded, "watch", held.id) as child:
        read_until(child, "waits for the signal", error=True)
        ownership.release()
        assert child.wait() == 1
    again = Owners(recorded.home.owners).acquire(held.id)
    assert again is not None
    again.release()
    assert run("executions", "watch", held.id, cwd=recorded.home.folder.parent).code == 1


def test_people_see_one_zone_and_programs_utc(
    noetl: InProcessCommand, recorded: RecordedExecutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = recorded.run(GREET, GREETED)
    path = FileLog(recorded.home.logs).path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        '{"ts":"2023-11-14T22:13:20.000000Z","step":"start","run":"r5","task":"say","text":"one"}\n'
    )
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        local = "2023-11-15 07:13:20"  # what the driver's clock shows there
        assert noetl("executions", "logs", name).out == f"{local}  start/say  one\n"
        assert f"     1  {local}  Playbook" in noetl("executions", "events", name).out
        assert local in noetl("executions", "list").out
        assert f"started   {local}" in noetl("executions", "show", name).out
        (line,) = noetl("executions", "logs", name, "-o", "json").json["lines"]
        assert line["ts"] == "2023-11-14T22:13:20.000000Z"
        assert noetl("executions", "show", name, "-o", "json").json["started_at"] == line["ts"]
        pruned = noetl("executions", "prune", "--before", "2023-11-15T07:13:20", "--dry-run")
        assert local in pruned.err
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
