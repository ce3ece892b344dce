"""Executions that one process runs and others steer; processes that end in bad ways."""

import json
import os
import re
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from noetl.cli.command.executions.execution_filter import Matching, parse_where
from tests.cli.command_line import COMMAND, environment, run
from tests.playbooks import document_of
from tests.server.server_process import LOOPING, REPAIRED_LOOPING

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: it, path: test/it}\n"
GATE = HEADER + (
    "workflow:\n"
    "- step: start\n"
    "  tool: [{name: door, kind: wait, signal: go}, {name: after, kind: noop, args: {said: '{{ door }}'}}]\n"
)
MENDED = HEADER + (
    "workflow:\n"
    "- step: start\n"
    "  tool: {kind: noop}\n"
    "  set: {ctx.first: done}\n"
    "  next: {arcs: [{step: work}]}\n"
    "- step: work\n"
    "  tool: {name: read, kind: python, code: \"result = open('wanted.txt').read() + str(n)\", args: {n: '{{ ctx.n | default(0) }}'}}\n"
)
MEETING = HEADER + (
    "workflow:\n"
    "- step: start\n"
    "  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}\n"
    "- step: a\n"
    "  tool: {name: need, kind: shell, command: [test, -f, wanted.txt]}\n"
    "  next: {arcs: [{step: meet, when: \"{{ event.name == 'step.done' }}\", args: {a: 1}}]}\n"
    "- step: b\n"
    "  tool: {kind: noop}\n"
    "  next: {arcs: [{step: meet, when: \"{{ event.name == 'step.done' }}\", args: {b: 2}}]}\n"
    "- step: meet\n"
    "  spec: {policy: {join: all}}\n"
    "  tool: {kind: noop, args: {sum: '{{ args.a | default(0) + args.b | default(0) }}'}}\n"
)
BESIDE = HEADER + (
    "workflow:\n"
    "- step: start\n"
    "  next: {spec: {mode: inclusive}, arcs: [{step: work}, {step: door}]}\n"
    "- step: work\n"
    "  tool: {name: need, kind: shell, command: [test, -f, wanted.txt]}\n"
    "- step: door\n"
    "  tool: {kind: wait, signal: go}\n"
)
BUSY = HEADER + (
    "workflow:\n"
    "- step: start\n"
    "  tool: {kind: python, code: \"result = open('busy.yaml').name\"}\n"
    "  next: {arcs: [{step: busy}]}\n"
    "- step: busy\n"
    "  loop: {in: '{{ range(200) | list }}', iterator: i, spec: {mode: parallel}}\n"
    "  tool: {kind: noop, args: {text: \"{{ 'x' * 60000 }}{{ iter.i }}\"}}\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("gate", GATE),
        ("mended", MENDED),
        ("meeting", MEETING),
        ("beside", BESIDE),
        ("busy", BUSY),
    ):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


