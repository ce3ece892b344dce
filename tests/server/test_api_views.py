"""One execution seen through the API: events as columns, runs in time, why, and expressions at an event."""

import asyncio
import gzip
import json
from typing import Any
from urllib import request

import pytest

from noetl.client.http_client import AsyncClient, Client
from noetl.client.server_requests import ServerError
from noetl.kernel.state.marking_changes import MARKING_PLACES
from noetl.model.timestamp import parse_iso
from noetl.ports.execution_views import HistoryIndex
from noetl.ports.http_api import StartExecution
from tests.server.server_process import LOOPING, ServerProcess
from tests.server.test_api_executions import start, waiting

_OPEN_PLACES = MARKING_PLACES.index("ended") + 1

SHOP = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shop, path: views/shop}
workload: {limit: 10}
workflow:
- step: start
  tool:
  - name: count
    kind: python
    code: "def main():\\n    return {'total': 3, 'rows': [1, 2, 3]}"
    spec: {policy: {rules: [{when: "{{ outcome.status == 'ok' }}", then: {do: continue, set: {ctx.total: "{{ outcome.result.total }}"}}}]}}
  next:
    spec: {mode: exclusive}
    arcs:
    - {step: big, when: "{{ ctx.total >= workload.limit }}"}
    - {step: small, args: {n: "{{ event.result.total }}"}}
- step: small
  tool: {kind: noop, args: {n: "{{ args.n }}"}}
- step: big
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: bigger}]}
- step: bigger
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: biggest}]}
- step: biggest
  tool: {kind: noop, args: {}}
"""


FAR = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: far, path: views/far}
executor: {spec: {pool: nowhere}}
workflow:
- step: start
  tool: {kind: noop, args: {}}
"""


@pytest.fixture(scope="module")
def shop(server: ServerProcess) -> str:
    execution_id = server.client.start(StartExecution(playbook=SHOP)).execution_id
    assert server.client.wait(execution_id).status == "completed"
    return execution_id


@pytest.fixture(scope="module")
def looping(server: ServerProcess) -> str:
    execution_id = server.client.start(StartExecution(playbook=LOOPING)).execution_id
    server.client.wait(execution_id)
    return execution_id


def marking_after(index: HistoryIndex, seq: int) -> dict[str, dict[str, int]]:
    """What a page draws: the changes up to an event, added up."""
    counts: dict[str, dict[str, int]] = {}
    for changes in index.marking[:seq]:
        for step, stage, by in zip(changes[::3], changes[1::3], changes[2::3], strict=True):
            if stage < _OPEN_PLACES:
                places = counts.setdefault(index.steps[step], {})
                places[index.places[stage]] = places.get(index.places[stage], 0) + by
    positive = {
        step: {stage: count for stage, count in places.items() if count} for step, places in counts.items()
    }
    return {step: places for step, places in positive.items() if places}


@pytest.mark.parametrize("name", ["shop", "looping"])
def test_the_index_gives_the_marking_of_every_event(
    client: Client, name: str, request: pytest.FixtureRequest
) -> None:
    execution_id = request.getfixturevalue(name)
    index = client.index(execution_id)
    events = client.events(execution_id).events
    assert [index.names[number] for number in index.name] == [event["name"] for event in events]
    for seq in range(1, len(events) + 1):
        assert marking_after(index, seq) == client.state(execution_id, at=seq)["marking"]
    assert (index.last, index.after, index.status) == (len(events), 0, "completed")
    assert index.errors == [event["seq"] for event in events if event["status"] == "error"]


def test_the_index_names_step_and_run_of_each_event(client: Client, shop: str) -> None:
    index = client.index(shop)
    events = client.events(shop).events
    runs = [index.runs[position] if position >= 0 else None for position in index.run]
    for event, run, arc in zip(events, runs, index.arc, strict=True):
        if event["name"] == "TokenEnqueued":
            assert (run or "", arc) == (event["data"].get("run", ""), event["data"].get("arc", -1))
        else:
            assert (run, arc) == (event.get("step_run_id"), -1)
    scheduled = [event for event in events if event["name"] == "StepScheduled"]
    assert index.runs == [event["entity_id"] for event in scheduled]
    for event in scheduled:
        assert index.steps[index.step[event["seq"] - 1]] == event["data"]["step"]
    assert index.step[0] == -1
    assert index.base + sum(index.time) == index.base + _micros(events[-1]) - _micros(events[0])


