"""`noetl executions list` and `prune`."""

import os
import pty
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from noetl.engine.history.retention import delete_execution, ended_before
from noetl.engine.task_log import FileLog
from noetl.events.bodies import ParentTask
from noetl.kernel.net.commands import Retry
from noetl.ports.store import Store
from noetl.stores.ownership import Owners
from noetl.stores.results.file_backend import FileResults
from tests.cli.command_line import COMMAND, CompletedCommand, environment, read_terminal, run, run_on_terminal
from tests.executions.execution_playbooks import BREAK, BROKEN, GREET, GREETED, HOLD
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import FIRST, RecordedExecutions


def ids(ran: CompletedCommand) -> list[str]:
    return [execution["execution_id"][-1] for execution in ran.json["executions"]]


def test_nothing_is_listed_where_nothing_is_and_nothing_is_made(
    noetl: InProcessCommand, tmp_path: Path
) -> None:
    ran = noetl("executions", "list")
    assert (ran.code, ran.out, ran.err) == (0, "", "no executions\n")
    assert noetl("executions", "list", "-o", "json").json == {"executions": [], "next": None}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["show", "events", "logs", "watch", "result", "replay", "verify"])
def test_an_id_is_unknown_where_nothing_is(noetl: InProcessCommand, tmp_path: Path, verb: str) -> None:
    ran = noetl("executions", verb, "x")
    assert (ran.code, ran.out) == (2, "")
    assert "there are no executions here yet" in ran.err
    assert noetl("executions", verb, "x", "-o", "json").json["error"]["code"] == "no-executions"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["show", "events", "logs", "watch", "result", "replay", "verify"])
def test_an_unknown_id_is_wrong(noetl: InProcessCommand, recorded: RecordedExecutions, verb: str) -> None:
    recorded.run(GREET, GREETED)
    ran = noetl("executions", verb, "x")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no execution `x`" in ran.err
    assert noetl("executions", verb, "x", "-o", "json").json["error"]["code"] == "unknown-execution"