class Gate:
    """A process that runs a playbook, and has said all of `lines`: it waits for its signal."""

    def __init__(
        self, folder: Path, playbook: str = "gate.yaml", lines: tuple[str, ...] = ("waits for the signal",)
    ) -> None:
        self.place = folder
        self.process = subprocess.Popen(
            [*COMMAND, "run", playbook, "-o", "json"],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr
        missing = list(lines)
        for line in self.process.stderr:
            if line.startswith("execution "):
                self.execution_id = line.split()[1].rstrip(",")
            missing = [text for text in missing if text not in line]
            if not missing:
                return
        raise AssertionError("it never waited")

    def end(self) -> Any:
        out, _ = self.process.communicate(timeout=60)
        return json.loads(out)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def verb(folder: Path, *words: str) -> Any:
    ran = run("executions", *words, "-o", "json", cwd=folder)
    assert ran.code == 0, ran
    return ran.json


def test_another_process_signals_and_the_run_goes_on(folder: Path) -> None:
    gate = Gate(folder)
    assert verb(folder, "signal", gate.execution_id, "go", '{"by": "me"}')["recorded"]
    ended = gate.end()
    assert (ended["status"], ended["result"]) == ("completed", {"said": {"by": "me"}})
    refused = run("executions", "signal", "latest", "go", cwd=folder)
    assert (refused.code, "completed" in refused.err) == (2, True)


def test_another_process_pauses_resumes_and_cancels(folder: Path) -> None:
    gate = Gate(folder)
    assert verb(folder, "pause", "latest")["status"] == "paused"
    assert verb(folder, "resume", "latest")["status"] == "running"
    verb(folder, "cancel", "latest", "--reason", "no longer needed")
    assert gate.end()["status"] == "cancelled"
    names = [event["name"] for event in verb(folder, "events", "latest")["events"]]
    assert [name for name in names if name.startswith(("Execution", "Cancel"))] == [
        "ExecutionPaused",
        "ExecutionResumed",
        "CancelRequested",
    ]


def test_another_process_has_retried_what_failed_while_the_rest_waits(folder: Path) -> None:
    gate = Gate(folder, "beside.yaml", ("waits for the signal", "step work failed"))
    (folder / "wanted.txt").touch()
    again = run("executions", "retry", "latest", cwd=folder)
    assert (again.code, "runs again: work" in again.err, "opened again" in again.err) == (0, True, True)
    verb(folder, "signal", "latest", "go")
    ended = gate.end()
    assert (ended["status"], ended["steps"]["work"]) == ("completed", {"status": "completed", "runs": 1})


def test_a_retry_where_nothing_has_failed_is_refused_to_whoever_asks(folder: Path) -> None:
    gate = Gate(folder)
    refused = run("executions", "retry", "latest", cwd=folder)
    assert (refused.code, "nothing has failed" in refused.err) == (2, True)
    gate.kill()


def test_what_is_so_already_is_refused(folder: Path) -> None:
    gate = Gate(folder)
    for name, again, message in (
        ("resume", False, "the execution is running, and was not paused"),
        ("pause", True, "the execution is paused already"),
        ("resume", True, "the execution is running, and was not paused"),
    ):
        if again:
            verb(folder, name, "latest")
        ran = run("executions", name, "latest", "-o", "json", cwd=folder)
        assert (ran.code, ran.json["error"]["code"]) == (2, "refused")
        assert message in ran.json["error"]["message"]
    gate.kill()
    verb(folder, "pause", gate.execution_id)
    ran = run("executions", "pause", gate.execution_id, cwd=folder)
    assert (ran.code, "the execution is paused already" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("playbook", "status", "hint"),
    [("meeting", "failed", "executions retry"), ("fine", "completed", "executions show")],
)
def test_what_has_ended_is_not_resumed(folder: Path, playbook: str, status: str, hint: str) -> None:
    (folder / "fine.yaml").write_text(HEADER + "workflow: [{step: start, tool: {kind: noop}}]\n")
    run("run", f"{playbook}.yaml", cwd=folder)
    for words in ([], ["--no-run"]):
        ran = run("executions", "resume", "latest", *words, "-o", "json", cwd=folder)
        assert (ran.code, ran.json["error"]["code"]) == (2, "refused")
        assert f"the execution is {status}" in ran.json["error"]["message"]
    assert hint in run("executions", "resume", "latest", cwd=folder).err
    # To run it to its end is what `run --resume` promises, whoever did that.
    assert run("run", "--resume", "latest", "-o", "json", cwd=folder).json["status"] == status


def test_one_that_has_ended_is_resumed_for_the_children_that_have_not(folder: Path) -> None:
    (folder / "gate.yaml").write_text(HEADER + (
        "workflow: [{step: start, tool: {kind: playbook, path: test/child, spec: {wait: false}}}]\n"
    ))  # fmt: skip
    (folder / "child.yaml").write_text(GATE.replace("test/it", "test/child"))
    gate = Gate(folder)
    gate.kill()
    assert verb(folder, "show", gate.execution_id)["status"] == "completed"
    child = verb(folder, "list", "--path", "test/child")["executions"][0]["execution_id"]
    verb(folder, "signal", child, "go")
    ran = run("executions", "resume", gate.execution_id, "-q", "-o", "json", cwd=folder)
    assert (ran.code, ran.json["status"]) == (0, "completed")
    assert verb(folder, "show", child)["status"] == "completed"
    assert run("executions", "resume", gate.execution_id, cwd=folder).code == 2


@pytest.mark.parametrize("words", [[], ["-v"], ["-q"], ["-o", "json"]])
@pytest.mark.parametrize(("code", "last"), [(0, "result = {'sum': 3}"), (1, "raise ValueError('oh')")])
def test_watching_shows_what_running_shows(folder: Path, words: list[str], code: int, last: str) -> None:
    inner = "workflow: [{step: start, tool: {kind: python, code: 'result = 1'}}]\n"
    (folder / "inner.yaml").write_text(HEADER.replace("test/it", "test/inner") + inner)
    outer = (
        "workflow:\n"
        "- step: start\n"
        "  tool: {name: call, kind: playbook, path: test/inner}\n"
        "  next: {arcs: [{step: last, when: \"{{ event.name == 'step.done' }}\"}]}\n"
        f'- step: last\n  tool: {{name: code, kind: python, code: "{last}"}}\n'
    )
    (folder / "outer.yaml").write_text(HEADER + outer)
    ran = run("run", "outer.yaml", *words, cwd=folder)
    root = verb(folder, "list", "--path", "test/it")["executions"][0]["execution_id"]
    watched = run("executions", "watch", root, *words, cwd=folder)
    assert (watched.code, ran.code) == (code, code)
    if words == ["-o", "json"]:
        assert watched.json == ran.json
        return
    assert watched.out == ran.out
    # What began and ended before it was looked at is one line, and children come after what called them.
    lines = {text for text in ran.err.splitlines() if not text.startswith("execution ")}
    begun = {text for text in lines if re.search(r"step \S+$", text)}
    watched_lines = watched.err.splitlines()
    assert lines - begun <= set(watched_lines) <= lines
    assert watched_lines[-1:] == ran.err.splitlines()[-1:]
    assert words == ["-q"] or any("test/inner" in text for text in watched_lines)


def test_what_a_killed_process_left_can_be_steered_and_resumed(folder: Path) -> None:
    gate = Gate(folder)
    gate.kill()
    assert verb(folder, "signal", gate.execution_id, "go", "late")["recorded"]
    assert verb(folder, "pause", gate.execution_id)["status"] == "paused"
    ran = run("executions", "resume", gate.execution_id, "-o", "json", cwd=folder)
    assert (ran.code, ran.json["result"]) == (0, {"said": "late"})


def test_a_killed_one_can_be_cancelled_and_then_not_resumed(folder: Path) -> None:
    gate = Gate(folder)
    gate.kill()
    assert verb(folder, "cancel", gate.execution_id)["status"] == "cancelled"
    resumed = run("run", "--resume", gate.execution_id, "-o", "json", cwd=folder)
    assert (resumed.code, resumed.json["status"]) == (1, "cancelled")


def test_a_failed_one_is_retried_where_it_failed(folder: Path) -> None:
    failed = run("run", "mended.yaml", "-o", "json", cwd=folder)
    assert (failed.code, failed.json["error"]["step"]) == (1, "work")
    recorded = verb(folder, "retry", "latest", "--no-run")
    assert recorded["status"] == "running"
    (folder / "wanted.txt").write_text("found ")
    mended = run("run", "--resume", "latest", "-o", "json", cwd=folder)
    assert (mended.code, mended.json["result"]) == (0, "found 0")
    assert mended.json["steps"]["start"]["runs"] == 1
    again = run("executions", "retry", "latest", cwd=folder)
    assert (again.code, "only a failed execution" in again.err) == (2, True)


REPAIRED = """\
- step: start
  tool: {name: a, kind: python, code: "result = 1"}
  next: {arcs: [{step: work, when: "{{ event.name == 'step.done' }}"}]}
- step: work
  tool: {name: b, kind: python, code: "result = %s"}
"""


def test_a_failed_one_goes_on_with_a_repaired_playbook(folder: Path) -> None:
    (folder / "p.yaml").write_text(document_of(REPAIRED % "nothing"))
    failed = run("run", "p.yaml", cwd=folder)
    hint = next(line for line in failed.err.splitlines() if "--playbook" in line)
    words = hint.partition("noetl ")[2].partition("  ")[0].split()
    assert words[-2:] == ["--playbook", "p.yaml"]
    (folder / "p.yaml").write_text(document_of(REPAIRED % "5").replace("result = 1", "result = 2"))
    refused = run(*words, "-o", "json", cwd=folder)
    assert refused.code == 2
    assert refused.json["error"]["code"] == "refused"
    assert "p.yaml: step `start`, which has ended, is changed" in refused.json["error"]["message"]
    assert "fork" in refused.json["error"]["hint"]
    refused = run(*words, "--no-run", cwd=folder)
    assert (refused.code, "step `start`, which has ended" in refused.err) == (2, True)
    (folder / "p.yaml").write_text(document_of(REPAIRED % "5"))
    done = run(*words, "-o", "json", cwd=folder)
    assert (done.code, done.json["result"]) == (0, 5)
    assert verb(folder, "verify", "latest")["ok"]
    assert verb(folder, "show", "latest")["file"] == str(folder / "p.yaml")
    events = run("executions", "events", "latest", cwd=folder).out
    assert f"with {folder / 'p.yaml'}" in events


def test_a_repaired_playbook_can_be_recorded_first(folder: Path) -> None:
    (folder / "p.yaml").write_text(document_of(REPAIRED % "nothing"))
    assert run("run", "p.yaml", "-q", cwd=folder).code == 1
    text = document_of(REPAIRED % "5")
    recorded = run("executions", "retry", "latest", "--no-run", "--playbook", "-", cwd=folder, stdin=text)
    assert (recorded.code, "opened again; it is running" in recorded.err) == (0, True)
    assert run("run", "--resume", "latest", "-q", cwd=folder).out == "5\n"


def test_a_repaired_playbook_that_is_invalid_or_missing_changes_nothing(folder: Path) -> None:
    (folder / "p.yaml").write_text(document_of(REPAIRED % "nothing"))
    assert run("run", "p.yaml", "-q", cwd=folder).code == 1
    (folder / "q.yaml").write_text(document_of(REPAIRED % "5").replace("kind: python", "kind: pyhton"))
    for more in ((), ("--no-run",)):
        wrong = run("executions", "retry", "latest", "--playbook", "q.yaml", *more, cwd=folder)
        assert (wrong.code, "did you mean `python`?" in wrong.err) == (2, True)
        missing = run("executions", "retry", "latest", "--playbook", "none.yaml", *more, cwd=folder)
        assert (missing.code, "none.yaml" in missing.err) == (2, True)
    usage = run("executions", "retry", "latest", "--dialect", "draft", cwd=folder)
    assert (usage.code, "--playbook" in usage.err) == (2, True)
    assert verb(folder, "show", "latest")["status"] == "failed"


def test_a_retry_in_a_folder_without_executions_makes_none(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(document_of(REPAIRED % "5"))
    unknown = run("executions", "retry", "latest", "--playbook", "p.yaml", cwd=tmp_path)
    assert (unknown.code, "there are no executions" in unknown.err) == (2, True)
    assert not (tmp_path / ".noetl").exists()


def test_a_join_waits_for_the_retry_of_a_branch_that_failed(folder: Path) -> None:
    failed = run("run", "meeting.yaml", "-o", "json", cwd=folder)
    assert (failed.code, failed.json["waiting"]) == (1, [{"step": "meet", "reason": "the branch `a` failed"}])
    assert "step `meet` waits for a retry: the branch `a` failed" in failed.err
    recorded = run("executions", "retry", "latest", "--no-run", cwd=folder)
    assert (recorded.code, "runs again: a" in recorded.err) == (0, True)
    again = run("run", "--resume", "latest", "-o", "json", cwd=folder)
    assert (again.code, again.json["waiting"]) == (1, failed.json["waiting"])
    (folder / "wanted.txt").write_text("")
    mended = run("executions", "retry", "latest", "-o", "json", cwd=folder)
    assert (mended.code, mended.json["result"], mended.json["waiting"]) == (0, {"sum": 3}, [])
    assert mended.json["steps"]["meet"] == {"status": "completed", "runs": 1}
    assert "execution: runs again: a\n" in mended.err
    assert verb(folder, "verify", "latest")["ok"]


def test_a_failed_step_is_ended_by_hand_and_the_branch_goes_on(folder: Path) -> None:
    assert run("run", "meeting.yaml", "-q", cwd=folder).code == 1
    wrong = run("executions", "skip", "latest", "aa", cwd=folder)
    assert (wrong.code, "there is no step `aa`; did you mean `a`?" in wrong.err) == (2, True)
    ended = verb(folder, "complete", "latest", "a", "--result", '{"n": 1}')
    assert (ended["status"], ended["recorded"]) == ("running", True)
    done = run("run", "--resume", "latest", "-o", "json", cwd=folder)
    assert (done.code, done.json["result"]) == (0, {"sum": 3})
    assert done.json["steps"]["a"] == {"status": "completed", "runs": 1}
    assert verb(folder, "result", "latest", "a")["result"] == {"n": 1}
    assert verb(folder, "verify", "latest")["ok"]
    again = run("executions", "skip", "latest", "a", cwd=folder)
    assert (again.code, "the execution is completed" in again.err) == (2, True)


def test_another_process_skips_a_step_that_waits(folder: Path) -> None:
    gate = Gate(folder)
    assert verb(folder, "skip", gate.execution_id, "start")["recorded"]
    ended = gate.end()
    assert (ended["status"], ended["steps"]["start"]) == ("completed", {"status": "skipped", "runs": 1})
    assert "skipped" in run("executions", "show", "latest", cwd=folder).out
    no_result = run("executions", "result", "latest", "start", cwd=folder)
    assert (no_result.code, "was skipped" in no_result.err) == (2, True)


def test_what_a_timeout_cut_short_is_retried(folder: Path) -> None:
    failed = run("run", "gate.yaml", "--timeout", "2", "-o", "json", cwd=folder)
    assert (failed.code, failed.json["error"]["kind"]) == (1, "timeout")
    assert "noetl executions retry" in failed.err
    assert verb(folder, "retry", "latest", "--no-run")["status"] == "running"
    assert verb(folder, "signal", "latest", "go", "late")["recorded"]
    ran = run("run", "--resume", "latest", "-o", "json", cwd=folder)
    assert (ran.code, ran.json["result"]) == (0, {"said": "late"})


def test_a_fork_goes_on_by_itself_from_any_event(folder: Path) -> None:
    (folder / "wanted.txt").write_text("n is ")
    original = run("run", "mended.yaml", "-o", "json", cwd=folder).json
    events = verb(folder, "events", "latest")["events"]
    at = next(event["seq"] for event in events if event["name"] == "NextEvaluated")
    forked = run(
        "executions", "fork", "latest", "--at", str(at), "--ctx", '{"n": 7}', "-o", "json", cwd=folder
    )
    assert (forked.code, forked.json["result"], original["result"]) == (0, "n is 7", "n is 0")
    assert (forked.json["forked_from"], original["forked_from"]) == (original["execution_id"], None)
    assert verb(folder, "verify", "latest")["ok"]
    too_far = run("executions", "fork", original["execution_id"], "--at", "9999", cwd=folder)
    assert (too_far.code, "has no event 9999" in too_far.err) == (2, True)


def test_a_fork_that_is_only_recorded_says_how_to_run_it(folder: Path) -> None:
    (folder / "wanted.txt").write_text("n is ")
    assert run("run", "mended.yaml", "-q", "--home", "elsewhere", cwd=folder).code == 0
    words = ["fork", "latest", "--at", "5", "--no-run", "--home", "elsewhere"]
    last_line = run("executions", *words, cwd=folder).err.splitlines()[-1]
    resumed = run(*last_line.partition("noetl ")[2].split(), "-q", cwd=folder)
    assert (resumed.code, resumed.out) == (0, "n is 0\n")


def test_several_runs_share_one_folder(folder: Path) -> None:
    (folder / "wanted.txt").write_text("yes ")
    processes = [
        subprocess.Popen(
            [*COMMAND, "run", "mended.yaml", "-q", "-o", "json"],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
        )
        for _ in range(5)
    ]
    results = [json.loads(process.communicate(timeout=100)[0])["result"] for process in processes]
    assert results == ["yes 0"] * 5
    assert len(verb(folder, "list")["executions"]) == 5
    assert run("store", "check", cwd=folder).code == 0


def test_a_full_disk_ends_the_run_and_nothing_is_lost(folder: Path) -> None:
    run("run", "mended.yaml", "-q", cwd=folder)  # the store is there

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    full = subprocess.run(
        [*COMMAND, "run", "busy.yaml", "-o", "json"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=small,
        timeout=100,
    )
    assert full.returncode == 3, full
    error = json.loads(full.stdout)["error"]
    assert "can be resumed" in error["message"]
    resumed = run(*error["hint"].partition("noetl ")[2].split(), "-q", "-o", "json", cwd=folder)
    assert resumed.code == 0, resumed
    assert resumed.json["steps"]["busy"]["status"] == "completed"
    assert run("store", "check", cwd=folder).code == 0
    assert os.listdir(folder / ".noetl")


WAITING = HEADER + (
    "workflow:\n"
    "- step: start\n"
    "  tool: [{kind: wait, signal: %s}]\n"
    '  next: {arcs: [{step: end, when: "{{ ctx.signals.go }}"}, {step: end, when: "{{ signals.stop }}"}]}\n'
    "- step: end\n"
    "  tool: {kind: noop}\n"
)
NOBODY_WAITS = "nothing in `test/it` waits for the signal `%s`, only for `approved`, `go`, `stop`"


@pytest.mark.parametrize(
    ("waited", "sent", "warnings"),
    [
        (
            "approved",
            "aproved",
            [f"{NOBODY_WAITS % 'aproved'}; did you mean `approved`?"],
        ),
        (
            "approved",
            "other",
            [NOBODY_WAITS % "other"],
        ),
        ("approved", "go", []),
        ("approved", "stop", []),
        ("approved", "approved", []),
        ('"{{ workload.name }}"', "other", []),
    ],
)
def test_a_signal_that_nobody_waits_for_is_given_with_a_warning(
    folder: Path, waited: str, sent: str, warnings: list[str]
) -> None:
    (folder / "it.yaml").write_text(WAITING % waited)
    start = run("run", "it.yaml", "--set", "name=x", "--timeout", "1", "-o", "json", cwd=folder)
    execution_id = start.json["execution_id"]
    recorded = run("executions", "fork", execution_id, "--at", "4", "--no-run", "-o", "json", cwd=folder)
    forked = recorded.json["execution_id"]
    answer = verb(folder, "signal", forked, sent)
    assert (answer["recorded"], answer["warnings"]) == (True, warnings)
    text = run("executions", "signal", forked, sent, cwd=folder)
    assert [line for line in text.err.splitlines() if "warning" in line] == [
        f"warning: {w}" for w in warnings
    ]


def test_a_playbook_without_signals_waits_for_none(folder: Path) -> None:
    failed = run("run", "mended.yaml", "-o", "json", cwd=folder).json["execution_id"]
    recorded = run("executions", "retry", failed, "--no-run", "-o", "json", cwd=folder)
    assert recorded.json["warnings"] == []
    answer = verb(folder, "signal", failed, "go")
    assert answer["warnings"] == ["nothing in `test/it` waits for the signal `go`, nor for any other"]


def test_failed_iterations_are_redriven_here_and_with_another_playbook(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(LOOPING)
    ended = run("run", "p.yaml", "-o", "json", cwd=tmp_path).json
    assert (ended["status"], ended["result"]) == ("completed", {"sum": 4})
    recorded = run("executions", "redrive", "latest", "--no-run", cwd=tmp_path)
    assert "runs again: 1 failed iteration; then, behind them: total" in recorded.err
    assert run("run", "--resume", "latest", "-o", "json", cwd=tmp_path).json["result"] == {"sum": 4}
    (tmp_path / "p.yaml").write_text(REPAIRED_LOOPING)
    again = run("executions", "redrive", "latest", "--playbook", "p.yaml", cwd=tmp_path)
    assert (again.code, again.out) == (0, "sum: 6\n")
    assert "runs again: 1 failed iteration; then, behind them: total" in again.err
    refused = run("executions", "redrive", "latest", "-o", "json", cwd=tmp_path)
    assert (refused.code, refused.json["error"]["code"]) == (2, "refused")
    events = run("executions", "events", "latest", cwd=tmp_path).out
    assert events.count("IterationsRedriven") == 2
    assert "completed" in run("executions", "show", "latest", cwd=tmp_path).out
    assert run("executions", "verify", "latest", cwd=tmp_path).code == 0
    unregistered = run("executions", "redrive", "latest", "--version", "3", "-o", "json", cwd=tmp_path)
    assert unregistered.code == 2
    assert "examples/looping@3" in unregistered.json["error"]["message"]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("q=no price, is there?,status=failed", Matching(q="no price, is there?", status=("failed",))),
        ("status=failed,q=a=b,c=d,path=x", Matching(q="a=b,c=d", status=("failed",), path="x")),
        ("path=x, q=two ,", Matching(q="two ,", path="x")),
    ],
)
def test_commas_of_the_text_that_is_looked_for_are_part_of_it(text: str, matching: Matching) -> None:
    assert parse_where(text) == matching


def test_all_that_match_are_steered_on_the_embedded_store(folder: Path) -> None:
    for label in ("a", "a", "b"):
        failed = run("run", "mended.yaml", "--label", f"team={label}", "-o", "json", cwd=folder)
        assert failed.code == 1
    many = run("executions", "retry", "--where", "path=test/,label=team=a", "-o", "json", cwd=folder)
    assert (many.code, many.json["refused"]) == (0, 0)
    assert [verdict["status"] for verdict in many.json["executions"]] == ["running", "running"]
    cancelled = run("executions", "cancel", "--where", "status=running,since=1h", cwd=folder)
    assert (cancelled.code, "cancel: 2 executions" in cancelled.err) == (0, True)
    listed = run("executions", "list", "--error-kind", "python", "-o", "json", cwd=folder).json["executions"]
    assert [item["labels"] for item in listed] == [{"team": "b"}]
    refused = run("executions", "cancel", "--where", "status=failed", "-o", "json", cwd=folder)
    assert (refused.code, refused.json["refused"]) == (1, 1)
    all_failed = run("executions", "retry", "--where", "all", "-o", "json", cwd=folder)
    assert [verdict["status"] for verdict in all_failed.json["executions"]] == ["running"]
    signalled = run("executions", "signal", "--where", "roots=true,path=test/", "go", "[1]", cwd=folder)
    assert (signalled.code, "signal: 1 execution" in signalled.err) == (0, True)
    events = run("executions", "events", "latest", "-o", "json", cwd=folder).json["events"]
    (received,) = (event["data"] for event in events if event["name"] == "SignalReceived")
    assert received["payload"] == [1]


@pytest.mark.parametrize(
    "words",
    [
        ("cancel",),
        ("cancel", "latest", "--where", "path=a"),
        ("cancel", "--where", "colour=red"),
        ("cancel", "--where", "status"),
        ("cancel", "--where", "status=faild"),
        ("cancel", "--where", "status=failed,status=running"),
        ("cancel", "--where", "label=team"),
        ("cancel", "--where", "version=2"),
        ("cancel", "--where", "path=a,version=x"),
        ("cancel", "--where", "since=never"),
        ("cancel", "--where", ""),
        ("cancel", "--where", "all,path=a"),
        ("cancel", "--where", "roots=true"),
        ("cancel", "--where", "path=a,roots=no"),
        ("signal", "latest"),
        ("signal", "--where", "path=a"),
        ("signal", "--where", "path=a", "id", "go", "1"),
        ("signal", "--where", "path=a", "go", "--wait", "r1"),
        ("retry", "--where", "path=a", "--version", "2"),
        ("list", "--version", "2"),
        ("list", "--until", "never"),
    ],
)
def test_what_does_not_say_which_executions_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = run("executions", *words, cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