def _micros(event: dict[str, Any]) -> int:
    return parse_iso(event["timestamp"])


def test_the_picture_of_an_execution_is_that_of_what_it_runs(client: Client, shop: str) -> None:
    net = client.execution_net(shop)
    assert net.hash == client.show(shop).hash
    assert [box.step for box in net.boxes] == client.index(shop).steps
    with pytest.raises(ServerError, match="no execution"):
        client.execution_net("01a1ed36-0000-7000-8000-000000000000")


def test_an_index_in_parts_is_the_same_as_a_whole_one(client: Client, looping: str) -> None:
    complete = client.index(looping)
    parts = [client.index(looping, after=after) for after in (0, 5, complete.last - 1, complete.last, 7)]
    for part in parts:
        for column in ("time", "name", "step", "run", "arc", "marking"):
            if part.after or column != "time":
                assert getattr(part, column) == getattr(complete, column)[part.after :]
        assert part.errors == [seq for seq in complete.errors if seq > part.after]
        known = sum(name == complete.names.index("StepScheduled") for name in complete.name[: part.after])
        assert part.runs == complete.runs[known:]
        cuts = [part.after + sum(part.cuts[: number + 1]) for number in range(len(part.cuts))]
        all_cuts = [sum(complete.cuts[: number + 1]) for number in range(len(complete.cuts))]
        assert cuts == [seq for seq in all_cuts if seq > part.after]


def test_an_index_of_a_running_execution_grows(client: Client) -> None:
    execution_id = waiting(client)
    first = client.index(execution_id)
    client.signal(execution_id, "go", 1)
    client.wait(execution_id)
    rest = client.index(execution_id, after=first.last)
    assert first.name + rest.name == client.index(execution_id).name
    assert marking_after(client.index(execution_id), rest.last) == {}
    assert first.status == "running"
    assert rest.status == "completed"


def test_large_answers_are_packed_for_those_who_take_that(server: ServerProcess, shop: str) -> None:
    def read(accepted: str) -> tuple[str | None, bytes]:
        headers = {"Authorization": f"Bearer {server.token}", "Accept-Encoding": accepted}
        url = f"{server.url}/api/executions/{shop}/index"
        sent = request.Request(url, headers=headers)  # noqa: S310 - likewise
        with request.urlopen(sent) as answer:  # noqa: S310 - the server of the test
            return answer.headers["Content-Encoding"], answer.read()

    plain = read("identity")
    assert plain[0] is None
    assert read("gzip;q=0, identity") == plain
    encoding, packed = read("br, gzip;q=0.5")
    assert encoding == "gzip"
    assert len(packed) < len(plain[1])
    assert json.loads(gzip.decompress(packed)) == json.loads(plain[1])


def test_runs_have_begin_end_and_status(client: Client, shop: str) -> None:
    page = client.runs(shop)
    assert [(bar.step, bar.status, bar.attempts) for bar in page.runs] == [
        ("start", "completed", 1),
        ("small", "completed", 1),
    ]
    events = {event["seq"]: event for event in client.events(shop).events}
    for bar in page.runs:
        assert events[bar.seq]["name"] == "StepScheduled"
        assert bar.ended_seq is not None
        assert events[bar.ended_seq]["name"] == "StepDone"
        assert bar.end == _micros(events[bar.ended_seq])
        assert bar.claimed is not None
        assert page.begin <= bar.begin <= bar.claimed <= bar.end
        assert bar.worked <= bar.end - bar.claimed
    assert page.end == _micros(events[len(events)])
    before = client.runs(shop, at=page.runs[1].seq - 1)
    assert [bar.step for bar in before.runs] == ["start"]


def test_runs_come_in_pages(client: Client, shop: str) -> None:
    first = client.runs(shop, limit=1)
    assert first.next_cursor is not None
    rest = client.runs(shop, limit=1, cursor=first.next_cursor)
    assert [bar.step for bar in (*first.runs, *rest.runs)] == ["start", "small"]
    assert rest.next_cursor is None


