"""Two executions compared, and what a fork, a retry or a redrive would do."""

from pathlib import Path
from typing import Any

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.server.server_process import LOOPING, ServerProcess
from tests.server.test_api_executions import start

LETTERS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: letters, path: previews/letters}
workload: {many: 3}
workflow:
- step: start
  tool:
  - {name: make, kind: python, args: {many: "{{ workload.many }}"}, code: "def main(many):\\n    return many"}
  set: {ctx.made: "{{ event.result }}"}
  next: {arcs: [{step: note, when: "{{ ctx.made < 5 }}"}, {step: shout}]}
- step: note
  tool:
  - {name: write, kind: file, action: put, url: "FOLDER/note.json", content: "{{ ctx.made }}"}
  - {name: plain, kind: noop, args: {a: 1}}
- step: shout
  tool: {kind: noop, args: {}}
"""
BROKEN = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: broken, path: previews/broken}
workflow:
- step: start
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: load}]}
- step: load
  tool:
  - {name: before, kind: noop, args: {}}
  - {name: read, kind: file, action: get, url: "FOLDER/nothing-here.txt"}
  next: {arcs: [{step: after}]}
- step: after
  tool: {kind: noop, args: {}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("letters")


def run_inline(client: Client, text: str, folder: Path, **more: Any) -> str:
    document = text.replace("FOLDER", str(folder))
    execution_id = client.start(StartExecution(playbook=document, **more)).execution_id
    client.wait(execution_id)
    return execution_id


@pytest.fixture(scope="module")
def letters(server: ServerProcess, folder: Path) -> str:
    return run_inline(server.client, LETTERS, folder)


def seq_of(client: Client, execution_id: str, name: str, which: int = 0) -> int:
    seqs = [event["seq"] for event in client.events(execution_id).events if event["name"] == name]
    return int(seqs[which])


def test_the_same_twice_does_not_differ(client: Client, folder: Path, letters: str) -> None:
    diff = client.diff(letters, run_inline(client, LETTERS, folder))
    assert diff.divergence is None
    assert (diff.same_playbook, diff.guards, diff.values) == (True, [], [])
    assert not any(step.differs for step in diff.steps)
    assert diff.common == diff.a.events


def test_the_first_difference_is_where_the_workload_is_another(
    client: Client, folder: Path, letters: str
) -> None:
    other = run_inline(client, LETTERS, folder, workload={"many": 7})
    diff = client.diff(letters, other)
    assert diff.divergence is not None
    assert (diff.common, diff.divergence.path) == (0, "workload.many")
    assert [(value.path, value.a, value.b) for value in diff.values] == [
        ("workload.many", 3, 7),
        ("ctx.made", 3, 7),
        *[(value.path, value.a, value.b) for value in diff.values if value.path.startswith("result")],
    ]
    [guard] = diff.guards
    assert (guard.step, guard.arc) == ("start", "note")
    assert guard.a is not None
    assert guard.b is not None
    assert (guard.a.holds, guard.b.holds) == (True, False)
    assert [read.value for read in guard.b.reads] == [7]
    steps = {step.step: step for step in diff.steps}
    assert steps["note"].status == ("completed", None)
    assert steps["shout"].status == (None, "completed")
    assert steps["start"].result == (3, 7)


def test_a_fork_parts_from_its_source_where_it_was_forked(client: Client, letters: str) -> None:
    at = seq_of(client, letters, "StepDone")
    preview = client.preview_fork(letters, at)
    forked = client.fork(letters, at, ctx={"made": 9}).execution_id
    client.wait(forked)
    diff = client.diff(letters, forked)
    assert diff.divergence is not None
    assert diff.divergence.b is not None
    assert (diff.divergence.b.name, diff.divergence.b.seq) == ("ExecutionForked", preview.cut + 1)
    assert diff.b.forked_from == letters
    assert diff.common == preview.cut
    back = client.diff(forked, letters)
    assert back.divergence is not None
    assert back.divergence.a == diff.divergence.b


def test_a_fork_preview_says_what_is_kept_and_which_effects_come_again(client: Client, letters: str) -> None:
    events = client.events(letters).events
    preview = client.preview_fork(letters, seq_of(client, letters, "StepDone"))
    assert [(step.step, step.runs) for step in preview.kept] == [("start", 1)]
    assert [(task.step, task.task, task.effect, task.begun) for task in preview.repeats] == [
        ("note", "write", "write", 1),
        ("note", "plain", "none", 1),
    ]
    late = client.preview_fork(letters, seq_of(client, letters, "TaskStarted", 1))
    assert [(run.step, run.task) for run in late.open] == [("note", "write")]
    assert late.repeats == preview.repeats, "nobody knows whether it was written"
    assert client.events(letters).events == events


def test_a_fork_preview_is_refused_where_the_fork_is(client: Client, letters: str) -> None:
    last = len(client.events(letters).events)
    for at, message in ((last, "completed by event"), (last + 1, "has no event")):
        with pytest.raises(ServerError, match=message) as refused:
            client.preview_fork(letters, at)
        with pytest.raises(ServerError, match=message):
            client.fork(letters, at)
        assert refused.value.code == "refused"
    with pytest.raises(ServerError, match="cannot go on with"):
        client.preview_fork(letters, last - 3, playbook=BROKEN)


def test_a_dry_run_makes_nothing_and_is_no_deed(client: Client, letters: str) -> None:
    before = client.list(limit=1).executions[0].execution_id
    deeds = len(client.audit(limit=1000).audit)
    client.preview_fork(letters, 3)
    assert client.list(limit=1).executions[0].execution_id == before
    assert len(client.audit(limit=1000).audit) == deeds


def test_a_retry_preview_says_which_runs_open_again(client: Client, folder: Path) -> None:
    failed = run_inline(client, BROKEN, folder)
    preview = client.preview_retry(failed)
    assert [(run.step, run.task) for run in preview.runs] == [("load", "read")]
    assert preview.steps == ["load"]
    assert [(task.task, task.kind) for task in preview.repeats] == [("read", "file")]
    assert client.show(failed).status == "failed"
    assert client.retry(failed).steps == preview.steps
    client.wait(failed)


def test_a_redrive_preview_says_how_many_iterations_run_again(client: Client) -> None:
    looped = client.start(StartExecution(playbook=LOOPING)).execution_id
    client.wait(looped)
    preview = client.preview_redrive(looped)
    assert (preview.iterations, preview.steps) == (1, ["total"])
    assert [(run.step, run.iterations) for run in preview.runs] == [("each", 1)]
    assert [(task.step, task.begun) for task in preview.repeats] == [("each", 1), ("total", 1)]
    with pytest.raises(ServerError, match="no loop at `total`"):
        client.preview_redrive(looped, "total")


def test_what_did_not_fail_has_no_retry_to_preview(client: Client, letters: str) -> None:
    with pytest.raises(ServerError, match="only a failed execution") as refused:
        client.preview_retry(letters)
    assert refused.value.code == "refused"


def test_events_come_newest_first_and_with_chosen_fields(client: Client, letters: str) -> None:
    events = client.events(letters).events
    page = client.events(letters, before=10_000, limit=5, fields=("seq", "name"))
    assert page.events == [{"seq": event["seq"], "name": event["name"]} for event in events[:-6:-1]]
    seqs = []
    before: int | None = 10_000
    while before is not None:
        page = client.events(letters, before=before, limit=4, fields=("seq",))
        seqs += [event["seq"] for event in page.events]
        before = int(page.next_cursor) if page.next_cursor is not None else None
    assert seqs == [event["seq"] for event in reversed(events)]
    assert client.events(letters, before=1).events == []
    with pytest.raises(ServerError, match="no `nothing`"):
        client.events(letters, fields=("nothing",))
    with pytest.raises(ServerError, match="exclude each other"):
        client.events(letters, after=1, before=5)


def test_logs_come_in_pages_and_go_on_later(client: Client) -> None:
    text = "def main():\\n    for n in range(7): print('line', n)"
    document = (
        LOOPING.split("workflow:")[0] + f'workflow:\n- step: a\n  tool: {{kind: python, code: "{text}"}}\n'
    )
    execution_id = client.start(StartExecution(playbook=document)).execution_id
    client.wait(execution_id)
    lines, after = [], ""
    while True:
        page = client.logs(execution_id, after=after, limit=3)
        lines += [line["text"] for line in page.lines]
        after = page.last
        if page.next_cursor is None:
            break
    assert lines == [f"line {n}" for n in range(7)]
    again = client.logs(execution_id, after=after)
    assert (again.lines, again.next_cursor, again.last) == ([], None, after)
    with pytest.raises(ServerError, match="no cursor of a log"):
        client.logs(execution_id, after="x")


ROWS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: rows, path: previews/rows}
workflow:
- step: start
  tool:
    kind: python
    code: |
      def main():
          return {"rows": [{"id": n, "text": "x" * 50} for n in range(5000)], "name": "many"}
"""


