"""Distributed loops: several workers share the iterations of one run."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import noetl
from noetl.engine.history.history_views import verify_history
from noetl.engine.history.read import read_history
from noetl.kernel.net.commands import Cancel, Pause, Resume
from noetl.kernel.verify.verification import Verification
from noetl.stores import open_store_to_read
from noetl.stores.home_folder import Home
from noetl.stores.results.result_store_urls import open_result_stores
from tests.plane.plane_processes import PATIENCE, Guest, MeetingPoint, Plane, counted_kinds


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server with three workers."""
    with Plane(tmp_path_factory.mktemp("plane")) as plane:
        for _ in range(3):
            plane.worker()
        yield plane


def loop(spec: str, tool: str, count: int, after: str = "") -> str:
    return f"""\
workload: {{port: 0}}
workflow:
- step: start
  loop:
    in: "{{{{ range({count}) | list }}}}"
    iterator: n
    spec: {{mode: parallel, {spec}}}
  tool:
{tool}
{after}
"""


NOOP = '  - t: {kind: noop, args: {n: "{{ n }}"}, set: {ctx.total: "{{ n }}", ctx.all: "{{ n }}"}}'
SHARED = "policy: {exec: distributed}"
AFTER = '  next: {arcs: [{step: end}]}\n- step: end\n  tool: {kind: noop, args: {total: "{{ ctx.total }}", all: "{{ ctx.all }}", list: "{{ start }}"}}'
MEET = """\
  - meet:
      kind: python
      args: {port: "{{ workload.port }}", n: "{{ n }}"}
      code: |
        import socket
        def main(port, n):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                stream = connection.makefile("rw")
                stream.write(f"{n}\\n")
                stream.flush()
                answer = stream.readline().strip()
                if answer == "fail":
                    raise ValueError("it was told so")
                return {"n": n, "answer": answer}
"""


def of_kind(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["name"] == name]


def iterations(events: list[dict[str, Any]], name: str = "LoopIterationStarted") -> list[int]:
    return [data["index"] for data in of_kind(events, name)]


def arrive(meeting: MeetingPoint, count: int) -> dict[int, Guest]:
    """So many tasks, by the number that they come with."""
    return {int(guest.text): guest for guest in (meeting.next_guest() for _ in range(count))}


def verified(plane: Plane, execution_id: str) -> None:
    """It comes out the same when it is decided again."""
    home = Home(plane.home)

    async def verification() -> Verification:
        store = open_store_to_read(f"sqlite:///{home.store}")
        try:
            return await verify_history(
                await read_history(store, execution_id), open_result_stores(home, store)
            )
        finally:
            await store.close()

    assert asyncio.run(verification()).differences == ()


@pytest.mark.spec("000 §2.3")
def test_two_hundred_iterations_run_once_each_on_several_workers(shared: Plane) -> None:
    spec = f"max_in_flight: 9, reduce: {{total: sum, all: append}}, {SHARED}"
    text = loop(spec, NOOP, 200, AFTER)
    execution_id = shared.start(text)
    ended = shared.end(execution_id)
    events = shared.events(execution_id)
    numbers = list(range(200))
    assert ended["result"] == {"total": sum(numbers), "all": numbers, "list": [{"n": n} for n in numbers]}
    assert sorted(iterations(events)) == sorted(iterations(events, "LoopIterationCompleted")) == numbers
    claims = [claim for claim in of_kind(events, "TokenClaimed") if claim.get("shard", -1) >= 0]
    assert [claim["shard"] for claim in claims] == sorted(claim["shard"] for claim in claims)
    assert len(claims) == 34
    assert len({claim["session"] for claim in claims}) == 3
    local_id = shared.start(text.replace("distributed", "local"))
    assert shared.end(local_id)["result"] == ended["result"]
    assert counted_kinds(shared.events(local_id)) == counted_kinds(events)
    verified(shared, execution_id)


def test_no_worker_sends_results_twice_and_large_ones_become_one_manifest(shared: Plane) -> None:
    tool = '  - t: {kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return str(n) * 20000"}'
    after = '  next: {arcs: [{step: end, args: {size: "{{ event.result | length }}"}}]}\n- step: end\n  tool: {kind: python, args: {texts: "{{ start }}"}, code: "def main(texts):\\n    return [len(text) for text in texts]"}'
    for placement in ("distributed", "local"):
        execution_id = shared.start(loop(f"policy: {{exec: {placement}}}", tool, 40, after))
        assert shared.end(execution_id)["result"] == [20000 * len(str(n)) for n in range(40)]
        events = shared.events(execution_id)
        (done,) = of_kind(events, "LoopDone")
        assert done["result"]["$noetl"] == "manifest"
        verified(shared, execution_id)