def test_a_loop_is_one_bar_with_counts_and_a_heat_strip(client: Client, looping: str) -> None:
    bar = client.runs(looping).runs[0]
    assert bar.loop is not None
    assert (bar.loop.total, bar.loop.begun, bar.loop.succeeded, bar.loop.failed) == (3, 3, 2, 1)
    assert bar.loop.heat is not None
    assert sum(bar.loop.heat.succeeded) == 2
    assert sum(bar.loop.heat.failed) == 1
    assert (bar.attempts, bar.failed_attempts) == (3, 1)
    detail = client.run_detail(looping, bar.run)
    assert [(part.index, part.status) for part in detail.iterations] == [
        (0, "completed"),
        (1, "failed"),
        (2, "completed"),
    ]
    assert [attempt.status for attempt in detail.attempts] == ["completed", "failed", "completed"]
    failed = detail.attempts[1]
    assert failed.error is not None
    assert "no" in failed.error["message"]
    assert failed.input["args"] == {"n": 2}
    second = client.run_detail(looping, bar.run, limit=1, cursor="1")
    assert [part.index for part in second.iterations] == [1]
    assert [attempt.iteration for attempt in second.attempts] == [1]
    assert second.next_cursor == "2"


def test_a_wait_is_a_span_and_a_child_hangs_on_its_run(client: Client) -> None:
    page = client.runs(waiting(client))
    assert [span.reason for span in page.runs[0].waits] == ["ready", "signal"]
    assert page.runs[0].waits[-1].end is None
    assert page.runs[0].status == "waiting"
    parent = start(client, "examples/parent")
    client.wait(parent)
    bar = client.runs(parent).runs[0]
    assert [(child.path, child.status, child.iteration) for child in bar.children] == [
        ("examples/greet", "completed", 0)
    ]
    assert bar.children[0].end is not None
    assert client.show(bar.children[0].execution_id).parent == parent


def test_what_is_asked_at_once_is_the_same_as_one_after_the_other(server: ServerProcess) -> None:
    """As who opens an execution asks, and follows it."""

    async def open_and_follow(client: AsyncClient) -> None:
        execution_id = (await client.start(StartExecution(path="examples/waiting"))).execution_id
        while not (await client.waits(execution_id=execution_id)).waits:
            await client.show(execution_id, wait=0.05)
        alone = await client.show(execution_id)
        index, page, detail, again = await asyncio.gather(
            client.index(execution_id),
            client.runs(execution_id),
            client.show(execution_id),
            client.runs(execution_id),
        )
        assert (detail, again, index.last) == (alone, page, page.at)
        await client.signal(execution_id, "go")
        ended = await client.show(execution_id, wait=60)
        watched = await client.show(execution_id)
        assert (watched.status, watched.steps, watched.events) == ("completed", ended.steps, ended.events)
        followed = await client.runs(execution_id)
        assert followed == await client.runs(execution_id, at=followed.at)
        assert [bar.status for bar in followed.runs] == ["completed", "completed"]

    async def connect() -> None:
        async with AsyncClient(server.url, server.token) as client:
            await open_and_follow(client)

    asyncio.run(connect())


def test_a_run_that_no_worker_has_waits_for_one(client: Client) -> None:
    execution_id = client.start(StartExecution(playbook=FAR)).execution_id
    start = client.step_explanation(execution_id, "start")
    assert (start.verdict, start.reason) == ("waiting", "it waits for a worker")
    client.pause(execution_id)
    paused = client.step_explanation(execution_id, "start")
    assert (paused.verdict, paused.reason) == ("waiting", "it is ready, and the execution is paused")
    client.cancel(execution_id)


def test_a_step_that_ran_says_what_led_to_it(client: Client, shop: str) -> None:
    small = client.step_explanation(shop, "small")
    assert (small.verdict, small.run_count) == ("ran", 1)
    assert [link.step for link in small.chain] == ["start", "small"]
    assert small.arcs[0].verdict == "taken"


def test_a_step_that_was_not_reached_says_which_guard_with_which_values(client: Client, shop: str) -> None:
    big = client.step_explanation(shop, "big")
    assert big.verdict == "not_reached"
    [arc] = big.stopped_at
    assert (arc.source, arc.verdict, arc.asked, arc.through) == ("start", "not_taken", 1, ())
    assert arc.condition is not None
    assert {read.path: read.value for read in arc.condition.reads} == {"ctx.total": 3, "workload.limit": 10}
    assert "ctx.total >= workload.limit" in big.reason
    biggest = client.step_explanation(shop, "biggest")
    ways = [(arc.source, arc.target, arc.through) for arc in biggest.stopped_at]
    assert ways == [("start", "big", ("bigger", "biggest"))]
    early = client.step_explanation(shop, "big", at=3)
    assert early.verdict == "not_reached"
    assert early.stopped_at == () or early.stopped_at[0].verdict == "not_reached"


