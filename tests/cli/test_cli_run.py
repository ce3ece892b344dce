"""`noetl run`, as people and programs use it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from noetl.cli import main
from tests.cli.command_line import DRAFT, environment, run, run_on_terminal
from tests.cli.run_playbooks import GREET, HEADER


def result_of(folder: Path, *arguments: str, stdin: str = "") -> Any:
    ran = run("run", *arguments, "-q", "-o", "json", cwd=folder, stdin=stdin)
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.json["result"]


def test_a_good_run_prints_its_result_and_keeps_its_history(folder: Path) -> None:
    ran = run("run", "greet.yaml", cwd=folder)
    assert ran.code == 0
    assert ran.out == "workload:\n  name: World\n  deep:\n    a: 1\n    b: 2\nctx: {}\n"
    lines = ran.err.splitlines()
    assert lines[0].startswith("execution ")
    assert lines[0].endswith(f", kept in {folder}/.noetl")
    assert [line.partition(" ")[2].partition(" in ")[0] for line in lines[1:-1]] == [
        "step start",
        "step start done",
    ]
    assert lines[-1].startswith("completed in ")
    assert (folder / ".noetl" / ".gitignore").read_text() == "*\n"


def test_json_is_one_document_and_quiet_is_silent(folder: Path) -> None:
    loud, quiet = (run("run", "greet.yaml", "-o", "json", *flags, cwd=folder) for flags in ([], ["-q"]))
    assert set(loud.json) == {
        "execution_id",
        "playbook",
        "version",
        "status",
        "result",
        "ctx",
        "error",
        "duration_ms",
        "discarded",
        "waiting",
        "steps",
        "forked_from",
        "warnings",
    }
    assert "step start done" in loud.err
    assert quiet.err == ""
    assert quiet.json["steps"] == {"start": {"status": "completed", "runs": 1}}
    assert run("run", "greet.yaml", "-q", cwd=folder).err == ""


def test_set_payload_and_ctx(folder: Path) -> None:
    (folder / "in.json").write_text('{"deep": {"a": 5}, "list": [1]}')
    result = result_of(
        folder,
        "greet.yaml",
        "--payload",
        "@in.json",
        "--set",
        "deep.c=x",
        "--set",
        "new.n=1",
        "--ctx",
        '{"k": [1]}',
    )
    assert result == {
        "workload": {"name": "World", "deep": {"a": 5, "b": 2, "c": "x"}, "list": [1], "new": {"n": 1}},
        "ctx": {"k": [1]},
    }
    assert (
        result_of(folder, "greet.yaml", "--payload", "@-", stdin='{"name": "Ann"}')["workload"]["name"]
        == "Ann"
    )


def test_a_playbook_may_come_from_standard_input(folder: Path) -> None:
    assert result_of(folder, "-", "--set", "name=Bob", stdin=GREET)["workload"]["name"] == "Bob"
    assert run("run", "-", "-q", "--dialect", "draft", cwd=folder, stdin=DRAFT).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'FILE'"),
        (["greet.yaml", "--resume", "x"], "FILE and --resume exclude each other"),
        (["--resume", "x", "--set", "a=1"], "--set is for a new execution"),
        (["--resume", "x", "--dry-run"], "--dry-run is for a new execution"),
        (["-", "--payload", "@-"], "standard input can be read once"),
        (["greet.yaml", "-q", "-v"], "-q and -v exclude each other"),
        (["greet.yaml", "--slots", "0"], "--slots"),
        (["greet.yaml", "--set", "a"], "there is no `=`"),
        (["greet.yaml", "--payload", "{"], "line 1, column 2"),
        (["greet.yaml", "--payload", "@none.json"], "none.json: No such file"),
        (["greet.yaml", "--ctx", "[1]"], "--ctx takes a mapping"),
        (["greet.yaml", "--label", "a"], "--label a"),
        (["greet.yaml", "--timeout", "soon"], "--timeout: soon"),
        (["greet.yaml", "--idempotency-key", ""], "'--idempotency-key': it is empty"),
        (["greet.yaml", "--idempotency-key", "\udcff"], "'--idempotency-key': it is not UTF-8"),
        (["--resume", "x", "--payload", ""], "--payload is for a new execution"),
        (["--resume", "x", "--timeout", ""], "--timeout is for a new execution"),
        (["--resume", "\udcff"], "'--resume': it is not UTF-8"),
        (["greet.yaml", "--set", ".".join("a" * 2_000) + "=1"], "it leads deeper than 100 levels"),
        (["greet.yaml", "--store", ""], "'--store': it is empty"),
        (["greet.yaml", "--store", "mysql://x"], "`mysql://x` is not the URL of a store"),
        (["none.yaml"], "there is no file none.yaml"),
        (["broken.yaml"], "the playbook has 1 error"),
        (["broken.yaml", "--dry-run"], "the playbook has 1 error"),
        (["--resume", "01939d2e-0000-7000-8000-000000000001"], "there are no executions in "),
        (["greet.yaml", "--catalog", "none"], "--catalog"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_request_runs_nothing(
    arguments: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Here and not in a process of its own: there are many of them.
    monkeypatch.chdir(folder)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "-o", "json"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (2, "")
    assert set(json.loads(out)) == {"error", "problems"}
    assert message in json.loads(out)["error"]["message"]
    assert not (folder / ".noetl").exists()


@pytest.mark.parametrize("arguments", [["broken.yaml"], ["--resume", "x"]])
def test_a_store_is_made_only_for_a_playbook_that_can_run(folder: Path, arguments: list[str]) -> None:
    before = sorted(folder.iterdir())
    assert run("run", *arguments, "--store", "sqlite:///new.db", cwd=folder).code == 2
    assert sorted(folder.iterdir()) == before


def test_a_wrong_request_is_told_on_standard_error(folder: Path) -> None:
    ran = run("run", "broken.yaml", cwd=folder)
    assert (ran.code, ran.out) == (2, "")
    assert "broken.yaml:3:1" in ran.err
    assert "the playbook has 1 error" in ran.err
    assert "  hint: near: {" in run("run", "greet.yaml", "--payload", "{", cwd=folder).err


def test_a_failing_run_says_what_where_and_why(folder: Path) -> None:
    ran = run("run", "failing.yaml", cwd=folder)
    assert (ran.code, ran.out) == (1, "")
    for words in (
        "step `start`, task `break`, attempt 1: python",
        "ValueError: no good",
        "failing.yaml:11:11",
        "    number: 1",
        'File "failing.yaml", line 11',
        "noetl executions retry ",
    ):
        assert words in ran.err
    json_run = run("run", "failing.yaml", "-o", "json", "-q", cwd=folder)
    assert (json_run.code, json_run.err) == (1, "")
    assert json_run.json["error"] == {
        "step": "start",
        "task": "break",
        "attempt": 1,
        "kind": "python",
        "message": "ValueError: no good",
    }
    assert "ValueError: no good" in run("run", "failing.yaml", "-q", cwd=folder).err


def test_whoever_waits_is_told_the_command_and_a_child_has_its_name(folder: Path) -> None:
    (folder / "child.yaml").write_text(
        HEADER.replace("test/it", "test/child")
        + "workflow:\n  - step: hold\n    tool: {name: it, kind: wait, signal: go, spec: {timeout: 0.1}}\n"
    )
    text = HEADER + "workflow:\n  - step: start\n    tool: {name: it, kind: playbook, path: test/child}\n"
    (folder / "parent.yaml").write_text(text)
    ran = run("run", "parent.yaml", cwd=folder)
    assert ran.code == 1
    assert re.search(
        r"\[test/child\] step hold: waits for the signal; send it with: noetl executions signal [-0-9a-f]{36} go\n",
        ran.err,
    )
    assert "step `start`, task `it`, attempt 1: child_failed" in ran.err


def test_relative_paths_start_at_the_file_of_the_playbook(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "code.py").write_text("result = 'found'\n")
    (folder / "deep" / "it.yaml").write_text(
        HEADER + "workflow:\n  - step: start\n    tool: {name: it, kind: python, script: code.py}\n"
    )
    assert result_of(folder, "deep/it.yaml") == "found"


def test_verbose_tells_every_task(folder: Path) -> None:
    err = run("run", "greet.yaml", "-v", cwd=folder).err
    assert "step start: task say, attempt 1\n" in err
    assert "step start: task say: ok, continue\n" in err


def test_on_a_terminal_progress_is_drawn_and_colour_can_be_turned_off(folder: Path) -> None:
    ran = run_on_terminal("run", "greet.yaml", cwd=folder)
    assert (ran.code, ran.out.count("\n")) == (0, 6)
    colourful, plain, dumb = (drawn(folder, **env) for env in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}))
    assert "✓" in colourful
    assert "\x1b[32m" in colourful
    assert "✓" in plain
    assert "\x1b[3" not in plain
    assert "step start done in" in dumb
    assert "\x1b" not in dumb
    assert "✓" not in drawn(folder, "-o", "json")


def drawn(folder: Path, *arguments: str, **env: str) -> str:
    """What a run draws when standard error is a terminal."""
    env = {"LANG": "C.UTF-8", **env}
    return run_on_terminal("run", "greet.yaml", *arguments, cwd=folder, env=env, terminal="stderr").err
