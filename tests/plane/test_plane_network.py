"""What lies between a worker and its server: proxies without WebSockets, and connections that break."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plane.plane_processes import (
    HELD,
    PATIENCE,
    MeetingPoint,
    Plane,
    WorkerProcess,
    counted_kinds,
    kinds,
)
from tests.plane.proxy import Proxy
from tests.plane.test_plane_losses import reasons
from tests.plane.test_plane_runs import CHAIN, LARGE, run_in_process


@pytest.fixture(scope="module")
def long_lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server whose leases outlive every fault of these tests; its only worker comes through a proxy."""
    with Plane(tmp_path_factory.mktemp("network"), ttl=60.0) as plane:
        yield plane


@pytest.fixture(scope="module")
def polling(long_lived: Plane) -> Iterator[Proxy]:
    """A proxy that refuses the upgrade; the worker behind it is in the pool `polled`."""
    with Proxy(long_lived.port, refuse_upgrade=True) as proxy:
        worker = worker_behind(long_lived, proxy, "polled")
        worker.wait_for("stream refused")
        yield proxy


def worker_behind(plane: Plane, proxy: Proxy, pool: str) -> WorkerProcess:
    worker = WorkerProcess(proxy.url, plane.playbooks, "--pool", pool)
    plane.workers.append(worker)
    worker.wait_for("registered with")
    return worker


def in_pool(name: str, workflow: str) -> str:
    return f"executor: {{spec: {{pool: {name}}}}}\n{workflow}"


@pytest.mark.parametrize("workflow", [CHAIN, LARGE], ids=["chain", "large"])
def test_where_a_proxy_refuses_the_upgrade_work_goes_by_requests(
    long_lived: Plane, polling: Proxy, tmp_path: Path, workflow: str
) -> None:
    expected, expected_events = run_in_process(tmp_path, workflow)
    execution_id = long_lived.start(in_pool("polled", workflow))
    ended = long_lived.end(execution_id)
    assert (ended["status"], ended["result"]) == (expected.status, expected.result)
    assert counted_kinds(long_lived.events(execution_id)) == counted_kinds(expected_events)
    assert polling.refused >= 1


def test_a_cancelled_run_is_interrupted_over_requests_too(
    long_lived: Plane, polling: Proxy, meeting: MeetingPoint
) -> None:
    assert polling.refuse_upgrade
    execution_id = long_lived.start(in_pool("polled", HELD), port=meeting.port)
    guest = meeting.next_guest()
    long_lived.executions.cancel(execution_id)
    guest.wait_until_killed()
    assert long_lived.end(execution_id)["status"] == "cancelled"


@pytest.mark.parametrize(
    ("refuse_upgrade", "reset"), [(False, True), (True, False)], ids=["stream-reset", "requests-cut"]
)
def test_a_connection_that_breaks_loses_nothing_and_repeats_nothing(
    long_lived: Plane, meeting: MeetingPoint, *, refuse_upgrade: bool, reset: bool
) -> None:
    pool = f"broken_{refuse_upgrade}".lower()
    with Proxy(long_lived.port, refuse_upgrade=refuse_upgrade) as proxy:
        worker = worker_behind(long_lived, proxy, pool)
        execution_id = long_lived.start(in_pool(pool, HELD), port=meeting.port)
        guest = meeting.next_guest()
        assert proxy.cut(reset=reset)
        guest.let_go("in between")
        worker.wait_for("connected again")
        assert long_lived.end(execution_id)["result"] == {"word": "in between"}
        events = long_lived.events(execution_id)
        assert Counter(kinds(events))["TaskProcessed"] == 2
        assert reasons(events) == []
        assert worker.stop() == 0


def test_a_connection_that_breaks_while_its_worker_leaves_costs_no_lease(
    long_lived: Plane, meeting: MeetingPoint
) -> None:
    with Proxy(long_lived.port) as proxy:
        worker = worker_behind(long_lived, proxy, "leaving")
        execution_id = long_lived.start(in_pool("leaving", HELD), port=meeting.port)
        guest = meeting.next_guest()
        worker.send_signal(signal.SIGTERM)
        worker.wait_for("worker draining")
        for times in (1, 2):  # the second time the server knows that it takes nothing
            assert proxy.cut()
            worker.wait_for("connected again", times)
        guest.let_go("in the end")
        assert worker.process.wait(PATIENCE) == 0
        long_lived.worker("--pool", "leaving")
        assert long_lived.end(execution_id)["result"] == {"word": "in the end"}
    events = long_lived.events(execution_id)
    assert reasons(events) == ["released"]
    assert Counter(kinds(events))["TaskStarted"] == 2


@pytest.mark.parametrize("refuse_upgrade", [False, True], ids=["stream", "requests"])
def test_answers_that_are_lost_are_asked_for_again(
    long_lived: Plane, meeting: MeetingPoint, *, refuse_upgrade: bool
) -> None:
    pool = f"lossy_{refuse_upgrade}".lower()
    with Proxy(long_lived.port, refuse_upgrade=refuse_upgrade) as proxy:
        worker = worker_behind(long_lived, proxy, pool)
        execution_id = long_lived.start(in_pool(pool, HELD), port=meeting.port)
        guest = meeting.next_guest()
        proxy.lose_answers = True
        guest.let_go("unheard")
        long_lived.wait_for(execution_id, "TaskProcessed")  # it came, and nobody hears so
        worker.wait_for("server unreachable")
        proxy.lose_answers = False
        worker.wait_for("connected again")
        assert long_lived.end(execution_id)["result"] == {"word": "unheard"}
        events = long_lived.events(execution_id)
        assert Counter(kinds(events))["TaskProcessed"] == 2
        assert reasons(events) == []
        assert worker.stop() == 0


def test_what_is_late_arrives(long_lived: Plane, meeting: MeetingPoint) -> None:
    with Proxy(long_lived.port) as proxy:
        worker = worker_behind(long_lived, proxy, "late")
        execution_id = long_lived.start(in_pool("late", HELD), port=meeting.port)
        guest = meeting.next_guest()
        proxy.hold()
        guest.let_go("late")
        guest.wait_until_killed()  # its process has ended, and what it gave stands in the proxy
        assert "TaskProcessed" not in kinds(long_lived.events(execution_id))
        proxy.resume()
        assert long_lived.end(execution_id)["result"] == {"word": "late"}
        assert reasons(long_lived.events(execution_id)) == []
        assert worker.stop() == 0