def test_an_expression_has_the_value_that_it_had_at_an_event(client: Client, shop: str) -> None:
    assert client.evaluate(shop, "ctx.total").value == 3
    assert client.evaluate(shop, "{{ workload.limit * 2 }}").value == 20
    assert client.evaluate(shop, "steps.start.result.rows | sum").value == 6
    events = client.events(shop).events
    written = next(event["seq"] for event in events if event["name"] == "TaskProcessed")
    assert client.evaluate(shop, "ctx.total | default('none')", at=written - 1).value == "none"
    assert client.evaluate(shop, "ctx.total", at=written).value == 3
    ended = next(event for event in events if event["name"] == "StepDone")
    answer = client.evaluate(shop, "event.result", at=ended["seq"], step="start")
    assert answer.value == ended["data"]["result"]
    assert answer.run == ended["entity_id"]
    assert "event" in answer.names
    started = [event for event in events if event["name"] == "TaskStarted"][-1]
    answer = client.evaluate(shop, "args.n", at=started["seq"], step="small")
    assert answer.value == 3
    assert [(read.path, read.value) for read in answer.reads] == [("args.n", 3)]


def test_an_expression_reads_values_that_are_stored_elsewhere(client: Client) -> None:
    execution_id = start(client, "examples/large")
    client.wait(execution_id)
    assert client.evaluate(execution_id, "steps.start.result.text | length").value == 200_000
    assert client.evaluate(execution_id, "steps.start.result.text[:10]").value == "abcdefghij"


def test_an_expression_sees_the_item_of_an_iteration(client: Client, looping: str) -> None:
    began = [
        event["seq"] for event in client.events(looping).events if event["name"] == "LoopIterationStarted"
    ]
    assert client.evaluate(looping, "n", at=began[1], step="each").value == 2
    assert client.evaluate(looping, "n", at=began[1], step="each", iteration=1).value == 2
    with pytest.raises(ServerError, match="iteration 0 is not open"):
        client.evaluate(looping, "n", at=began[1], step="each", iteration=0)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        ("ctx.nothing", "`ctx.nothing` is undefined"),
        ("keychain.shop.password", "`keychain` cannot be read here"),
        ("1 +", "ends too early"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "too much work"),
        ("''.__class__", "__class__"),
    ],
)
def test_an_expression_that_fails_says_why(client: Client, shop: str, expr: str, message: str) -> None:
    with pytest.raises(ServerError, match=message) as refused:
        client.evaluate(shop, expr)
    assert (refused.value.code, refused.value.problem.pointer) == ("invalid_request", "/expr")


def ask_wrongly(client: Client, execution_id: str, what: str) -> None:
    match what:
        case "at":
            client.runs(execution_id, at=9_999)
        case "after":
            client.index(execution_id, after=9_999)
        case "run":
            client.run_detail(execution_id, "r9999")
        case "step":
            client.step_explanation(execution_id, "nobody")
        case "cursor":
            client.runs(execution_id, cursor="-1")


@pytest.mark.parametrize("what", ["at", "after", "run", "step", "cursor"])
def test_what_an_execution_does_not_have_is_said(client: Client, shop: str, what: str) -> None:
    with pytest.raises(ServerError) as refused:
        ask_wrongly(client, shop, what)
    assert (refused.value.code, refused.value.problem.pointer) == ("invalid_request", f"/{what}")


def test_eight_look_at_one_execution_at_the_same_time(client: Client, looping: str) -> None:
    async def look() -> list[HistoryIndex]:
        async with AsyncClient(client._url, client._token) as asking:
            return await asyncio.gather(*(asking.index(looping, after=n % 3) for n in range(8)))

    answers = asyncio.run(look())
    assert answers[0] == answers[3] == answers[6]
    assert [answer.after for answer in answers] == [0, 1, 2, 0, 1, 2, 0, 1]
