"""`noetl executions show`, `replay`, `result` and `verify`, and pictures of executions."""

import re
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from noetl.events.bodies import ParentTask
from noetl.kernel.net.commands import Cancel, Pause, Retry, Signal
from noetl.stores.ownership import Owners
from tests.cli.command_line import run, run_on_terminal
from tests.executions.execution_playbooks import BREAK, BROKEN, GATES, GREET, GREETED, HOLD, MEET
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecutions
from tests.kernel.driver import Fault, error

RUN_KEYS = {
    "execution_id", "playbook", "version", "status", "result", "ctx", "error", "duration_ms", "discarded", "waiting", "steps",
    "forked_from",
}  # fmt: skip


def test_show_has_what_run_prints_and_more(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    name = recorded.run(GREET, GREETED, labels={"team": "data"}, ctx={"a": 1}, version="7")
    child = recorded.run(BREAK, BROKEN, parent=ParentTask(execution_id=name, task_run_id="r5/0/say/1/1"))
    document = noetl("executions", "show", name, "-o", "json").json
    assert set(document) > RUN_KEYS
    assert (document["status"], document["result"], document["ctx"]) == ("completed", "bye", {"a": 1})
    assert (document["playbook"], document["version"], document["error"]) == ("docs/page", "7", None)
    assert document["steps"] == {
        "start": {"status": "completed", "runs": 1, "duration_ms": 0},
        "finish": {"status": "completed", "runs": 1, "duration_ms": 0},
    }
    assert document["children"] == [{"execution_id": child, "path": "docs/page", "status": "failed"}]
    assert (document["labels"], document["parent"], document["owner"]) == ({"team": "data"}, None, None)
    assert [run["step"] for run in document["explanation"]["runs"]] == ["start", "finish"]
    assert noetl("executions", "show", child, "-o", "json").json["parent"] == name


def test_people_are_told_which_guard_chose_which_arc(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.run(GREET, GREETED)
    output = noetl("executions", "show", "latest").out
    assert "→ finish: {{ event.result.a == 1 }} (line 10) holds: event.result.a = 1" in output
    assert "result:\n  bye" in output
    assert "noetl run --resume" not in output


def test_people_are_told_what_failed_and_how_to_go_on(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    name = recorded.run(BREAK, BROKEN)
    output = noetl("executions", "show", name).out
    assert "step `start`, task `say`, attempt 1: connection" in output
    assert "playbook.yaml:7:14" in output
    assert f"noetl executions retry {name}" in output
    document = noetl("executions", "show", name, "-o", "json").json
    assert document["error"] == {
        "step": "start", "task": "say", "attempt": 1, "kind": "connection", "message": "it broke\nbadly",
    }  # fmt: skip


def test_people_are_told_what_is_waited_for(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    name = recorded.run(GATES)
    output = noetl("executions", "show", name).out
    assert "is waiting before gate (line 15)" in output
    assert "{{ ctx.ok }} (line 15) does not hold: ctx.ok is missing" in output
    assert "the join (all) of meet (line 21) has 1 token; more can come from hold (1 run)" in output
    assert "hold (line 10) waits for the signal go" in output
    assert "a token from start (line 9) for gone (line 17): denied" in output
    assert f"noetl executions signal {name} go " in output
    assert f"noetl run --resume {name} " in output
    marking = noetl("executions", "show", name, "-o", "json").json["marking"]
    assert marking == {"gate": {"waiting": 1}, "meet": {"joined": 1}, "hold": {"suspended": 1}}


def test_ways_on_follow_the_state(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    execution = recorded.begin(HOLD)
    execution.driver.run()
    execution.driver.submit(Pause())
    execution.save()
    assert f"noetl executions resume {execution.id}" in noetl("executions", "show", "latest").out
    ownership = Owners(recorded.home.owners).acquire(execution.id)
    assert ownership is not None
    with ownership:
        document = run("executions", "show", "latest", "-o", "json", cwd=recorded.home.folder.parent).json
    assert document["owner"] is not None
    execution.driver.submit(Cancel(by="ada", reason="enough"))
    execution.save()
    ran = noetl("executions", "show", "latest")
    assert "cancelled after" in ran.out
    assert "  cancel    by ada: enough\n" in ran.out
    assert "noetl executions resume" not in ran.out


def test_an_execution_that_somebody_runs_gets_older(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    """The events of this one are years old; what nobody runs is as old as its last event."""
    execution = recorded.begin(HOLD)
    execution.driver.run()
    execution.save()
    assert noetl("executions", "show", "latest").out.startswith("interrupted, 0.00 s so far: ")
    ownership = Owners(recorded.home.owners).acquire(execution.id)
    assert ownership is not None
    with ownership:
        folder = recorded.home.folder.parent
        output, listed = (
            run("executions", *words, cwd=folder).out for words in (["show", "latest"], ["list"])
        )
    assert re.match(r"running, [\d,]{5,} h .* so far: ", output)
    assert re.search(r"running +\S+ \S+ +[\d,]{5,} h ", listed)


def test_hostile_values_do_not_steer_the_terminal(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.run(GREET, {"say": {"a": 1, "b": "\x1b[2J"}, "end": "\x1b[2J"}, labels={"\x1b[2J": "\n"})
    for verb in ("show", "events", "replay", "watch"):
        ran = noetl("executions", verb, "latest")
        assert "\x1b" not in ran.out + ran.err
    assert "\x1b" not in noetl("executions", "list").out


def test_replay_shows_the_state_as_it_was(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED, ctx={"a": 1})
    then = noetl("executions", "replay", "latest", "--at", "7", "-o", "json").json
    assert (then["at"], then["status"], then["ctx"], then["result"]) == (7, "running", {"a": 1}, None)
    assert then["marking"] == {"start": {"claimed": 1}}
    assert then["runs"][0]["iterations"][0]["task"] == "say"
    early = noetl("executions", "replay", "latest", "--at", "4", "-o", "json").json
    assert [(token["token"], token["place"]) for token in early["tokens"]] == [("t4", "enqueued")]
    end = noetl("executions", "replay", "latest", "-o", "json").json
    assert (end["at"], end["of"], end["result"], end["marking"]) == (end["of"], end["of"], "bye", {})
    assert "status: completed" in noetl("executions", "replay", "latest").out


@pytest.mark.parametrize("at", ["0", "-1", "99", "x"])
def test_replay_refuses_what_is_no_event(
    noetl: InProcessCommand, recorded: RecordedExecutions, at: str
) -> None:
    recorded.run(GREET, GREETED)
    ran = noetl("executions", "replay", "latest", "--at", at)
    assert (ran.code, ran.out) == (2, "")
    assert "--at" in ran.err


def test_results_are_printed_whole(
    noetl: InProcessCommand, recorded: RecordedExecutions, tmp_path: Path
) -> None:
    name = recorded.run(GREET, {"say": {"a": 1}, "end": "by\x1be"})
    assert noetl("executions", "result", name).out == "by\x1be\n"
    assert noetl("executions", "result", name, "start").out == '{\n  "a": 1\n}\n'
    assert noetl("executions", "result", name, "start", "-o", "json").json == {
        "execution_id": name, "step": "start", "result": {"a": 1},
    }  # fmt: skip
    ran = noetl("executions", "result", name, "-f", "out.txt", "-o", "json")
    assert ran.json == {"execution_id": name, "step": None, "file": "out.txt", "bytes": 4}
    assert (tmp_path / "out.txt").read_bytes() == b"by\x1be"


def test_what_is_kept_elsewhere_is_put_in_its_place(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    large = {"rows": ["x" * 100_000], "$noetl": "mine"}
    name = recorded.run(GREET, {"say": {"a": 1}, "end": large})
    result = noetl("executions", "show", name, "-o", "json").json["result"]
    assert result["$noetl"] == "ref"
    for words in ([], ["finish"]):
        assert noetl("executions", "result", name, *words, "-o", "json").json["result"] == large
    shutil.rmtree(recorded.home.results)
    missing = noetl("executions", "result", name)
    assert (missing.code, missing.out) == (3, "")
    assert "nothing is stored under" in missing.err


def test_a_result_does_not_steer_the_terminal(recorded: RecordedExecutions) -> None:
    recorded.run(GREET, {"say": {"a": 1}, "end": "one\n\x1b[2J"})
    output = run_on_terminal("executions", "result", "latest", cwd=recorded.home.folder.parent).out
    assert output == "one\n␛[2J\n"


def test_a_result_that_is_not_there_is_asked_for_in_vain(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    failed, held = recorded.run(BREAK, BROKEN), recorded.run(GATES)
    for words, message in (
        ([held], "has no result yet"),
        ([held, "hold"], "no run of step `hold` has ended"),
        ([held, "nowhere"], "has no step `nowhere`"),
        ([failed, "start"], "failed: it broke"),
    ):
        ran = noetl("executions", "result", *words)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err


def test_a_history_comes_out_the_same(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED)
    ran = noetl("executions", "verify", "latest")
    assert (ran.code, "comes out the same" in ran.out) == (0, True)
    verification = noetl("executions", "verify", "latest", "-o", "json").json
    assert (verification["ok"], verification["differences"]) == (True, [])


def test_a_history_that_was_tampered_with_comes_out_differently(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    name = recorded.run(GREET, GREETED)
    tamper(recorded, b'"a":1', b'"a":2')
    ran = noetl("executions", "verify", name)
    assert (ran.code, "comes out differently" in ran.out) == (1, True)
    json_run = noetl("executions", "verify", name, "-o", "json")
    assert (json_run.code, json_run.json["ok"], len(json_run.json["differences"])) == (1, False, 1)


UNCHECKED = "UPDATE event SET checksum = NULL"
"""Makes a store one of an older release, whose events can be changed unnoticed."""


def tamper(recorded: RecordedExecutions, old: bytes, new: bytes) -> None:
    """Changes bodies in the file, behind everybody's back; those of an older release."""
    connection = apsw.Connection(str(recorded.home.store))
    rows: list[Any] = list(connection.execute("SELECT pos, body FROM event"))
    for pos, body in rows:
        connection.execute("UPDATE event SET body = ? WHERE pos = ?", (body.replace(old, new), pos))
    connection.execute(UNCHECKED)
    connection.close()


@pytest.mark.parametrize("verb", ["show", "events", "watch", "result", "replay", "verify"])
def test_a_newer_event_is_the_environments_fault(
    noetl: InProcessCommand, recorded: RecordedExecutions, verb: str
) -> None:
    name = recorded.run(GREET, GREETED)
    connection = apsw.Connection(str(recorded.home.store))
    connection.execute("UPDATE event SET v = 99 WHERE seq = 5")
    connection.execute(UNCHECKED)
    connection.close()
    ran = noetl("executions", verb, name)
    assert ran.code == 3
    assert f"event 5 of {name}" in ran.err
    assert "hint: upgrade noetl" in ran.err


def test_a_picture_is_coloured_by_what_happened(
    noetl: InProcessCommand, recorded: RecordedExecutions, tmp_path: Path
) -> None:
    name = recorded.run(GATES)
    drawn = noetl("graph", "--execution", name, "--format", "mermaid").out
    assert "start (start, completed)" in drawn
    assert "hold (waiting)" in drawn
    (tmp_path / "a.yaml").write_text(recorded.begin(GREET).text)
    other = noetl("graph", "a.yaml", "--execution", name, "--format", "mermaid").out
    assert "start (start, completed)" in other
    assert "finish" in other
    assert noetl("graph", "--execution", "x").code == 2
    assert noetl("graph").code == 2


TWO_RUNS = """\
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: work, args: {n: 0}}, {step: work, args: {n: 1}}]}
  - step: work
    tool: {name: inv, kind: noop}
"""


def test_a_failed_run_shows_whatever_the_others_did(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.run(TWO_RUNS, {"inv": [Fault("python"), 1]})
    assert noetl("executions", "show", "latest", "-o", "json").json["steps"]["work"] == {
        "status": "failed",
        "runs": 2,
        "failed": 1,
        "duration_ms": 0,
    }
    assert re.search(
        r"^work +failed +2 \(1 failed\)", noetl("executions", "show", "latest").out, re.MULTILINE
    )
    picture = noetl("graph", "--execution", "latest", "--format", "dot").out
    assert "work (end, failed)" in picture


def test_show_tells_how_long_steps_and_runs_took(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    execution = recorded.begin(HOLD).start()
    execution.driver.run()
    execution.driver.now += 2_500_000
    execution.driver.submit(Signal("go"))
    execution.driver.run()
    execution.save()
    output = noetl("executions", "show", "latest").out
    assert re.search(r"^STEP +STATUS +RUNS +TIME\nstart +completed +1 +2.5 s$", output, re.MULTILINE)
    assert "start (line 5): done in 2.5 s" in output
    document = noetl("executions", "show", "latest", "-o", "json").json
    assert document["steps"]["start"]["duration_ms"] == 2_500
    assert document["explanation"]["runs"][0]["worked"] == 2_500_000


def test_people_are_told_what_waits_for_a_retry_and_why(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    name = recorded.run(MEET, {"ta": error()})
    document = noetl("executions", "show", name, "-o", "json").json
    assert document["waiting"] == [{"step": "meet", "reason": "the branch `a` failed"}]
    assert (document["steps"]["meet"]["status"], document["discarded"]) == ("waiting", [])
    (waiting,) = document["explanation"]["joins"]
    assert waiting["waits_for"] == [{"step": "a", "failed": 1}]
    output = noetl("executions", "show", name).out
    assert "step `meet` waits for a retry: the branch `a` failed" in output
    assert "has 2 tokens; more can come from a (1 failed run)" in output
    drawn = noetl("graph", "--execution", name, "--format", "mermaid").out
    assert re.search(r"class \w*meet\w* waiting|meet.*waiting", drawn)


def test_a_retried_one_says_what_runs_again_and_what_no_longer_counts(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    execution = recorded.begin(MEET, {"ta": [error(), 1]})
    execution.driver.run()
    execution.driver.submit(Retry("me"))
    execution.driver.run()
    execution.save()
    document = noetl("executions", "show", execution.id, "-o", "json").json
    assert (document["status"], document["result"], document["waiting"]) == ("completed", {"n": 2}, [])
    assert document["discarded"] == [{"step": "meet", "reason": "retried"}]
    output = noetl("executions", "show", execution.id).out
    assert "1 token for step `meet` discarded: a retry took the place of what had brought it" in output
    events = noetl("executions", "events", execution.id).out
    assert "runs again: a; what ran after the failure no longer counts: after by me" in events
    assert noetl("executions", "verify", execution.id).code == 0
