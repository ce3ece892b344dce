"""Workers and servers that are killed, stand still, or leave: runs go on, and nothing is recorded twice."""

import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.plane.plane_processes import HELD, PATIENCE, MeetingPoint, Plane, WorkerProcess, kinds
from tests.plane.proxy import Proxy


def reasons(events: list[dict[str, Any]]) -> list[str]:
    return [event["data"].get("reason", "expired") for event in events if event["name"] == "LeaseExpired"]


@pytest.mark.spec("000 §4.3 (1)")
def test_a_run_of_a_killed_worker_goes_on_elsewhere_with_the_same_key(
    short_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = short_lived
    first = plane.worker()
    execution_id = plane.start(HELD, port=meeting.port)
    key = meeting.next_guest().text
    plane.worker()
    first.stop(signal.SIGKILL)
    second = meeting.next_guest()
    assert second.text == key
    second.let_go("second")
    assert plane.end(execution_id)["result"] == {"word": "second"}
    events = plane.events(execution_id)
    assert reasons(events) == ["expired"]
    starts = [
        event["data"]
        for event in events
        if event["name"] == "TaskStarted" and event["data"]["task"] == "meet"
    ]
    assert [(start.get("attempt", 1), start.get("redelivery", 0)) for start in starts] == [(1, 0), (1, 1)]
    claims = [event["data"]["session"] for event in events if event["name"] == "TokenClaimed"]
    assert len(set(claims)) == 2


def test_a_worker_that_stood_still_past_its_lease_kills_its_task_and_changes_nothing(
    short_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = short_lived
    first = plane.worker()
    execution_id = plane.start(HELD, port=meeting.port)
    stopped = meeting.next_guest()
    plane.worker()
    first.send_signal(signal.SIGSTOP)
    second = meeting.next_guest()
    first.send_signal(signal.SIGCONT)
    stopped.wait_until_killed()
    second.let_go("second")
    assert plane.end(execution_id)["result"] == {"word": "second"}
    names = kinds(plane.events(execution_id))
    assert Counter(names)["TaskProcessed"] == 2
    # On a busy machine the other worker may stand still for too long, too.
    assert set(reasons(plane.events(execution_id))) == {"expired"}


def test_the_run_of_a_worker_that_is_cut_off_goes_on_elsewhere_soon_after_its_lease(
    short_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = short_lived
    with Proxy(plane.port) as proxy:
        first = WorkerProcess(proxy.url, plane.playbooks)
        plane.workers.append(first)
        first.wait_for("registered with")
        execution_id = plane.start(HELD, port=meeting.port)
        stranded = meeting.next_guest()
        plane.worker()
        proxy.hold()  # nothing arrives, and nobody is told
        since = time.monotonic()
        second = meeting.next_guest()
        assert time.monotonic() - since < plane.ttl + 2
        stranded.wait_until_killed()  # it knows by itself that its lease is over
        second.let_go("second")
        assert plane.end(execution_id)["result"] == {"word": "second"}
        proxy.resume()
        first.wait_for("connected again")
    assert reasons(plane.events(execution_id)) == ["expired"]
    assert Counter(kinds(plane.events(execution_id)))["TaskProcessed"] == 2


def test_after_a_restart_of_the_server_workers_send_again_and_nothing_is_recorded_twice(
    long_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = long_lived
    worker = plane.worker()
    execution_id = plane.start(HELD, port=meeting.port)
    guest = meeting.next_guest()
    plane.kill_server()
    guest.let_go("while it was away")
    plane.start_server()
    worker.wait_for("again")
    assert plane.end(execution_id)["result"] == {"word": "while it was away"}
    events = plane.events(execution_id)
    assert Counter(kinds(events))["TaskProcessed"] == 2
    assert reasons(events) == []
    assert len([event for event in events if event["name"] == "TokenClaimed"]) == 1


def test_the_leases_of_workers_that_do_not_come_back_after_a_restart_end(
    short_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = short_lived
    first = plane.worker()
    execution_id = plane.start(HELD, port=meeting.port)
    meeting.next_guest()
    plane.kill_server()
    first.stop(signal.SIGKILL)
    plane.start_server()
    plane.worker()
    meeting.next_guest().let_go("second")
    assert plane.end(execution_id)["result"] == {"word": "second"}
    assert reasons(plane.events(execution_id)) == ["expired"]


DEADLY = """\
workflow:
- step: start
  tool: {kind: shell, command: "kill -9 $PPID"}
  next: {arcs: [{step: rescue, when: "{{ event.error.kind == 'worker_lost' }}", args: {why: "{{ event.error.message }}"}}]}
- step: rescue
  tool: {kind: noop, args: {why: "{{ args.why }}"}}
"""


def test_a_run_that_kills_three_workers_ends_as_worker_lost(short_lived: Plane) -> None:
    plane = short_lived
    execution_id = plane.start(DEADLY)
    for _ in range(3):
        worker = plane.worker()
        assert worker.process.wait(PATIENCE) == -signal.SIGKILL
    plane.worker()
    assert plane.end(execution_id)["result"] == {"why": "3 workers were lost while they ran this"}
    assert reasons(plane.events(execution_id)) == ["expired"] * 3


def test_a_worker_that_is_told_to_stop_ends_its_attempt_and_gives_the_rest_back(
    long_lived: Plane, meeting: MeetingPoint
) -> None:
    plane = long_lived
    first = plane.worker()
    execution_id = plane.start(HELD, port=meeting.port)
    guest = meeting.next_guest()
    first.send_signal(signal.SIGTERM)
    first.wait_for("draining")
    guest.let_go("first")
    assert first.stop(0) == 0
    plane.wait_for(execution_id, "LeaseExpired")
    plane.worker()
    assert plane.end(execution_id)["result"] == {"word": "first"}
    assert reasons(plane.events(execution_id)) == ["released"]


def test_a_worker_that_is_told_twice_interrupts_its_attempt(long_lived: Plane, meeting: MeetingPoint) -> None:
    plane = long_lived
    first = plane.worker()
    execution_id = plane.start(HELD, port=meeting.port)
    guest = meeting.next_guest()
    first.send_signal(signal.SIGTERM)
    first.wait_for("draining")
    first.send_signal(signal.SIGTERM)
    guest.wait_until_killed()
    assert first.stop(0) == 0
    plane.worker()
    meeting.next_guest().let_go("second")
    assert plane.end(execution_id)["result"] == {"word": "second"}
    assert reasons(plane.events(execution_id)) == ["released"]
