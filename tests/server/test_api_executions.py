"""Executions over HTTP: started, looked at, steered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.client.http_client import AsyncClient, Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import BulkAnswer, ExecutionDetail, StartExecution
from tests.server.server_process import FAILING, GREET, LOOPING, REPAIRED_LOOPING, ServerProcess
from tests.server.test_api_security import send

AFTER = """\
- step: after
  tool: {kind: python, code: "def main():\\n    return 'after'"}
"""


def start(client: Client, path: str = "examples/greet", **more: Any) -> str:
    return client.start(StartExecution(path=path, **more)).execution_id


def waiting(client: Client, **more: Any) -> str:
    """An execution that waits for a signal."""
    execution_id = start(client, "examples/waiting", **more)

    async def follow() -> None:
        async with AsyncClient(client._url, client._token) as stream:
            async for event in stream.stream(execution_id):
                if event["name"] == "RunSuspended":
                    return

    asyncio.run(follow())
    return execution_id


def test_an_execution_runs_to_its_end(client: Client) -> None:
    detail = client.wait(start(client, workload={"name": "Ada"}, labels={"team": "shop"}))
    assert (detail.status, detail.result) == ("completed", {"greeting": "Hello Ada"})
    assert (detail.playbook, detail.version, detail.labels) == ("examples/greet", "1.0", {"team": "shop"})
    step = detail.steps["start"]
    assert (list(detail.steps), step["status"], step["runs"]) == (["start"], "completed", 1)
    assert detail.requested_by == "local-admin"
    assert detail.workload == {"name": "Ada"}


@pytest.mark.spec("000 §4.1 (1)")
@pytest.mark.spec("000 §4.1 (4)")
def test_a_request_for_an_unknown_playbook_is_recorded(client: Client) -> None:
    with pytest.raises(ServerError) as refused:
        start(client, "examples/nobody", workload={"a": 1})
    problem = refused.value.problem
    assert (problem.status, problem.code) == (404, "not_found")
    detail = client.show(problem.execution_id)
    assert (detail.status, detail.playbook) == ("failed", "examples/nobody")
    assert detail.error is not None
    assert detail.error["kind"] == "not_found"
    names = [(event["name"], event["status"]) for event in client.events(problem.execution_id).events]
    assert names[0][0] == "PlaybookExecutionRequested"
    assert ("PlaybookRequestEvaluated", "error") in names
    assert names[-1] == ("PlaybookProcessed", "error")


@pytest.mark.spec("000 §4.1 (3)")
def test_a_request_with_an_invalid_document_is_recorded(client: Client) -> None:
    with pytest.raises(ServerError) as refused:
        client.start(StartExecution(playbook=GREET.replace("kind: python", "kind: pyton")))
    problem = refused.value.problem
    assert (problem.status, problem.code) == (422, "invalid_playbook")
    assert [found_problem.line for found_problem in problem.problems] == [9]
    assert client.show(problem.execution_id).status == "failed"


def test_what_would_run_beside_the_store_is_refused_and_recorded(client: Client) -> None:
    document = GREET.replace("workload:", "executor: {kind: local}\nworkload:")
    with pytest.raises(ServerError) as refused:
        client.start(StartExecution(playbook=document))
    problem = refused.value.problem
    assert (problem.status, problem.code) == (422, "refused")
    assert "--allow-local" in problem.hint
    assert client.show(problem.execution_id).status == "failed"


def test_an_inline_document_may_be_the_document_itself(client: Client) -> None:
    document = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "a", "path": "inline/a"},
        "workflow": [{"step": "start", "tool": {"kind": "noop"}}],
    }
    started = client.start(StartExecution(playbook=document))
    assert client.wait(started.execution_id).playbook == "inline/a"


def test_a_child_comes_from_the_catalog(client: Client) -> None:
    detail = client.wait(start(client, "examples/parent"))
    assert detail.status == "completed"
    assert detail.result == {"greeting": "Hello Child"}
    children = client.list(path="examples/greet", limit=1).executions
    assert children[0].parent == detail.execution_id


def test_a_missing_child_is_found_before_the_first_step(client: Client) -> None:
    document = (
        GREET.replace("greet", "orphan").replace("kind: python", "kind: playbook").split("    args:")[0]
    )
    with pytest.raises(ServerError) as refused:
        client.start(StartExecution(playbook=document + "    path: examples/nobody\n"))
    assert refused.value.problem.code == "refused"
    assert "examples/nobody" in refused.value.problem.problems[0].message


def test_a_priority_is_kept_with_an_execution(client: Client) -> None:
    execution_id = start(client, priority=-100)
    assert client.show(execution_id).priority == -100
    assert [item.priority for item in client.list(prefix=execution_id).executions] == [-100]
    with pytest.raises(ServerError) as refused:
        start(client, "examples/nobody", priority=3)
    assert client.show(refused.value.problem.execution_id).priority == 3
    assert client.show(start(client)).priority == 0


@pytest.mark.parametrize("other", [{"workload": {"name": "B"}}, {"priority": 1}])
def test_a_key_starts_one_execution(client: Client, other: dict[str, Any]) -> None:
    first = start(client, idempotency_key="once", workload={"name": "A"})
    assert start(client, idempotency_key="once", workload={"name": "A"}) == first
    with pytest.raises(ServerError) as refused:
        start(client, **{"idempotency_key": "once", "workload": {"name": "A"}, **other})
    problem = refused.value.problem
    assert (problem.status, problem.code, problem.execution_id) == (409, "conflict", first)


def test_asking_again_with_a_key_does_not_wake_what_is_paused(client: Client) -> None:
    execution_id = waiting(client, idempotency_key="held")
    client.pause(execution_id)
    again = client.start(StartExecution(path="examples/waiting", idempotency_key="held"))
    assert (again.execution_id, again.status) == (execution_id, "paused")
    client.cancel(execution_id)


def test_a_batch_has_a_verdict_for_each(client: Client) -> None:
    requests = [StartExecution(path="examples/greet"), StartExecution(path="examples/nobody")]
    requests += [StartExecution(), StartExecution(path="examples/greet", version=9)]
    verdicts = client.start_many(requests).executions
    codes = [verdict.error.code if verdict.error else None for verdict in verdicts]
    assert codes == [None, "not_found", "invalid_request", "not_found"]
    assert [bool(verdict.execution_id) for verdict in verdicts] == [True, True, False, True]


def test_a_batch_begins_in_order_and_a_key_in_it_counts_once(client: Client) -> None:
    keyed = StartExecution(path="examples/waiting", idempotency_key="batch", labels={"batch": "keys"})
    many = [StartExecution(path="examples/waiting", labels={"batch": "many"}) for _ in range(70)]
    verdicts = client.start_many([keyed, *many, keyed]).executions
    assert [verdict.error for verdict in verdicts] == [None] * 72
    ids = [verdict.execution_id for verdict in verdicts]
    assert ids[0] == ids[-1]
    assert ids[:-1] == sorted(set(ids))
    assert len(client.list(labels={"batch": "keys"}).executions) == 1
    together = client.start_many([replace(keyed, idempotency_key="twice")] * 2).executions
    assert len({verdict.execution_id for verdict in together}) == 1
    for batch in ("keys", "many"):
        client.bulk("cancel", {"labels": {"batch": batch}})


def test_lists_are_filtered_and_paged(client: Client) -> None:
    ids = [start(client, labels={"page": "yes"}) for _ in range(3)]
    page = client.list(labels={"page": "yes"}, limit=2)
    assert [item.execution_id for item in page.executions] == ids[:0:-1]
    rest = client.list(labels={"page": "yes"}, limit=2, cursor=page.next_cursor or "")
    assert ([item.execution_id for item in rest.executions], rest.next_cursor) == (ids[:1], None)
    assert client.list(path="examples/nobody", status=("completed",)).executions == []
    assert [item.execution_id for item in client.list(prefix=ids[0]).executions] == [ids[0]]


def test_executions_are_searched_by_error_version_time_and_text(client: Client) -> None:
    client.register(FAILING.replace("failing", "searched"))
    failed = client.wait(start(client, "examples/searched", labels={"who": "Searcher"})).execution_id
    client.register(FAILING.replace("failing", "searched").replace("'no'", "'never'"))
    again = client.wait(start(client, "examples/searched")).execution_id

    def ids(**query: Any) -> list[str]:
        return [item.execution_id for item in client.list(path="examples/searched", **query).executions]

    assert ids(version=1) == [failed]
    assert ids(version=2) == [again]
    assert ids(q="NEVER") == [again]
    assert ids(q="searcher") == [failed]
    error = client.show(failed).error
    assert error is not None
    assert ids(error_kind=error["kind"]) == [again, failed]
    assert ids(error_kind="none") == []
    began = client.show(again).started_at
    assert (ids(since=began), ids(until=began)) == ([again], [failed])
    with pytest.raises(ServerError) as pathless:
        client.list(version=1)
    assert pathless.value.problem.pointer == "/version"
    with pytest.raises(ServerError) as missing:
        client.list(path="examples/searched", version=9)
    assert missing.value.code == "not_found"
    bulk = client.bulk("retry", {"path": "examples/searched", "version": 1, "q": "searcher"})
    assert [verdict.execution_id for verdict in bulk.executions] == [failed]
    client.wait(failed)


@pytest.mark.parametrize("name", ["greet", "failing", "parent", "large"])
def test_whoever_waits_from_the_start_hears_what_is_read_afterwards(client: Client, name: str) -> None:
    ended = client.run(StartExecution(path=f"examples/{name}", labels={"how": "waited"}))
    assert ended.status in ("completed", "failed")
    assert ended == client.show(ended.execution_id)


def test_whoever_waits_from_the_start_waits_no_longer_than_asked(client: Client) -> None:
    request = StartExecution(path="examples/waiting", idempotency_key="waited for")
    begun = client.run(request, timeout=0.0)
    assert begun.status == "running"
    waiting = client.run(request, timeout=0.05)
    assert (waiting.execution_id, waiting.status) == (begun.execution_id, "running")
    client.signal(begun.execution_id, "go", {"n": 1})
    assert client.run(request).status == "completed"


def test_many_ends_are_not_waited_for_in_one_request(server: ServerProcess) -> None:
    body = b'{"executions": [{"path": "examples/greet"}]}'
    url = f"{server.url}/api/executions?wait=1"
    status, _, problem = send(url, "POST", server.token, body, Content_Type="application/json")
    assert (status, problem["code"], problem["pointer"]) == (422, "invalid_request", "/wait")


def test_waiting_for_the_end_answers_at_the_end_or_in_time(client: Client) -> None:
    execution_id = waiting(client)
    assert client.show(execution_id, wait=0.01).status == "running"
    detail = client.show(execution_id)
    assert detail.marking == {"start": {"suspended": 1}}
    client.signal(execution_id, "go", {"n": 1})
    assert client.show(execution_id, wait=60).status == "completed"


def test_a_paused_execution_goes_on_when_it_is_resumed(client: Client) -> None:
    execution_id = waiting(client)
    assert client.pause(execution_id).status == "paused"
    with pytest.raises(ServerError, match="paused already"):
        client.pause(execution_id)
    client.signal(execution_id, "go")
    assert client.resume(execution_id).status in ("running", "completed")
    assert client.wait(execution_id).status == "completed"
    with pytest.raises(ServerError) as refused:
        client.resume(execution_id)
    assert (refused.value.problem.status, refused.value.code) == (409, "refused")


def test_a_cancelled_execution_says_by_whom_and_why(client: Client) -> None:
    execution_id = waiting(client)
    client.cancel(execution_id, "no longer needed")
    assert client.wait(execution_id).status == "cancelled"
    events = client.events(execution_id).events
    requested = next(event for event in events if event["name"] == "CancelRequested")
    assert (requested["data"]["by"], requested["data"]["reason"]) == ("local-admin", "no longer needed")


def test_a_failed_execution_goes_on_with_a_repaired_document(client: Client) -> None:
    execution_id = start(client, "examples/failing")
    assert client.wait(execution_id).status == "failed"
    assert client.retry(execution_id).execution_id == execution_id
    assert client.wait(execution_id).status == "failed"
    repaired = FAILING.replace("raise ValueError('no')", "return 7")
    client.retry(execution_id, playbook=repaired)
    detail = client.wait(execution_id)
    assert (detail.status, detail.result) == ("completed", 7)


def test_a_failed_execution_goes_on_with_another_version(server: ServerProcess) -> None:
    client = server.client
    client.register(FAILING.replace("failing", "versioned"))
    execution_id = start(client, "examples/versioned")
    assert client.wait(execution_id).status == "failed"
    client.register(FAILING.replace("failing", "versioned").replace("raise ValueError('no')", "return 8"))
    client.retry(execution_id, version=2)
    assert client.wait(execution_id).result == 8


def test_what_is_stuck_is_completed_by_hand_and_goes_on(client: Client) -> None:
    execution_id = waiting(client)
    assert client.complete(execution_id, "start", {"by": "hand"}).recorded
    detail = client.wait(execution_id)
    assert (detail.status, detail.steps["end"]["status"]) == ("completed", "completed")
    ended = next(e["data"] for e in client.events(execution_id).events if e["name"] == "StepCompletedByHand")
    assert (ended["result"], ended["by"]) == ({"by": "hand"}, "local-admin")
    with pytest.raises(ServerError) as refused:
        client.complete(execution_id, "start")
    assert (refused.value.problem.status, refused.value.code) == (409, "refused")


def test_a_step_that_failed_is_skipped_and_what_is_behind_it_runs(client: Client) -> None:
    client.register(FAILING.replace("failing", "passed") + "  next: {arcs: [{step: after}]}\n" + AFTER)
    execution_id = start(client, "examples/passed")
    assert client.wait(execution_id).status == "failed"
    with pytest.raises(ServerError, match="no step `strat`; did you mean `start`"):
        client.skip(execution_id, "strat")
    assert client.show(execution_id).status == "failed"
    client.skip(execution_id, "start")
    detail = client.wait(execution_id)
    assert (detail.status, detail.result) == ("completed", "after")
    skipped = next(event for event in client.events(execution_id).events if event["name"] == "StepSkipped")
    assert skipped["data"]["by"] == "local-admin"


def test_a_last_step_that_failed_is_completed_and_with_it_the_execution(client: Client) -> None:
    execution_id = start(client, "examples/failing")
    assert client.wait(execution_id).status == "failed"
    assert client.complete(execution_id, "start", 7).status == "completed"
    assert client.show(execution_id).result == 7
    assert client.fork(execution_id, 3).execution_id != execution_id


def test_failed_iterations_are_redriven_with_a_newer_version(client: Client) -> None:
    client.register(LOOPING)
    execution_id = start(client, "examples/looping")
    assert client.wait(execution_id).result == {"sum": 4}
    again = client.redrive(execution_id)
    assert (again.steps, again.execution_id) == (["total"], execution_id)
    assert client.wait(execution_id).result == {"sum": 4}, "it fails again"
    client.register(REPAIRED_LOOPING)
    client.redrive(execution_id, "each", version=2)
    detail = client.wait(execution_id)
    assert (detail.status, detail.result, detail.steps["total"]["runs"]) == ("completed", {"sum": 6}, 3)
    with pytest.raises(ServerError) as refused:
        client.redrive(execution_id)
    assert (refused.value.problem.status, refused.value.code) == (409, "refused")
    redriven = [e for e in client.events(execution_id).events if e["name"] == "IterationsRedriven"]
    assert [(e["data"]["by"], e["data"]["iterations"]) for e in redriven] == [("local-admin", 1)] * 2


def test_a_document_that_changes_what_has_run_is_not_redriven(client: Client) -> None:
    execution_id = start(client, "examples/looping", version=1)
    client.wait(execution_id)
    with pytest.raises(ServerError, match="the loop of step `each`, which has begun, is changed"):
        client.redrive(execution_id, playbook=REPAIRED_LOOPING.replace("[1, 2, 3]", "[1, 2]"))
    with pytest.raises(ServerError) as missing:
        client.redrive(execution_id, version=9)
    assert missing.value.code == "not_found"
    assert client.show(execution_id).status == "completed"


def test_a_fork_goes_on_from_an_event(client: Client) -> None:
    execution_id = waiting(client)
    fork = client.fork(execution_id, 3, ctx={"forked": True})
    assert fork.execution_id != execution_id
    client.signal(fork.execution_id, "go")
    detail = client.wait(fork.execution_id)
    assert (detail.status, detail.forked_from, detail.ctx["forked"]) == ("completed", execution_id, True)
    assert client.show(execution_id).status == "running"
    client.cancel(execution_id)


def test_the_state_at_an_event_is_as_it_was(client: Client) -> None:
    detail = client.wait(start(client))
    first = client.state(detail.execution_id, at=1)
    assert (first["status"], first["at"], first["of"]) == ("running", 1, detail.events)
    assert client.state(detail.execution_id)["status"] == "completed"
    with pytest.raises(ServerError) as refused:
        client.state(detail.execution_id, at=10_000)
    assert refused.value.problem.pointer == "/at"


def test_it_is_explained_why_an_execution_stands_where_it_does(client: Client) -> None:
    execution_id = waiting(client)
    (run,) = client.explanation(execution_id).runs
    assert (run.step, run.phase, [wait.signal for wait in run.waits]) == ("start", "suspended", ["go"])
    assert client.explanation(execution_id, at=1).runs == ()
    client.signal(execution_id, "go")
    client.wait(execution_id)
    first, last = client.explanation(execution_id).runs
    assert first.routing is not None
    assert [(arc.step, arc.selected) for arc in first.routing.arcs] == [("end", True)]
    assert last.arrivals[0].run == first.run
    with pytest.raises(ServerError) as refused:
        client.explanation(execution_id, at=10_000)
    assert refused.value.problem.pointer == "/at"


def test_many_are_cancelled_at_once_after_a_dry_run(client: Client) -> None:
    ids = {waiting(client, labels={"bulk": "yes"}) for _ in range(2)}
    where = {"labels": {"bulk": "yes"}}
    dry = client.bulk("cancel", where, dry_run=True)
    assert {verdict.execution_id for verdict in dry.executions} == ids
    assert all(client.show(execution_id).status == "running" for execution_id in ids)
    done = client.bulk("cancel", where)
    assert {verdict.execution_id for verdict in done.executions} == ids
    assert all(client.wait(execution_id).status == "cancelled" for execution_id in ids)
    assert client.bulk("cancel", where).executions == []


def test_many_are_retried_at_once(client: Client) -> None:
    execution_id = start(client, "examples/failing", labels={"again": "yes"})
    before = client.wait(execution_id)
    answer = client.bulk("retry", {"labels": {"again": "yes"}})
    assert [verdict.execution_id for verdict in answer.executions] == [execution_id]
    assert client.wait(execution_id).events > before.events


def test_many_are_signalled_at_once(client: Client) -> None:
    ids = [waiting(client, labels={"told": "yes"}) for _ in range(2)]
    answer = client.bulk("signal", {"labels": {"told": "yes"}}, signal="go", payload={"n": 1})
    assert {verdict.execution_id for verdict in answer.executions} == set(ids)
    assert [client.wait(execution_id).status for execution_id in ids] == ["completed"] * 2
    events = client.events(ids[0]).events
    assert [event["data"]["payload"] for event in events if event["name"] == "SignalReceived"] == [{"n": 1}]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"do": "cancel", "where": {}}, "/where"),
        ({"do": "cancel"}, "/where"),
        ({"do": "retry", "where": {"roots": True}}, "/where"),
        ({"do": "retry", "where": {"labels": {}, "path": ""}}, "/where"),
        ({"do": "cancel", "where": {"path": "a"}, "all": True}, "/all"),
        ({"do": "signal", "where": {"path": "a"}}, "/signal"),
        ({"do": "cancel", "where": {"path": "a"}, "signal": "go"}, "/signal"),
    ],
)
def test_what_is_done_to_many_says_to_which(client: Client, body: dict[str, Any], pointer: str) -> None:
    execution_id = waiting(client)
    for dry_run in (True, False):
        with pytest.raises(ServerError) as refused:
            asyncio.run(_bulk(client, {**body, "dry_run": dry_run}))
        assert (refused.value.code, refused.value.problem.pointer) == ("invalid_request", pointer)
    assert client.show(execution_id).status == "running"
    client.cancel(execution_id)


async def _bulk(client: Client, body: dict[str, Any]) -> None:
    async with AsyncClient(client._url, client._token) as asking:
        await asking._ask("POST", "/api/executions/bulk", BulkAnswer, json=body)


def test_all_that_there_are_is_meant_when_it_says_so(client: Client) -> None:
    execution_id = waiting(client)
    dry = client.bulk("cancel", {}, everything=True, dry_run=True)
    assert execution_id in {verdict.execution_id for verdict in dry.executions}
    assert client.show(execution_id).status == "running"
    client.cancel(execution_id)


def test_a_large_result_is_read_by_its_reference(client: Client) -> None:
    detail: ExecutionDetail = client.wait(start(client, "examples/large"))
    reference = detail.result
    data = client.result(reference)
    assert data.startswith(b'{"text":"abcdefghij')
    assert client.result(reference, start=9, end=19) == b"abcdefghij"
    assert client.result(reference, start=len(data) - 2) == b'"}'
    with pytest.raises(ServerError) as refused:
        client.result(reference, start=len(data))
    assert refused.value.problem.status == 416
    with pytest.raises(ServerError) as unknown:
        client.result({"key": f"{detail.execution_id}/{'0' * 64}"})
    assert unknown.value.code == "not_found"


def test_logs_are_those_of_the_execution_and_its_children(client: Client) -> None:
    detail = client.wait(start(client, "examples/parent"))
    lines = client.logs(detail.execution_id).lines
    assert [line["text"] for line in lines] == ["hello Child"]
    assert lines[0]["execution_id"] != detail.execution_id
    assert client.logs(detail.execution_id, step="other").lines == []

    async def follow() -> list[str]:
        async with AsyncClient(client._url, client._token) as stream:
            return [line["text"] async for line in stream.follow_logs(detail.execution_id)]

    assert asyncio.run(follow()) == ["hello Child"]


def test_logs_are_a_stream_for_who_asks_for_no_other_form(server: ServerProcess) -> None:
    execution_id = server.client.wait(start(server.client)).execution_id
    url = f"{server.url}/api/executions/{execution_id}/logs"
    status, headers, body = send(url, token=server.token, Accept="*/*")
    assert (status, headers.get_content_type()) == (200, "text/event-stream")
    assert b'"text":"hello World"' in body
    assert send(url, token=server.token, Accept="application/json")[2]["lines"][0]["text"] == "hello World"


def test_a_server_without_a_worker_leaves_the_work_to_others(tmp_path: Path) -> None:
    from tests.server.server_process import server_process

    with server_process(tmp_path, worker=False) as process:
        process.client.register(GREET)
        execution_id = start(process.client)
        detail = process.client.show(execution_id, wait=0.05)
        assert (detail.status, detail.marking) == ("running", {"start": {"ready": 1}})
        assert process.stop() == 0
    with server_process(tmp_path) as process:
        assert process.client.wait(execution_id).status == "completed"