def test_the_newest_come_first_with_what_is_known(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    first = recorded.run(GREET, GREETED, labels={"team": "data"})
    recorded.run(BREAK, BROKEN, parent=ParentTask(execution_id=first, task_run_id="r5/0/say/1/1"))
    recorded.run(HOLD)
    ran = noetl("executions", "list", "-o", "json")
    assert ran.code == 0
    assert ids(ran) == ["3", "2", "1"]
    hold, broken, greeted = ran.json["executions"]
    assert greeted == {
        "execution_id": first,
        "status": "completed",
        "path": "docs/page",
        "started_at": "2023-11-14T22:13:20.000000Z",
        "ended_at": "2023-11-14T22:13:20.000000Z",
        "duration_ms": 0,
        "labels": {"team": "data"},
        "priority": 0,
        "parent": None,
        "forked_from": None,
        "events": greeted["events"],
        "owner": None,
    }
    assert (broken["status"], broken["parent"]) == ("failed", first)
    assert (hold["status"], hold["ended_at"], hold["owner"]) == ("running", None, None)


def test_filters(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED, labels={"team": "data", "env": "a=b"})
    recorded.run(BREAK, BROKEN, labels={"team": "data"})
    recorded.run(HOLD)
    for words, expected in (
        ("--status failed", "2"),
        ("--status failed --status running", "32"),
        ("--path docs", "321"),
        ("--path other", ""),
        ("--label team=data", "21"),
        ("--label team=data --label env=a=b", "1"),
        ("--label team=x", ""),
        ("--since 1h", ""),
        ("--since 2023-11-14", "321"),
        ("--since 2023-11-14T23:00+02:00", "321"),
        ("--since 2023-11-14T22:13:21", ""),
        ("--limit 2", "32"),
    ):
        assert ids(noetl("executions", "list", "-o", "json", *words.split())) == list(expected), words


def test_pages(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    for _ in range(3):
        recorded.run(HOLD)
    first = noetl("executions", "list", "--limit", "2", "-o", "json")
    second = noetl("executions", "list", "--limit", "2", "--cursor", first.json["next"], "-o", "json")
    assert (ids(first), ids(second), second.json["next"]) == (["3", "2"], ["1"], None)
    assert "--cursor" in noetl("executions", "list", "--limit", "2").err


@pytest.mark.parametrize(
    "words",
    ["--since soon", "--since 2023-13-01", "--label team", "--label =x", "--cursor x", "--limit 0"],
)
def test_wrong_filters_are_refused(noetl: InProcessCommand, recorded: RecordedExecutions, words: str) -> None:
    recorded.run(HOLD)
    ran = noetl("executions", "list", *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert words.split(maxsplit=1)[0] in ran.err


def test_people_see_who_runs_what(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    name = recorded.run(HOLD)
    child = recorded.run(HOLD, parent=ParentTask(execution_id=name, task_run_id="r5/0/hold/1/1"))
    assert noetl("executions", "list").out.count("interrupted") == 2
    ownership = Owners(recorded.home.owners).acquire(name)
    assert ownership is not None
    with ownership:
        ran = run("executions", "list", cwd=recorded.home.folder.parent)
        assert (ran.code, ran.out.count("interrupted"), ran.out.count("running")) == (0, 0, 2)
        listed = run("executions", "list", "-o", "json", cwd=recorded.home.folder.parent).json
    assert [execution["execution_id"] for execution in listed["executions"]] == [child, name]
    assert all(execution["owner"] for execution in listed["executions"])


def test_the_home_is_named_when_it_is_not_here(
    noetl: InProcessCommand, recorded: RecordedExecutions, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.run(HOLD)
    folder = recorded.home.folder
    (folder.parent / "below").mkdir()
    monkeypatch.chdir(folder.parent / "below")
    assert noetl("executions", "list").err == f"using {folder}\n"
    assert noetl("executions", "list", "-o", "json").err == ""
    assert ids(noetl("executions", "list", "--store", f"sqlite:///{folder}/store.db", "-o", "json")) == ["1"]
    monkeypatch.chdir(folder.parent)
    assert noetl("executions", "list").err == ""
    assert ids(noetl("executions", "list", "--home", str(folder), "-o", "json")) == ["1"]
    assert ids(noetl("executions", "list", "--home", "nowhere", "-o", "json")) == []


def test_a_store_that_cannot_be_opened_is_the_environments_fault(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.home.store.write_text("no database, but long enough to look like one to nobody at all" * 20)
    ran = noetl("executions", "list")
    assert (ran.code, ran.out) == (3, "")
    assert "is not a store" in ran.err
    wrong = noetl("executions", "list", "--store", "mysql://x")
    assert (wrong.code, wrong.out) == (2, "")
    assert "sqlite:///" in wrong.err


def test_pruning_deletes_what_ended_with_all_that_belongs_to_it(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    old, held, waiting = recorded.run(GREET, GREETED), recorded.run(BREAK, BROKEN), recorded.run(HOLD)
    log = FileLog(recorded.home.logs)
    for name in (old, waiting):
        log.write(name, {}, "said")
        (recorded.home.results / name).mkdir(parents=True)
    log.close_files()
    assert noetl("executions", "prune", "--before", "2023-11-14", "-o", "json").json["executions"] == []
    ran = noetl("executions", "prune", "--dry-run")
    assert old in ran.out
    assert "would be deleted: 2 executions" in ran.err
    ownership = Owners(recorded.home.owners).acquire(held)
    assert ownership is not None
    with ownership:
        pruned = noetl("executions", "prune", "-o", "json").json
    assert (pruned["executions"], pruned["dry_run"]) == ([old], False)
    assert datetime.fromisoformat(pruned["before"]) < datetime.now(UTC)
    assert ids(noetl("executions", "list", "-o", "json")) == ["3", "2"]
    assert [path.name for path in recorded.home.logs.iterdir()] == [f"{waiting}.jsonl"]
    assert [path.name for path in recorded.home.results.iterdir()] == [waiting]
    assert noetl("executions", "prune", "--before", "1d").err.startswith("deleted: 1 execution ")


@pytest.mark.parametrize(
    ("words", "answer", "remaining"),
    [
        ([], "n\n", 2),
        ([], "\n", 2),
        ([], "y\n", 0),
        (["--yes"], "", 0),
        (["--dry-run"], "", 2),
        (["-o", "json"], "", 0),
        (["--before", "2023-11-14"], "", 2),
    ],
)
@pytest.mark.parametrize("command", ["executions", "store"])
def test_a_person_is_asked_before_anything_is_pruned(
    recorded: RecordedExecutions, command: str, words: list[str], answer: str, remaining: int
) -> None:
    recorded.run(GREET, GREETED)
    recorded.run(BREAK, BROKEN)
    folder = recorded.home.folder.parent
    if command == "store":
        words = ["--days", "99999"] if words[:1] == ["--before"] else words
    master, slave = pty.openpty()
    os.write(master, answer.encode())
    with subprocess.Popen(
        [*COMMAND, command, "prune", *words],
        cwd=folder,
        env=environment(folder),
        stdin=slave,
        stdout=subprocess.DEVNULL,
        stderr=slave,
    ) as child:
        declined = bool(answer) and remaining > 0
        assert child.wait() == int(declined)
    os.close(slave)
    printed = read_terminal(master).decode()
    os.close(master)
    assert ("Delete 2 executions that ended before" in printed) is bool(answer)
    assert ("nothing was deleted" in printed) is declined
    listed = run("executions", "list", "-o", "json", cwd=folder).json["executions"]
    assert len(listed) == remaining


def test_nobody_is_asked_who_cannot_answer(recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED)
    ran = run_on_terminal("executions", "prune", cwd=recorded.home.folder.parent, terminal="stderr")
    assert (ran.code, "deleted: 1 execution" in ran.err, "Delete" in ran.err) == (0, True, False)


def test_what_is_kept_for_ever_is_not_pruned_unless_told(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.run(GREET, GREETED)
    Path("noetl.toml").write_text("keep_days = 0\n")
    ran = noetl("executions", "prune")
    assert (ran.code, ran.out) == (2, "")
    assert "--before" in ran.err
    assert len(noetl("store", "prune", "--days", "1", "-o", "json").json["executions"]) == 1


def test_an_execution_that_was_retried_meanwhile_stays(recorded: RecordedExecutions) -> None:
    execution = recorded.begin(BREAK, BROKEN)
    execution.driver.run()
    execution.save()

    async def prune(store: Store) -> bool:
        (record,) = [ended async for ended in ended_before(store, 1 << 62)]
        execution.driver.submit(Retry())
        await execution.save_in(store)
        return await delete_execution(recorded.home, store, FileResults(recorded.home.results), record)

    assert recorded.with_store(prune) is False


def test_a_fork_began_when_it_was_made_and_names_its_origin(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    original = recorded.run(GREET, GREETED)
    at = recorded.with_store(lambda store: append_end_after(store, original, 5))
    fork = noetl("executions", "fork", original, "--at", "5", "--no-run", "-o", "json").json["execution_id"]
    listed = noetl("executions", "list", "--since", "1m", "-o", "json").json["executions"]
    assert [(record["execution_id"], record["forked_from"]) for record in listed] == [(fork, original)]
    assert listed[0]["started_at"] > datetime(2024, 1, 1, tzinfo=UTC).isoformat()
    assert listed[0]["duration_ms"] < 60_000
    document = noetl("executions", "show", fork, "-o", "json").json
    assert (document["forked_from"], document["started_at"]) == (original, listed[0]["started_at"])
    assert document["duration_ms"] < 60_000
    assert f"  fork of   {original}, event {at}\n" in noetl("executions", "show", fork).out
    assert noetl("executions", "show", original, "-o", "json").json["forked_from"] is None
    last = len(noetl("executions", "events", fork, "-o", "json").json["events"])
    again = noetl("executions", "fork", fork, "--at", str(last), "--no-run", "-o", "json").json[
        "execution_id"
    ]
    assert noetl("executions", "show", again, "-o", "json").json["forked_from"] == fork
    assert noetl("store", "check").code == 0


async def append_end_after(store: Store, execution_id: str, seq: int) -> int:
    return next(row.seq for row in await store.read(execution_id) if row.seq >= seq and row.last)


def test_the_fork_of_a_child_is_nobodys_child(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    parent = recorded.run(GREET, GREETED)
    child = recorded.run(BREAK, BROKEN, parent=ParentTask(execution_id=parent, task_run_id="r5/0/say/1/1"))
    fork = noetl("executions", "fork", child, "--at", "5", "--no-run", "-o", "json").json["execution_id"]
    document = noetl("executions", "show", "latest", "-o", "json").json
    assert (document["execution_id"], document["parent"], document["forked_from"]) == (fork, None, child)
    children = noetl("executions", "show", parent, "-o", "json").json["children"]
    assert [record["execution_id"] for record in children] == [child]
    assert noetl("store", "check").code == 0


WAITED = """\
- step: start
  tool: {name: a, kind: noop}
  next: {arcs: [{step: nap}]}
- step: nap
  tool: {name: b, kind: wait, seconds: 0.1}
"""


def test_a_fork_of_something_old_is_not_too_late_for_its_timeout(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    original = recorded.run("executor: {spec: {timeout: 3600}}\nworkflow:\n" + WAITED)
    fork = noetl("executions", "fork", original, "--at", "5", "-o", "json").json
    assert (fork["status"], fork["forked_from"]) == ("completed", original)
    assert noetl("executions", "verify", fork["execution_id"]).code == 0


def test_interrupted_is_a_status_to_ask_for(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    for number in range(8):
        if number % 2:
            recorded.run(GREET, GREETED)
        else:
            recorded.run(HOLD)
    words = ("executions", "list", "--status", "interrupted", "-o", "json")
    assert ids(noetl(*words)) == ["7", "5", "3", "1"]
    assert noetl(*words[:-2]).out.count("interrupted") == 4
    assert ids(noetl(*words, "--status", "completed")) == ["8", "7", "6", "5", "4", "3", "2", "1"]
    ownership = Owners(recorded.home.owners).acquire(f"{FIRST}5")
    assert ownership is not None
    with ownership:
        folder = recorded.home.folder.parent
        first = run(*words, "--limit", "2", cwd=folder)
        assert ids(first) == ["7", "3"]
        rest = run(*words, "--limit", "2", "--cursor", first.json["next"], cwd=folder)
        assert (ids(rest), rest.json["next"]) == (["1"], None)
        running = run("executions", "list", "--status", "running", "-o", "json", cwd=folder)
        assert ids(running) == ["7", "5", "3", "1"]


def test_children_are_marked_and_can_be_left_out(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    first = recorded.run(GREET, GREETED)
    for _ in range(3):
        recorded.run(BREAK, BROKEN, parent=ParentTask(execution_id=first, task_run_id="r5/0/say/1/1"))
    rows = noetl("executions", "list").out.splitlines()[1:]
    assert ["↳ docs/page" in row for row in rows] == [True, True, True, False]
    roots = noetl("executions", "list", "--roots", "--limit", "1", "-o", "json")
    assert (ids(roots), roots.json["next"]) == (["1"], None)
    assert ids(noetl("executions", "list", "--roots", "--status", "failed", "-o", "json")) == []
    assert noetl("executions", "show", "latest", "-o", "json").json["execution_id"] == first