def test_best_effort_goes_on_after_a_failure_on_another_worker(shared: Plane) -> None:
    tool = '  - t: {kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return 6 // (n % 5)"}'
    execution_id = shared.start(
        loop("max_in_flight: 6, policy: {exec: distributed, failure: {mode: best_effort}}", tool, 30)
    )
    expected = [6 // (n % 5) if n % 5 else None for n in range(30)]
    assert shared.end(execution_id)["result"] == expected
    (done,) = of_kind(shared.events(execution_id), "LoopDone")
    assert [failure["index"] for failure in done["failures"]] == [0, 5, 10, 15, 20, 25]
    verified(shared, execution_id)


def test_after_a_failure_running_iterations_end_and_a_retry_runs_the_rest(
    shared: Plane, meeting: MeetingPoint
) -> None:
    execution_id = shared.start(loop(f"max_in_flight: 3, {SHARED}", MEET, 24), port=meeting.port)
    guests = arrive(meeting, 3)
    assert sorted(guests) == [0, 2, 4]
    guests[2].let_go("fail")
    shared.wait_for(execution_id, "LoopIterationCompleted")
    for number in (0, 4):
        guests[number].let_go()
    ended = shared.end(execution_id)
    assert (ended["status"], ended["error"]["kind"]) == ("failed", "iteration_failed")
    events = shared.events(execution_id)
    assert sorted(iterations(events)) == sorted(iterations(events, "LoopIterationCompleted")) == [0, 2, 4]
    (failed,) = of_kind(events, "StepFailed")
    assert failed["error"]["index"] == 2
    shared.retry(execution_id)
    for _ in range(22):
        meeting.next_guest().let_go()
    assert [result["n"] for result in shared.end(execution_id)["result"]] == list(range(24))
    assert sorted(iterations(shared.events(execution_id))) == list(range(24))
    verified(shared, execution_id)


@pytest.mark.parametrize("mode", ["local", "distributed"])
def test_failed_iterations_are_redriven_by_workers(shared: Plane, meeting: MeetingPoint, mode: str) -> None:
    policy = f"policy: {{exec: {mode}, failure: {{mode: best_effort}}}}"
    execution_id = shared.start(loop(f"max_in_flight: 3, {policy}", MEET, 3), port=meeting.port)
    for number, guest in arrive(meeting, 3).items():
        guest.let_go("fail" if number == 1 else "go on")
    assert [result and result["n"] for result in shared.end(execution_id)["result"]] == [0, None, 2]
    shared.redrive(execution_id)
    (guest,) = arrive(meeting, 1).values()
    guest.let_go()
    assert [result["n"] for result in shared.end(execution_id)["result"]] == [0, 1, 2]
    verified(shared, execution_id)


def test_iterations_that_wait_keep_their_place_and_no_worker(shared: Plane) -> None:
    tool = '  - w: {kind: wait, seconds: 0.2}\n  - t: {kind: noop, args: {n: "{{ n }}"}}'
    execution_id = shared.start(loop(f"max_in_flight: 8, {SHARED}", tool, 24))
    assert shared.end(execution_id)["result"] == [{"n": n} for n in range(24)]
    verified(shared, execution_id)


def test_a_cancel_interrupts_the_tasks_of_all_shards(shared: Plane, meeting: MeetingPoint) -> None:
    execution_id = shared.start(loop(f"max_in_flight: 3, {SHARED}", MEET, 12), port=meeting.port)
    guests = arrive(meeting, 3)
    shared.submit(execution_id, Cancel("me"))
    for guest in guests.values():
        guest.wait_until_killed()
    assert shared.end(execution_id)["status"] == "cancelled"
    (failed,) = of_kind(shared.events(execution_id), "StepFailed")
    assert failed["error"]["kind"] == "cancelled"


def test_a_pause_lets_running_tasks_end_and_resume_goes_on(shared: Plane, meeting: MeetingPoint) -> None:
    execution_id = shared.start(loop(f"max_in_flight: 2, {SHARED}", MEET, 4), port=meeting.port)
    guests = arrive(meeting, 2)
    shared.submit(execution_id, Pause("me"))
    for guest in guests.values():
        guest.let_go()
    shared.wait_for(execution_id, "TaskProcessed", 2)
    shared.submit(execution_id, Resume("me"))
    for _ in range(2):
        meeting.next_guest().let_go()
    assert [result["n"] for result in shared.end(execution_id)["result"]] == [0, 1, 2, 3]
    verified(shared, execution_id)


def test_the_shard_of_a_killed_worker_alone_goes_on_elsewhere(
    short_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = short_lived
    first = plane.worker("--slots", "1")
    execution_id = plane.start(loop(f"max_in_flight: 2, {SHARED}", MEET, 16), port=meeting.port)
    lost = meeting.next_guest()
    plane.worker("--slots", "1")
    other = meeting.next_guest()
    first.stop(signal.SIGKILL)
    other.let_go("other")
    answers = Counter(
        guest.text for guest in _let_all_go(meeting, 15)
    )  # the fourteen others, and the lost one again
    assert (lost.text, answers[lost.text], len(answers)) == ("0", 1, 15)
    ended = plane.end(execution_id)
    assert [result["n"] for result in ended["result"]] == list(range(16))
    events = plane.events(execution_id)
    expired = of_kind(events, "LeaseExpired")
    assert [(data["shard"], data["reason"]) for data in expired] == [(0, "expired")]
    redelivered = [data for data in of_kind(events, "TaskStarted") if data.get("redelivery")]
    assert [data.get("iteration", 0) for data in redelivered] == [0]
    assert sorted(iterations(events)) == list(range(16))
    verified(plane, execution_id)


def _let_all_go(meeting: MeetingPoint, count: int) -> list[Guest]:
    guests = []
    for _ in range(count):
        guest = meeting.next_guest()
        guest.let_go()
        guests.append(guest)
    return guests


DEADLY = """\
workflow:
- step: start
  loop: {in: [0, 1, 2], iterator: n, spec: {mode: parallel, max_in_flight: 3, policy: {exec: distributed}}}
  tool: {kind: shell, command: "if [ {{ n }} = 1 ]; then kill -9 $PPID; fi"}
  next: {arcs: [{step: rescue, when: "{{ event.name == 'step.failed' }}", args: {cause: "{{ event.error.cause.kind }}"}}]}
- step: rescue
  tool: {kind: noop, args: {cause: "{{ args.cause }}"}}
"""


def test_a_shard_that_kills_three_workers_ends_the_step(short_lived: Plane) -> None:
    plane = short_lived
    execution_id = plane.start(DEADLY)
    for _ in range(3):
        worker = plane.worker()
        assert worker.process.wait(PATIENCE) == -signal.SIGKILL
    plane.worker()
    assert plane.end(execution_id)["result"] == {"cause": "worker_lost"}
    lost = [data for data in of_kind(plane.events(execution_id), "LeaseExpired") if data.get("shard") == 1]
    assert len(lost) == 3


def test_after_a_restart_of_the_server_workers_go_on_with_their_shards(
    long_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = long_lived
    workers = [plane.worker("--slots", "1") for _ in range(2)]
    execution_id = plane.start(loop(f"max_in_flight: 2, {SHARED}", MEET, 12), port=meeting.port)
    guests = arrive(meeting, 2)
    plane.kill_server()
    guests.popitem()[1].let_go("while it was away")
    plane.start_server()
    for worker in workers:
        worker.wait_for("again")
    guests.popitem()[1].let_go()
    _let_all_go(meeting, 10)
    assert [result["n"] for result in plane.end(execution_id)["result"]] == list(range(12))
    events = plane.events(execution_id)
    assert of_kind(events, "LeaseExpired") == []
    assert sorted(iterations(events)) == list(range(12))
    verified(plane, execution_id)


def test_one_process_runs_the_same_loop_with_the_same_events(tmp_path: Path) -> None:
    counted = []
    for placement in ("distributed", "local"):
        folder = tmp_path / placement
        folder.mkdir()
        spec = f"max_in_flight: 5, reduce: {{total: sum, all: append}}, policy: {{exec: {placement}}}"
        file = folder / "playbook.yaml"
        head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: played, path: tests/played}\n"
        file.write_text(head + loop(spec, NOOP, 40, AFTER), "utf-8")
        execution = noetl.run(str(file), store=f"sqlite:///{folder / '.noetl' / 'store.db'}")
        assert execution.result["all"] == list(range(40))
        executions = noetl.open(folder / ".noetl")
        counted.append(counted_kinds(list(executions.events(execution.execution_id))))
    assert counted[0] == counted[1]
