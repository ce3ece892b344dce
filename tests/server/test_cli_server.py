"""The commands that ask a server, as people and scripts use them."""

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.http_api import StartExecution
from tests.cli.command_line import BROKEN, CompletedCommand, environment, run, run_on_terminal
from tests.server.server_process import (
    FAILING,
    GREET,
    LOOPING,
    REPAIRED_LOOPING,
    WAITING,
    ServerProcess,
    command,
)
from tests.server.test_api_executions import waiting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("greet", GREET), ("waiting", WAITING), ("failing", FAILING), ("broken", BROKEN)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


class Commands:
    """Commands for one server, with its token from the environment, as in a script."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self._env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
        self._folder = folder

    def __call__(self, *arguments: str) -> CompletedCommand:
        return run(*arguments, cwd=self._folder, env=self._env)

    def json(self, *arguments: str, code: int = 0) -> Any:
        ran = self(*arguments, "-o", "json")
        assert ran.code == code, ran
        return ran.json


@pytest.fixture
def commands(server: ServerProcess, folder: Path) -> Commands:
    return Commands(server, folder)


def test_the_server_of_a_home_is_found_with_its_token(server: ServerProcess, folder: Path) -> None:
    ran = run("catalog", "list", "--home", str(server.home), "-o", "json", cwd=folder)
    assert ran.code == 0
    assert "examples/greet" in [playbook["path"] for playbook in ran.json["playbooks"]]
    users = folder / "user"
    users.mkdir()
    os.symlink(server.home, users / ".noetl")
    by_itself = run("catalog", "list", "-o", "json", cwd=folder, env={"HOME": str(users)})
    assert by_itself.json == ran.json


@pytest.mark.parametrize("origin", ["flag", "variable", "user"])
def test_what_execute_says_to_type_next_finds_the_execution(
    server: ServerProcess, folder: Path, origin: str
) -> None:
    users = folder / "user"
    users.mkdir()
    os.symlink(server.home, users / ".noetl")
    flags = ("--home", str(server.home)) if origin == "flag" else ()
    env = {"variable": {"NOETL_HOME": str(server.home)}, "user": {"HOME": str(users)}}.get(origin, {})
    started = run("execute", "examples/greet", *flags, cwd=folder, env=env)
    variables, _, command_line = started.err.rpartition("how it is: ")[2].rpartition("noetl ")
    env |= dict(variable.split("=", 1) for variable in shlex.split(variables))
    answer = run(*shlex.split(command_line), "-o", "json", cwd=folder, env=env)
    assert (answer.code, answer.json["execution_id"]) == (0, started.out.strip()), started.err


def test_where_no_store_is_the_server_that_runs_there_is_named(server: ServerProcess, folder: Path) -> None:
    for user, hinted in (("with-server", True), ("without", False)):
        home = folder / user
        (home / "work").mkdir(parents=True)
        if hinted:
            os.symlink(server.home, home / ".noetl")
        for words in (("executions", "list"), ("executions", "show", "latest"), ("doctor",)):
            ran = run(*words, cwd=home / "work", env={"HOME": str(home)})
            assert (f"--server {server.url}" in ran.out + ran.err) == hinted, ran


def test_an_execution_names_the_document_that_it_was_asked_for(
    commands: Commands, server: ServerProcess, folder: Path
) -> None:
    """The same document may be in a file and in the catalog."""
    here = run("run", "greet.yaml", "--home", str(server.home), "-o", "json", cwd=folder)
    there = commands.json("execute", "examples/greet", "--wait")
    executions = [commands.json("executions", "show", name["execution_id"]) for name in (here.json, there)]
    documents = [(execution["file"], execution["registered"]) for execution in executions]
    assert documents == [(str(folder / "greet.yaml"), None), (None, "examples/greet@1")]


def test_without_a_server_the_exit_code_is_3(folder: Path) -> None:
    ran = run("execute", "examples/greet", "-o", "json", cwd=folder)
    assert (ran.code, ran.json["error"]["code"]) == (3, "server-unreachable")
    assert "noetl server start" in ran.json["error"]["hint"]
    gone = run("executions", "list", "--server", "http://127.0.0.1:1", cwd=folder)
    assert (gone.code, gone.out) == (3, "")
    assert run("executions", "list", "--server", "nonsense", cwd=folder).code == 2


def test_a_token_that_is_not_valid_is_the_callers_fault(server: ServerProcess, folder: Path) -> None:
    env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": "wrong"}
    ran = run("executions", "list", "-o", "json", cwd=folder, env=env)
    assert (ran.code, ran.json["error"]["code"]) == (2, "unauthenticated")


def test_playbooks_are_registered_listed_shown_and_deleted(commands: Commands, folder: Path) -> None:
    (folder / "shop.yaml").write_text(GREET.replace("examples/greet", "shop/cli"))
    (registered,) = commands.json("catalog", "register", "shop.yaml")["playbooks"]
    assert (registered["path"], registered["version"], registered["created"]) == ("shop/cli", 1, True)
    assert commands("catalog", "register", "shop.yaml").out == "shop/cli@1: unchanged\n"
    (listed,) = commands.json("catalog", "list", "--path", "shop/cli")["playbooks"]
    assert listed["hash"] == registered["hash"]
    assert commands("catalog", "show", "shop/cli@1").out == (folder / "shop.yaml").read_text()
    assert "shop/cli" in commands("catalog", "show", "shop/cli", "--canonical").out
    assert [row["version"] for row in commands.json("catalog", "versions", "shop/cli")["versions"]] == [1]
    assert commands.json("catalog", "delete", "shop/cli@1") == {"path": "shop/cli", "versions": [1]}
    assert commands.json("catalog", "show", "shop/cli", code=2)["error"]["code"] == "not_found"
    text = (folder / "shop.yaml").read_text().replace("shop/cli", "shop/cli/versions")
    (folder / "versions.yaml").write_text(text)
    commands("catalog", "register", "versions.yaml")
    assert commands("catalog", "show", "shop/cli/versions").out == text
    assert commands.json("catalog", "show", "shop/cli@x", code=2)["error"]["code"] == "argument"


def test_an_invalid_playbook_is_said_with_its_lines(commands: Commands) -> None:
    document = commands.json("catalog", "register", "broken.yaml", code=2)
    assert document["error"]["code"] == "invalid_playbook"
    assert (document["problems"][0]["file"], document["problems"][0]["line"]) == ("broken.yaml", 3)


def test_execute_waits_and_prints_what_run_prints(commands: Commands, folder: Path) -> None:
    options = ("--set", "name=Ada", "--label", "a=b", "--priority", "100")
    ended = commands.json("execute", "examples/greet", *options, "--wait")
    local = run("run", "greet.yaml", "--set", "name=Ada", "-o", "json", cwd=folder).json
    assert set(local) <= set(ended)
    assert (ended["result"], ended["labels"], ended["priority"]) == (local["result"], {"a": "b"}, 100)
    assert commands("execute", "examples/greet", "--wait").out == "greeting: Hello World\n"
    assert commands.json("execute", "examples/failing", "--wait", code=1)["status"] == "failed"
    refused = commands.json("execute", "examples/nobody", code=2)["error"]
    assert (refused["code"], "recorded as" in refused["message"]) == ("not_found", True)
    assert (
        "--priority"
        in commands.json("execute", "examples/greet", "--priority", "101", code=2)["error"]["message"]
    )


def test_ctrl_c_ends_the_waiting_and_not_the_execution(server: ServerProcess, folder: Path) -> None:
    arguments = ("execute", "examples/waiting", "--wait", "--label", "ctrl=c")
    child = subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(folder, {"NOETL_HOME": str(server.home)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    execution_id = child.stderr.readline().split()[0]
    child.send_signal(signal.SIGINT)
    _, rest = child.communicate()
    assert child.returncode == 1
    assert "goes on" in rest
    assert server.client.show(execution_id).status == "running"
    server.client.cancel(execution_id)


def test_executions_are_looked_at(commands: Commands, server: ServerProcess) -> None:
    execution_id = commands.json("execute", "examples/greet", "--wait", "--label", "look=yes")["execution_id"]
    listed = commands.json("executions", "list", "--label", "look=yes", "--since", "1h")
    assert [row["execution_id"] for row in listed["executions"]] == [execution_id]
    assert execution_id in commands("executions", "list").out
    assert commands.json("executions", "show", execution_id[:30])["result"] == {"greeting": "Hello World"}
    events = commands.json("executions", "events", execution_id)["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    followed = commands("executions", "events", execution_id, "--follow", "-o", "json").out.splitlines()
    assert [json.loads(line) for line in followed] == events
    after = commands.json("executions", "events", execution_id, "--after", "3")["events"]
    assert after == events[3:]
    assert [line["text"] for line in commands.json("executions", "logs", execution_id)["lines"]] == [
        "hello World"
    ]
    assert "hello World" in commands("executions", "logs", execution_id, "-f").out
    assert commands.json("executions", "watch", execution_id)["status"] == "completed"
    assert commands.json("executions", "replay", execution_id, "--at", "1")["status"] == "running"
    assert commands.json("executions", "show", "0000", code=2)["error"]["code"] == "unknown-execution"
    assert commands.json("executions", "result", execution_id)["result"] == {"greeting": "Hello World"}
    of_step = commands.json("executions", "result", execution_id, "start")
    assert of_step == {
        "execution_id": execution_id,
        "step": "start",
        "result": {"greeting": "Hello World"},
    }
    missing = commands.json("executions", "result", execution_id, "stat", code=2)["error"]
    assert (missing["message"], missing["hint"]) == ("no step `stat` has run", "those that have: start")


def test_it_is_shown_how_an_execution_is_and_why(commands: Commands, server: ServerProcess) -> None:
    waits = waiting(server.client, priority=3)
    text = commands("executions", "show", waits).out
    assert text.startswith("running, ")
    assert "\n  priority  3\n" in text
    assert re.search(r"\nstart  waiting  1     [\d.]+ s\n", text)
    assert "\nwaiting\n  start (line 5) waits for the signal go\n" in text
    assert f"noetl executions signal {waits} go " in text
    early = commands.json("executions", "result", waits, "start", code=2)["error"]
    assert early["message"] == "no run of step `start` has ended"
    assert commands("executions", "pause", waits).code == 0
    assert f"noetl executions resume {waits} " in commands("executions", "show", waits).out
    assert commands("executions", "cancel", waits, "--reason", "enough").code == 0
    ended = commands("executions", "show", waits).out
    assert "cancelled after " in ended
    assert "  cancel    by local-admin: enough\n" in ended
    assert "noetl executions" not in ended

    failed = commands.json("execute", "examples/failing", "--wait", code=1)["execution_id"]
    document = commands.json("executions", "show", failed)
    assert document["explanation"]["failure"]["step"] == "start"
    text = commands("executions", "show", failed).out
    assert text.startswith("failed after ")
    refused = commands.json("executions", "result", failed, "start", code=2)["error"]
    assert refused["message"] == "the last run of step `start` failed: ValueError: no"
    assert f"noetl executions retry {failed} " in text


BROKEN_CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: broken-child, path: examples/broken-child}
workflow:
- step: start
  tool:
  - name: divide
    kind: python
    args: {by: 0}
    code: |
      def main(by):
          print("dividing by", by)
          return 1 / by
"""
BROKEN_PARENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: broken-parent, path: examples/broken-parent}
workflow:
- step: each
  loop: {in: "{{ [1] }}", iterator: n}
  tool: {kind: playbook, path: examples/broken-child, args: {}}