def test_rows_of_a_stored_value_are_read_some_at_a_time(client: Client) -> None:
    execution_id = client.start(StartExecution(playbook=ROWS)).execution_id
    reference = client.wait(execution_id).result
    assert reference["$noetl"] == "ref"
    top = client.result_rows(reference)
    assert (top.type, top.total, [row["key"] for row in top.rows]) == ("mapping", 2, ["rows", "name"])
    rows = client.result_rows(reference, path=("rows",), offset=4950)
    assert (rows.type, rows.total, rows.columns, len(rows.rows)) == ("list", 5000, ["id", "text"], 50)
    assert (rows.rows[0]["id"], rows.next_offset) == (4950, None)
    assert client.result_rows(reference, path=("rows",)).next_offset == 100
    assert client.result_rows(reference, path=("rows", "7", "id")).rows == [7]
    assert client.result_rows(reference, path=("name",)).rows == ["many"]
    assert client.result_rows(reference, path=("rows",), offset=9_999).rows == []
    for path in (("nothing",), ("rows", "5000"), ("rows", "x"), ("name", "a")):
        with pytest.raises(ServerError, match="has no part") as refused:
            client.result_rows(reference, path=path)
        assert refused.value.code == "not_found"


def test_an_execution_is_verified(client: Client, letters: str) -> None:
    answer = client.verify(letters)
    assert (answer.ok, answer.differences) == (True, [])
    assert answer.events == len(client.events(letters).events)


def test_an_export_has_all_that_can_be_seen(client: Client, letters: str) -> None:
    export = client.export(letters)
    assert export.execution.execution_id == letters
    assert export.execution.status == "completed"
    assert export.index == client.index(letters)
    assert export.runs == client.runs(letters)
    assert export.explanation == client.explanation(letters)
    assert [event["seq"] for event in export.events] == list(range(1, export.index.last + 1))
    assert "previews/letters" in export.source


def test_a_diff_needs_two_executions(client: Client, letters: str) -> None:
    with pytest.raises(ServerError) as refused:
        client.diff(letters, "nobody")
    assert refused.value.code == "not_found"
    assert start(client) != letters
