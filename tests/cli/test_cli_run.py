"""`noetl run`, as people and programs use it."""

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from noetl.cli import main
from tests.cli.command_line import BROKEN, COMMAND, DRAFT, Ran, environment, run, run_on_terminal

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: it, path: test/it}\n"
GREET = HEADER + (
    "workload: {name: World, deep: {a: 1, b: 2}}\n"
    "workflow:\n"
    "  - step: start\n"
    "    tool:\n"
    "      - name: say\n"
    "        kind: python\n"
    "        args: {workload: '{{ workload }}', ctx: '{{ ctx }}'}\n"
    "        code: |\n"
    "          result = {'workload': workload, 'ctx': ctx}\n"
)
FAILING = HEADER + (
    "workflow:\n"
    "  - step: start\n"
    "    tool:\n"
    "      - name: break\n"
    "        kind: python\n"
    "        args: {number: 1}\n"
    "        code: |\n"
    "          raise ValueError('no good')\n"
)
SLOW = HEADER + (
    "workflow:\n"
    "  - step: start\n"
    "    tool:\n"
    "      - name: first\n"
    "        kind: python\n"
    "        args: {file: '{{ workload.file }}'}\n"
    "        code: |\n"
    "          with open(file) as fifo:\n"
    "              result = fifo.read()\n"
    "      - name: second\n"
    "        kind: python\n"
    "        args: {before: '{{ _prev }}'}\n"
    "        code: result = before + ' and more'\n"
)
"""Its first task waits until somebody writes to a pipe."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    for name, text in (("greet", GREET), ("failing", FAILING), ("slow", SLOW), ("broken", BROKEN)):
        (place / f"{name}.yaml").write_text(text)
    return place


def result_of(place: Path, *arguments: str, stdin: str = "") -> Any:
    ran = run("run", *arguments, "-q", "-o", "json", cwd=place, stdin=stdin)
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.json["result"]


def test_a_good_run_prints_its_result_and_keeps_its_history(place: Path) -> None:
    ran = run("run", "greet.yaml", cwd=place)
    assert ran.code == 0
    assert ran.out == "workload:\n  name: World\n  deep:\n    a: 1\n    b: 2\nctx: {}\n"
    lines = ran.err.splitlines()
    assert lines[0].startswith("execution ")
    assert lines[0].endswith(f", kept in {place}/.noetl")
    assert [line.partition(" ")[2].partition(" in ")[0] for line in lines[1:-1]] == [
        "step start",
        "step start done",
    ]
    assert lines[-1].startswith("completed in ")
    assert (place / ".noetl" / ".gitignore").read_text() == "*\n"


def test_json_is_one_document_and_quiet_is_silent(place: Path) -> None:
    loud, quiet = (run("run", "greet.yaml", "-o", "json", *flags, cwd=place) for flags in ([], ["-q"]))
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
        "steps",
    }
    assert "step start done" in loud.err
    assert quiet.err == ""
    assert quiet.json["steps"] == {"start": {"status": "completed", "runs": 1}}
    assert run("run", "greet.yaml", "-q", cwd=place).err == ""


def test_set_payload_and_ctx(place: Path) -> None:
    (place / "in.json").write_text('{"deep": {"a": 5}, "list": [1]}')
    found = result_of(
        place,
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
    assert found == {
        "workload": {"name": "World", "deep": {"a": 5, "b": 2, "c": "x"}, "list": [1], "new": {"n": 1}},
        "ctx": {"k": [1]},
    }
    assert (
        result_of(place, "greet.yaml", "--payload", "@-", stdin='{"name": "Ann"}')["workload"]["name"]
        == "Ann"
    )


def test_a_playbook_may_come_from_standard_input(place: Path) -> None:
    assert result_of(place, "-", "--set", "name=Bob", stdin=GREET)["workload"]["name"] == "Bob"
    assert run("run", "-", "-q", "--dialect", "draft", cwd=place, stdin=DRAFT).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
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
    said: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Here and not in a process of its own: there are many of them.
    monkeypatch.chdir(place)
    for name, value in environment(place).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "-o", "json"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (2, "")
    assert set(json.loads(out)) == {"error", "problems"}
    assert said in json.loads(out)["error"]["message"]
    assert not (place / ".noetl").exists()


@pytest.mark.parametrize("arguments", [["broken.yaml"], ["--resume", "x"]])
def test_a_store_is_made_only_for_a_playbook_that_can_run(place: Path, arguments: list[str]) -> None:
    before = sorted(place.iterdir())
    assert run("run", *arguments, "--store", "sqlite:///new.db", cwd=place).code == 2
    assert sorted(place.iterdir()) == before


def test_a_wrong_request_is_told_on_standard_error(place: Path) -> None:
    ran = run("run", "broken.yaml", cwd=place)
    assert (ran.code, ran.out) == (2, "")
    assert "broken.yaml:3:1" in ran.err
    assert "the playbook has 1 error" in ran.err
    assert "  hint: near: {" in run("run", "greet.yaml", "--payload", "{", cwd=place).err


def test_an_unknown_execution_in_a_store_that_is_there(place: Path) -> None:
    assert run("run", "greet.yaml", "-q", cwd=place).code == 0
    ran = run("run", "--resume", "nothing", cwd=place)
    assert ran.code == 2
    assert "there is no execution `nothing`" in ran.err
    assert run("run", "--resume", "latest", "-q", cwd=place).code == 0


def test_a_failing_run_says_what_where_and_why(place: Path) -> None:
    ran = run("run", "failing.yaml", cwd=place)
    assert (ran.code, ran.out) == (1, "")
    for said in (
        "step `start`, task `break`, attempt 1: python",
        "ValueError: no good",
        "failing.yaml:7:",
        "    number: 1",
        'File "<code>", line 1',
        "noetl executions retry ",
    ):
        assert said in ran.err
    found = run("run", "failing.yaml", "-o", "json", "-q", cwd=place)
    assert (found.code, found.err) == (1, "")
    assert found.json["error"] == {
        "step": "start",
        "task": "break",
        "attempt": 1,
        "kind": "python",
        "message": "ValueError: no good",
    }
    assert "ValueError: no good" in run("run", "failing.yaml", "-q", cwd=place).err


def test_a_key_starts_an_execution_once(place: Path) -> None:
    first, second, other = (
        run("run", "greet.yaml", "-q", "-o", "json", "--idempotency-key", key, cwd=place).json
        for key in ("monday", "monday", "tuesday")
    )
    assert first == second
    assert other["execution_id"] != first["execution_id"]
    (place / "other.yaml").write_text((place / "greet.yaml").read_text().replace("path: ", "path: other/"))
    wrong = run("run", "other.yaml", "-o", "json", "--idempotency-key", "monday", cwd=place)
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "refused")
    assert first["execution_id"] in wrong.json["error"]["message"]
    listed = run("executions", "list", "-o", "json", cwd=place).json["executions"]
    assert [one["execution_id"] for one in listed] == [other["execution_id"], first["execution_id"]]


def test_a_timeout_fails_the_execution(place: Path) -> None:
    os.mkfifo(place / "fifo")
    arguments = ["slow.yaml", "--set", f"file={place}/fifo", "--timeout", "300ms"]
    ran = run("run", *arguments, "-q", "-o", "json", cwd=place)
    assert ran.code == 1
    assert (ran.json["status"], ran.json["error"]["kind"]) == ("failed", "timeout")


def test_home_and_store_are_where_they_are_said_to_be(place: Path) -> None:
    assert run("run", "greet.yaml", "-q", "--home", "elsewhere", cwd=place).code == 0
    assert (place / "elsewhere" / "store.db").is_file()
    assert run("run", "greet.yaml", "-q", cwd=place, env={"NOETL_STORE": "sqlite:///one.db"}).code == 0
    assert (place / "one.db").is_file()
    assert not (place / ".noetl").exists()
    ran = run("run", "failing.yaml", "-q", "--store", "sqlite:///one.db", cwd=place)
    assert " --store sqlite:///one.db" in ran.err
    wrong = run("run", "greet.yaml", "--store", "mysql://x", "-o", "json", cwd=place)
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "store-url")


@pytest.mark.parametrize("home", ["greet.yaml", "greet.yaml/x"])
def test_a_home_that_cannot_be_made_is_told_with_what_to_do(place: Path, home: str) -> None:
    ran = run("run", "greet.yaml", "--home", home, "-o", "json", cwd=place)
    assert (ran.code, ran.json["error"]["code"]) == (3, "store")
    assert "is no folder" in ran.json["error"]["message"]
    assert "--home" in ran.json["error"]["hint"]


def test_a_store_that_cannot_be_used_is_the_environments_fault(place: Path) -> None:
    (place / ".noetl").mkdir()
    (place / ".noetl" / "store.db").write_text("this is no database, but it is long enough for one\n" * 50)
    ran = run("run", "greet.yaml", "-o", "json", cwd=place)
    assert (ran.code, ran.json["error"]["code"]) == (3, "store")
    assert run("run", "greet.yaml", cwd=place).code == 3


def test_a_damaged_store_is_told_without_a_traceback(place: Path) -> None:
    assert run("run", "greet.yaml", "-q", cwd=place).code == 0
    store = place / ".noetl" / "store.db"
    pages = store.read_bytes()
    store.write_bytes(pages[: 2 * 8192] + b"\xff" * (len(pages) - 2 * 8192))
    ran = run("run", "greet.yaml", "-q", cwd=place)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines() == [
        f"noetl: {store} is damaged: database disk image is malformed",
        "  hint: restore it from a copy",
    ]


def test_a_dry_run_shows_the_plan_and_leaves_nothing(place: Path) -> None:
    ran = run("run", "greet.yaml", "--dry-run", "--set", "deep.b=x", cwd=place)
    assert ran.code == 0
    assert "    b: x\n" in ran.out
    assert "  start\n    say  python\n" in ran.out
    plan = run("run", "greet.yaml", "--dry-run", "-o", "json", cwd=place).json
    assert (plan["playbook"], plan["entry"]) == ("test/it", "start")
    assert plan["workload"] == {"name": "World", "deep": {"a": 1, "b": 2}}
    assert plan["steps"][0]["tasks"] == [{"task": "say", "kind": "python", "line": 8}]
    assert plan["cannot_run"] == []
    assert not (place / ".noetl").exists()


PLANNED = HEADER + (
    "keychain: [{name: token, kind: env}]\n"
    "executor: {spec: {final_step: last}}\n"
    "workload: {pages: 3, url: 'http://example.org/{{ workload.pages }}'}\n"
    "workflow:\n"
    "  - step: start\n"
    "    desc: Get them\n"
    "    loop: {in: '{{ range(workload.pages) | list }}', iterator: page, spec: {mode: parallel}}\n"
    "    tool:\n"
    "      - {name: get, kind: http, url: '{{ workload.url }}', auth: other}\n"
    "      - {name: odd, kind: telegraph, key: '{{ keychain.token }}'}\n"
    "    next: {arcs: [{step: end, when: \"{{ event.name == 'loop.done' }}\"}, {step: end}]}\n"
    "  - step: end\n"
    "    spec: {policy: {join: all, admit: {on_deny: drop, rules: [{when: '{{ ctx.ok }}', then: {allow: true}}]}}}\n"
    "    tool: {kind: noop}\n"
    "  - step: last\n"
    "    tool: {kind: noop}\n"
)


def test_a_plan_has_loops_arcs_credentials_and_what_cannot_run(place: Path) -> None:
    arguments = ["run", "-", "--dry-run", "--allow-kind", "telegraph"]
    plan = run(*arguments, "-o", "json", cwd=place, stdin=PLANNED).json
    assert plan["workload"] == {"pages": 3, "url": "http://example.org/3"}
    assert plan["keychain"] == [{"name": "other"}, {"name": "token", "kind": "env"}]
    assert [(one["task"], one["kind"]) for one in plan["cannot_run"]] == [("odd", "telegraph")]
    start, end, _ = plan["steps"]
    assert start["loop"]["max_in_flight"] == 10
    assert start["arcs"] == [
        {"step": "end", "when": "{{ event.name == 'loop.done' }}"},
        {"step": "end", "when": True},
    ]
    assert (end["join"], end["on_deny"]) == ("all", "drop")
    text = run(*arguments, cwd=place, stdin=PLANNED).out
    for line in (
        "  token  env",
        "  other  from the credential store",
        "  step start, task odd: the tool kind `telegraph` is not installed",
        "  start  (Get them)",
        "    for page in {{ range(workload.pages) | list }}, parallel, up to 10 at a time",
        "    → end  when {{ event.name == 'loop.done' }}",
        "  end  (joins all; is guarded, else drop)",
        "  last  (runs at the end)",
    ):
        assert f"{line}\n" in text


def test_defaults_that_cannot_be_rendered_are_a_wrong_request(place: Path) -> None:
    text = GREET.replace("name: World", "name: '{{ workload.none.x }}'")
    ran = run("run", "-", "--dry-run", "-o", "json", cwd=place, stdin=text)
    assert (ran.code, ran.json["error"]["code"]) == (2, "expression")


def test_what_is_missing_is_found_before_anything_runs(place: Path) -> None:
    text = HEADER + (
        "workflow:\n"
        "  - step: start\n"
        "    tool:\n"
        "      - {name: odd, kind: telegraph}\n"
        "      - {name: child, kind: playbook, path: not/here}\n"
    )
    (place / "odd.yaml").write_text(text)
    ran = run("run", "odd.yaml", "--allow-kind", "telegraph", cwd=place)
    assert (ran.code, ran.out) == (2, "")
    assert "odd.yaml:7:" in ran.err
    assert "the tool kind `telegraph` is not installed" in ran.err
    assert "there is no playbook `not/here`" in ran.err
    assert "    7 |       - {name: odd" in ran.err
    as_json = run("run", "odd.yaml", "--allow-kind", "telegraph", "-o", "json", cwd=place)
    assert (as_json.code, as_json.json["error"]["code"], len(as_json.json["problems"])) == (
        2,
        "cannot-run",
        2,
    )


def test_whoever_waits_is_told_the_command_and_a_child_has_its_name(place: Path) -> None:
    (place / "child.yaml").write_text(
        HEADER.replace("test/it", "test/child")
        + "workflow:\n  - step: hold\n    tool: {name: it, kind: wait, signal: go, spec: {timeout: 0.1}}\n"
    )
    text = HEADER + "workflow:\n  - step: start\n    tool: {name: it, kind: playbook, path: test/child}\n"
    (place / "parent.yaml").write_text(text)
    ran = run("run", "parent.yaml", cwd=place)
    assert ran.code == 1
    assert re.search(
        r"\[test/child\] step hold: waits for the signal; send it with: noetl executions signal [-0-9a-f]{36} go\n",
        ran.err,
    )
    assert "step `start`, task `it`, attempt 1: child_failed" in ran.err


def test_old_executions_are_forgotten(place: Path) -> None:
    old = run("run", "greet.yaml", "-q", "-o", "json", cwd=place).json["execution_id"]
    with sqlite3.connect(place / ".noetl" / "store.db") as store:
        store.execute("UPDATE execution SET ended_at = ended_at - 8 * 86400000000")
    store.close()
    resumed = ["run", "--resume", old, "-q"]
    assert run(*resumed, cwd=place, env={"NOETL_KEEP_DAYS": "0"}).code == 0
    assert run(*resumed, cwd=place, env={"NOETL_KEEP_DAYS": "7"}).code == 0
    assert run(*resumed, cwd=place).code == 2


def test_relative_paths_start_at_the_file_of_the_playbook(place: Path) -> None:
    (place / "deep").mkdir()
    (place / "deep" / "code.py").write_text("result = 'found'\n")
    (place / "deep" / "it.yaml").write_text(
        HEADER + "workflow:\n  - step: start\n    tool: {name: it, kind: python, script: code.py}\n"
    )
    assert result_of(place, "deep/it.yaml") == "found"


def test_verbose_tells_every_task(place: Path) -> None:
    err = run("run", "greet.yaml", "-v", cwd=place).err
    assert "step start: task say, attempt 1\n" in err
    assert "step start: task say: ok, continue\n" in err


class Slow:
    """A run whose first task waits in the middle of its attempt, until something is written to its pipe."""

    def __init__(self, place: Path, *arguments: str) -> None:
        fifo = place / "fifo"
        os.mkfifo(fifo)
        self.said = ""
        # Not buffered, so that what `stop` does not read is still there for `end`.
        self.child = subprocess.Popen(
            [*COMMAND, "run", "slow.yaml", "--set", f"file={fifo}", *arguments],
            cwd=place,
            env=environment(place),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        # Opening returns when the task has opened the other end: its attempt is in flight now.
        self.pipe = open(fifo, "w")  # noqa: SIM115 - closed by `let_go`

    def __enter__(self) -> "Slow":
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        with self.child:
            self.child.kill()

    def stop(self, number: int) -> None:
        """Sends a signal; returns when the command has said that it heard."""
        assert self.child.stderr is not None
        self.child.send_signal(number)
        while "again kills" not in self.said and (line := self.child.stderr.readline()):
            self.said += line.decode()

    def let_go(self, text: str) -> Ran:
        self.pipe.write(text)
        self.pipe.close()
        return self.end()

    def end(self) -> Ran:
        out, err = self.child.communicate()
        return Ran(self.child.returncode, out.decode(), self.said + err.decode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_attempt_in_flight_and_it_can_be_resumed(number: int, place: Path) -> None:
    with Slow(place, "-o", "json") as slow:
        slow.stop(number)
        ran = slow.let_go("written")
    assert (ran.code, ran.json["status"], ran.json["result"]) == (1, "running", None)
    execution = ran.json["execution_id"]
    command = f"noetl run --resume {execution}"
    assert ran.err.splitlines()[-1] == f"interrupted; go on with: {command}"
    resumed = run(*command.split()[1:], "-q", "-o", "json", cwd=place)
    assert resumed.code == 0
    assert resumed.json["result"] == "written and more"
    assert resumed.json["execution_id"] == execution
    again = run(*command.split()[1:], "-q", "-o", "json", cwd=place)
    assert (again.code, again.json) == (0, resumed.json)


def test_a_second_signal_kills(place: Path) -> None:
    with Slow(place) as slow:
        slow.stop(signal.SIGINT)
        slow.child.send_signal(signal.SIGINT)
        ran = slow.end()
    assert (ran.code, ran.out) == (1, "")
    command = ran.err.splitlines()[-1].partition("go on with: ")[2]
    assert command.startswith("noetl run --resume ")
    (place / "fifo").unlink()
    (place / "fifo").write_text("now")
    resumed = run(*command.split()[1:], cwd=place)
    assert (resumed.code, resumed.out) == (0, "now and more\n")


def test_two_processes_do_not_run_one_execution(place: Path) -> None:
    with Slow(place, "--idempotency-key", "one") as slow:
        ran = run("run", "slow.yaml", "--idempotency-key", "one", "-o", "json", cwd=place)
        assert (ran.code, ran.json["error"]["code"]) == (2, "running")
        assert slow.let_go("x").code == 0


def test_on_a_terminal_progress_is_drawn_and_colour_can_be_turned_off(place: Path) -> None:
    shown = run_on_terminal("run", "greet.yaml", cwd=place)
    assert (shown.code, shown.out.count("\n")) == (0, 6)
    colourful, plain, dumb = (
        terminal("run", "greet.yaml", cwd=place, env=env) for env in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"})
    )
    assert "✓" in colourful
    assert "\x1b[32m" in colourful
    assert "✓" in plain
    assert "\x1b[3" not in plain
    assert "step start done in" in dumb
    assert "\x1b" not in dumb
    assert "✓" not in terminal("run", "greet.yaml", "-o", "json", cwd=place)


def terminal(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a command draws when standard error is a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(cwd, {"LANG": "C.UTF-8", **(env or {})}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
    ):
        os.close(slave)
        drawn = b""
        try:
            while part := os.read(master, 65536):
                drawn += part
        except OSError:  # Linux says EIO when the other side is closed
            pass
    os.close(master)
    return drawn.decode()