"""


def test_a_server_says_of_a_failure_what_its_store_says(
    commands: Commands, server: ServerProcess, folder: Path
) -> None:
    for text in (BROKEN_CHILD, BROKEN_PARENT):
        server.client.register(text)
    waited = commands("execute", "examples/broken-parent", "--wait")
    parent = waited.err.split()[0]
    document = commands.json("executions", "show", parent)
    (child,) = (item["execution_id"] for item in document["children"])
    for execution_id in (parent, child):
        answered = commands("executions", "show", execution_id).out
        read = run("executions", "show", execution_id, "--home", str(server.home), cwd=folder).out
        assert answered == read.replace(f" --home {server.home}", "")
        assert answered.startswith("failed after ")
        assert re.search(r"\n +examples/broken-child@1:13:\d+\n", answered)
        assert "13 |           return 1 / by\n" in answered
        assert re.search(r"\n +printed:\n +dividing by 0\n", answered)
        assert 'File "examples/broken-child@1", line 13, in main\n' in answered
        stored = run("executions", "show", execution_id, "--home", str(server.home), "-o", "json", cwd=folder)
        assert commands.json("executions", "show", execution_id) == stored.json
    # What is said at the end of the wait is the beginning of it.
    ending = waited.err.partition("\n")[2]
    assert commands("executions", "show", parent).out.startswith(ending)
    assert f"noetl executions retry {child} --playbook FILE " in ending
    assert [failure["execution_id"] for failure in document["failures"]] == [parent, child]
    assert document["failures"][1]["printed"] == ["dividing by 0"]


def test_a_large_result_is_fetched(commands: Commands, folder: Path) -> None:
    execution_id = commands.json("execute", "examples/large", "--wait")["execution_id"]
    result = {"text": "abcdefghij" * 20_000}
    assert commands.json("executions", "result", execution_id)["result"] == result
    written = commands.json("executions", "result", execution_id, "-f", "out.json")
    assert written["file"] == "out.json"
    assert json.loads((folder / "out.json").read_text()) == result


def test_executions_are_steered(commands: Commands, folder: Path) -> None:
    execution_id = commands.json("execute", "examples/waiting")["execution_id"]
    assert commands.json("executions", "pause", execution_id)["status"] == "paused"
    assert commands.json("executions", "pause", execution_id, code=2)["error"]["code"] == "refused"
    assert commands.json("executions", "resume", execution_id)["recorded"] is True
    assert commands.json("executions", "signal", execution_id, "go", '{"a": 1}')["recorded"] is True
    assert commands("executions", "watch", execution_id).code == 0
    fork = commands.json("executions", "fork", execution_id, "--at", "3")["execution_id"]
    assert fork != execution_id
    assert commands.json("executions", "cancel", fork, "--reason", "enough")["execution_id"] == fork
    assert commands("executions", "watch", fork).code == 1
    failed = commands.json("execute", "examples/failing", "--wait", code=1)["execution_id"]
    (folder / "repaired.yaml").write_text(FAILING.replace("raise ValueError('no')", "return 7"))
    commands.json("executions", "retry", failed, "--playbook", "repaired.yaml")
    assert commands.json("executions", "watch", failed)["result"] == 7


def test_failed_iterations_are_redriven(commands: Commands, folder: Path) -> None:
    (folder / "looping.yaml").write_text(LOOPING.replace("examples/looping", "cli/looping"))
    commands.json("catalog", "register", "looping.yaml")
    ended = commands.json("execute", "cli/looping", "--wait")["execution_id"]
    (folder / "looping.yaml").write_text(REPAIRED_LOOPING.replace("examples/looping", "cli/looping"))
    commands.json("catalog", "register", "looping.yaml")
    ran = commands("executions", "redrive", ended, "--step", "each", "--version", "2")
    assert (ran.code, "runs again: total" in ran.err) == (0, True)
    assert commands.json("executions", "watch", ended)["result"] == {"sum": 6}
    assert commands("executions", "redrive", ended, "--version", "2", "--playbook", "looping.yaml").code == 2
    failed = commands.json("execute", "examples/failing", "--wait", code=1)["execution_id"]
    refused = commands.json("executions", "retry", failed, "--version", "7", code=2)
    assert refused["error"]["code"] == "not_found"


def test_all_that_match_are_cancelled_and_retried(commands: Commands) -> None:
    for _ in range(2):
        commands.json("execute", "examples/waiting", "--label", "bulk=cli")
    listed = commands.json("executions", "list", "--label", "bulk=cli", "--text", "waiting", "--since", "1h")
    ids = {item["execution_id"] for item in listed["executions"]}
    assert len(ids) == 2
    ran = commands.json("executions", "cancel", "--where", "path=examples/waiting,label=bulk=cli")
    assert {verdict["execution_id"] for verdict in ran["executions"]} == ids
    assert all(commands("executions", "watch", execution_id).code == 1 for execution_id in ids)
    commands.json("execute", "examples/failing", "--label", "bulk=again", "--wait", code=1)
    again = commands("executions", "retry", "--where", "label=bulk=again,error_kind=python,status=failed")
    assert (again.code, "retry: 1 execution" in again.err) == (0, True)
    nothing = commands("executions", "cancel", "--where", "label=bulk=nobody")
    assert (nothing.code, nothing.err) == (0, "cancel: 0 executions\n")


def test_what_is_stuck_or_failed_is_ended_by_hand(commands: Commands) -> None:
    stuck = commands.json("execute", "examples/waiting")["execution_id"]
    assert commands.json("executions", "complete", stuck, "start", "--result", '{"a": 1}')["recorded"]
    assert commands.json("executions", "watch", stuck)["status"] == "completed"
    events = commands.json("executions", "events", stuck)["events"]
    assert [e["data"]["result"] for e in events if e["name"] == "StepCompletedByHand"] == [{"a": 1}]
    failed = commands.json("execute", "examples/failing", "--wait", code=1)["execution_id"]
    ran = commands("executions", "skip", failed, "start")
    assert (ran.code, "start skipped; it is completed" in ran.err) == (0, True)


def test_tokens_are_made_by_a_server_and_by_its_home(
    server: ServerProcess, commands: Commands, folder: Path
) -> None:
    made = commands.json("token", "create", "remote", "--role", "viewer", "--expires", "1h")
    assert (made["name"], made["role"], made["valid"]) == ("remote", "viewer", True)
    assert made["expires_at"] is not None
    assert (
        commands.json("token", "create", "remote", "--role", "viewer", code=2)["error"]["code"] == "conflict"
    )
    local = run("token", "create", "local", "--role", "operator", "--home", str(server.home), cwd=folder)
    env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": local.out.strip()}
    assert run("executions", "list", cwd=folder, env=env).code == 0
    assert run("token", "list", cwd=folder, env=env).code == 2
    names = {row["name"]: row["valid"] for row in commands.json("token", "list")["tokens"]}
    assert (names["remote"], names["local"]) == (True, True)
    assert run("token", "revoke", "local", "--home", str(server.home), cwd=folder).code == 0
    assert run("executions", "list", cwd=folder, env=env).code == 2
    assert commands.json("token", "revoke", "remote") == {"name": "remote", "revoked": True}
    assert commands.json("token", "revoke", "remote", code=2)["error"]["code"] == "not_found"


def test_flags_that_exclude_each_other_are_said(server: ServerProcess, folder: Path) -> None:
    ran = run("executions", "list", "--server", server.url, "--home", "h", cwd=folder)
    assert (ran.code, "exclude each other" in ran.err) == (2, True)
    nearer = run(
        "executions", "list", "--home", "h", "-o", "json", cwd=folder, env={"NOETL_SERVER": server.url}
    )
    assert nearer.json == {"executions": [], "next": None}


def test_a_terminal_gets_a_table(server: ServerProcess, folder: Path) -> None:
    server.client.wait(server.client.start(StartExecution(path="examples/greet")).execution_id)
    env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
    ran = run_on_terminal("executions", "list", "--limit", "1", cwd=folder, env=env)
    assert ran.code == 0
    assert ran.out.startswith("EXECUTION ")


def test_dev_registers_the_playbooks_of_a_folder_and_again_when_they_change(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "more.yml").write_text(GREET.replace("examples/greet", "deep/greet"))
    (folder / "other.yaml").write_text("a: 1\n")
    (folder / ".hidden.yaml").write_text(GREET.replace("examples/greet", "hidden/greet"))
    process = subprocess.Popen(
        command("dev", "--port", "0", "--reload"),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None

    def read_until(text: str) -> str:
        lines = []
        for line in process.stderr or ():
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError(lines)

    try:
        said_first = read_until("waiting.yaml: examples/waiting@1 registered")
        assert "broken.yaml: not registered" in said_first
        assert "broken.yaml:3:" in said_first
        assert "deep/more.yml: deep/greet@1 registered" in said_first
        listed = run("catalog", "list", "-o", "json", cwd=folder).json["playbooks"]
        paths = [playbook["path"] for playbook in listed]
        assert paths == ["deep/greet", "examples/failing", "examples/greet", "examples/waiting"]
        (folder / "greet.yaml").write_text(GREET.replace("kind: python", "kind: pyton"))
        assert "pyton" in read_until("pyton")
        assert run("execute", "examples/greet", "--wait", cwd=folder).out == "greeting: Hello World\n"
        (folder / "greet.yaml").write_text(GREET.replace("Hello", "Good day"))
        read_until("greet.yaml: examples/greet@2 registered")
        assert run("execute", "examples/greet", "--wait", cwd=folder).out == "greeting: Good day World\n"
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


def test_dev_says_where_no_playbooks_are(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("a: 1\n")
    process = subprocess.Popen(
        command("dev", ".", "--port", "0"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert any("no playbook is in" in line and "noetl init" in line for line in process.stderr or ())
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


def test_dev_serves_the_store_that_run_uses(folder: Path) -> None:
    local = run("run", "greet.yaml", "-o", "json", cwd=folder).json["execution_id"]
    process = subprocess.Popen(
        command("dev", "--port", "0"), cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        listed = run("executions", "list", "--server", url, "-o", "json", cwd=folder).json["executions"]
        assert [row["execution_id"] for row in listed] == [local]
        text = GREET.replace("workload:", "executor: {kind: local}\nworkload:")
        (folder / "local.yaml").write_text(text)
        assert run("catalog", "register", "local.yaml", cwd=folder).out == "examples/greet@1: registered\n"
        assert run("execute", "examples/greet", "--wait", cwd=folder).code == 0
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


def test_the_home_of_a_server_is_that_of_its_user_unless_another_is_set(tmp_path: Path) -> None:
    """Not the nearest one, as for `run`: a server is there for all directories."""
    (tmp_path / "work" / ".noetl").mkdir(parents=True)

    def home_of_server(*flags: str, **env: str) -> str:
        status = run(
            "server",
            "status",
            "-o",
            "json",
            *flags,
            cwd=tmp_path / "work",
            env={"HOME": str(tmp_path), **env},
        )
        assert status.code == 3
        return str(status.json["home"])

    assert home_of_server() == str(tmp_path / ".noetl")
    (tmp_path / "work" / "noetl.toml").write_text('home = "from-toml"\n')
    assert home_of_server() == str(tmp_path / "work" / "from-toml")
    assert home_of_server(NOETL_HOME="/from/env") == "/from/env"
    assert home_of_server("--home", "/from/flag", NOETL_HOME="/from/env") == "/from/flag"
