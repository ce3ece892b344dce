"""What the server answers to workers, message by message."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import msgspec
import pytest
from msgspec.structs import replace

from noetl.events.bodies import (
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    RunSuspended,
    StepDone,
    TaskProcessed,
    TaskStarted,
)
from noetl.kernel.net.commands import Signal
from noetl.model.outcome import ErrorInfo, succeeded
from noetl.ports.control import (
    PROTOCOL,
    SUBPROTOCOL,
    Ack,
    Beaten,
    ClaimCredit,
    FetchedPlaybook,
    FetchPlaybook,
    Heartbeat,
    PrintedText,
    Register,
    Registered,
    Rejected,
    Release,
    Released,
    RunLease,
    RunReport,
    Work,
    WorkerReport,
)
from noetl.server.plane.worker_routes import CLOSE_MALFORMED, CLOSE_UNKNOWN, MAX_BODY
from noetl.settings import installed_release
from tests.plane.plane_processes import PATIENCE, Plane, kinds
from tests.plane.plane_server import TOKEN
from tests.plane.raw_worker import RawPool, RawWorker, lease_of, post
from tests.plane.test_plane_losses import reasons

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": SUBPROTOCOL,
}
ONE = """\
workflow:
- step: start
  tool: {kind: noop}
"""
TWO_TASKS = """\
workflow:
- step: start
  tool: [{first: {kind: python, code: "1"}}, {second: {kind: python, code: "2"}}]
"""


SHARED_LOOP = """\
workflow:
- step: start
  loop: {in: [0, 1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 2, policy: {exec: distributed}}}
  tool: [{pause: {kind: wait, signal: go}}]
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server without workers; leases are long."""
    with Plane(tmp_path_factory.mktemp("bare"), ttl=300.0) as plane:
        yield plane


@pytest.fixture
def pool(bare: Plane, request: pytest.FixtureRequest) -> RawPool:
    return RawPool(bare, f"pool_{abs(hash(request.node.name))}")


def test_a_worker_of_another_protocol_is_told_which_release_to_use(bare: Plane) -> None:
    with RawWorker(bare, protocol=PROTOCOL + 1) as worker:
        assert isinstance(worker.welcome, Rejected)
        assert worker.welcome.code == "unsupported_protocol"
        assert installed_release() in worker.welcome.hint


OF_ANOTHER_RELEASE = """\
import sys
from noetl.ports import control
control.PROTOCOL, control.SUBPROTOCOL = 2, "noetl.worker.v2"
from noetl.cli import main
sys.argv = ["noetl", "worker", "start", "--server", sys.argv[1]]
main()
"""


def test_a_worker_process_of_another_release_says_which_to_use_and_ends(bare: Plane) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OF_ANOTHER_RELEASE, bare.url],
        env={**os.environ, "NOETL_TOKEN": TOKEN, "NOETL_HOME": str(bare.home)},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 3, ended.stderr
    assert "version 1 of the worker protocol, not 2" in ended.stderr
    assert f"use noetl {installed_release()}" in ended.stderr


def test_whoever_is_no_worker_is_turned_away(bare: Plane) -> None:
    for token, status in (("somebody's", 403), (TOKEN, 101)):
        with closing(HTTPConnection("127.0.0.1", bare.port, timeout=PATIENCE)) as connection:
            connection.request(
                "GET", "/api/worker/stream", headers={**UPGRADE, "Authorization": f"Bearer {token}"}
            )
            assert connection.getresponse().status == status
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(bare, "register", Register(protocol=PROTOCOL), token="somebody's")
    assert refused.value.code == 403
    refused.value.close()


def test_what_is_no_message_ends_the_session_and_its_leases(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as worker:
        worker.command()
        worker.send(b'{"type": "report", "no": "one"}')
        assert worker.wait_until_closed() == CLOSE_MALFORMED
    with pool.worker() as other:
        assert other.end(other.command()) == "durable"
    assert pool.end(execution_id) == "completed"
    assert reasons(pool.events(execution_id)) == ["expired"]


def test_so_does_a_printed_text_that_comes_from_nowhere(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as worker:
        worker.command()
        line = f'{{"execution": "{execution_id}", "source": {{"step": 5}}, "text": "x"}}'
        worker.send(f'{{"type": "report", "no": 1, "logs": [{line}]}}'.encode())
        assert worker.wait_until_closed() == CLOSE_MALFORMED
    with pool.worker() as other:
        assert other.end(other.command()) == "durable"
    assert pool.end(execution_id) == "completed"


@pytest.mark.parametrize(("length", "status"), [(MAX_BODY + 1, 413), (1, 400)])
def test_a_request_that_is_too_large_or_no_message_ends_its_session(
    bare: Plane, length: int, status: int
) -> None:
    (registered,) = post(bare, "register", Register(protocol=PROTOCOL))
    assert isinstance(registered, Registered)
    with closing(HTTPConnection("127.0.0.1", bare.port, timeout=PATIENCE)) as connection:
        connection.putrequest("POST", "/api/worker/report")
        for name, value in {"Authorization": f"Bearer {TOKEN}", "Noetl-Session": registered.session}.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(length))
        connection.endheaders(b"x")
        assert connection.getresponse().status == status
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(bare, "heartbeat", Heartbeat(), registered.session)
    assert refused.value.code == 404
    refused.value.close()


def test_a_late_report_is_lost(short_lived: Plane) -> None:
    plane = short_lived
    execution_id = plane.start(ONE)
    with RawWorker(plane) as worker:
        late = worker.command()
        assert worker.wait_until_closed() == CLOSE_UNKNOWN, "it did not beat"
    with RawWorker(plane, session=worker.session, held=(lease_of(late),), slots=0) as again:
        assert again.session == worker.session
        (news,) = again.news().items
        assert (news.run, news.fence, news.owned) == (lease_of(late).run, late.fence, False)
        assert again.end(late) == "lost"
    assert "StepDone" not in kinds(plane.events(execution_id))
    with RawWorker(plane) as other:
        fresh = other.command()
        assert fresh.fence > late.fence
        assert other.end(fresh) == "durable"
    assert plane.end(execution_id)["status"] == "completed"


@pytest.mark.spec("000 §4.3 (1)")
def test_a_report_of_a_run_that_somebody_else_owns_is_lost(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as owner, pool.worker(slots=0) as other:
        command = owner.command()
        assert other.end(command) == "lost"
        assert "StepDone" not in kinds(pool.events(execution_id))
        assert owner.end(command) == "durable"
    assert pool.end(execution_id) == "completed"


def started(run: str, task: str) -> TaskStarted:
    return TaskStarted(run=run, task=task)


def processed(run: str, task: str) -> TaskProcessed:
    return TaskProcessed(run=run, task=task, outcome=succeeded(1), do="continue")


def test_what_is_reported_twice_or_in_part_again_is_recorded_once(pool: RawPool) -> None:
    execution_id = pool.start(TWO_TASKS)
    with pool.worker() as worker:
        lease = lease_of(worker.command())
        first = started(lease.run, "first"), processed(lease.run, "first")
        assert worker.report(lease, 0, *first) == "durable"
        assert worker.report(lease, 0, *first) == "durable"
        assert worker.report(lease, 5, started(lease.run, "second")) == "again"
        assert worker.report(lease, 0, *first, started(lease.run, "second")) == "durable"
        end = processed(lease.run, "second"), StepDone(run=lease.run)
        assert worker.report(lease, 3, *end, done=True) == "durable"
    assert pool.end(execution_id) == "completed"
    names = kinds(pool.events(execution_id))
    assert (names.count("TaskStarted"), names.count("TaskProcessed")) == (2, 2)


def test_a_report_that_cannot_follow_is_refused_and_the_run_goes_on_elsewhere(pool: RawPool) -> None:
    execution_id = pool.start(TWO_TASKS)
    with pool.worker(slots=1) as worker, pool.worker(slots=0) as other:
        lease = lease_of(worker.command())
        assert worker.report(lease, 0, started(lease.run, "first")) == "durable"
        worker.send(ClaimCredit(slots=0))
        wrong = processed(lease.run, "first"), processed(lease.run, "first")
        assert worker.report(lease, 1, *wrong) == "lost"
        other.send(ClaimCredit(slots=1))
        command = other.command()
        assert lease_of(command).run == lease.run
        assert other.end(command) == "durable"
    assert pool.end(execution_id) == "completed"
    assert "TaskProcessed" not in kinds(pool.events(execution_id))
    assert reasons(pool.events(execution_id)) == ["expired"]


def test_what_a_worker_never_saw_comes_again_and_counts_as_no_loss(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as worker:
        unseen = worker.command()
    with pool.worker(session=worker.session) as again:
        command = again.command()
        assert command.fence > unseen.fence
        assert again.end(command) == "durable"
    pool.end(execution_id)
    assert reasons(pool.events(execution_id)) == ["voided"]


def test_a_session_has_one_connection_the_newest(pool: RawPool) -> None:
    with pool.worker() as worker, pool.worker(session=worker.session) as again:
        assert worker.wait_until_closed() == CLOSE_UNKNOWN
        execution_id = pool.start(ONE)
        assert again.end(again.command()) == "durable"
    assert pool.end(execution_id) == "completed"


def test_nobody_takes_the_part_of_the_server_s_own_worker(bare: Plane) -> None:
    for about in ({"session": f"server-{'0' * 32}"}, {"pools": ("default", "$server")}):
        with RawWorker(bare, **about) as worker:
            assert isinstance(worker.welcome, Rejected)
            assert worker.welcome.code == "forbidden"


def test_a_run_that_its_worker_cannot_begin_is_a_loss_and_the_third_is_the_end(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as worker:
        for _ in range(3):
            worker.give_back(worker.command(), failed=True)
    ended = pool.plane.end(execution_id)
    assert (ended["status"], ended["error"]["kind"]) == ("failed", "worker_lost")
    assert reasons(pool.events(execution_id)) == ["expired"] * 3


def test_a_run_whose_report_cannot_be_stored_fails_with_what_its_worker_says(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    error = ErrorInfo(kind="store", message="the bucket is gone", retryable=True)
    with pool.worker() as worker:
        worker.give_back(worker.command(), failed=True, error=error)
    ended = pool.plane.end(execution_id)
    assert (ended["status"], ended["error"]["kind"], ended["error"]["message"]) == (
        "failed",
        "store",
        "the bucket is gone",
    )
    assert reasons(pool.events(execution_id)) == ["expired"]


def test_a_worker_that_leaves_gets_no_more_and_what_it_gives_back_is_no_loss(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as worker:
        worker.give_back(worker.command(), leaving=True)
        assert not worker.has_command()
        with pool.worker() as other:
            assert other.end(other.command()) == "durable"
        assert not worker.has_command()
    pool.end(execution_id)
    assert reasons(pool.events(execution_id)) == ["released"]


def test_only_who_has_claimed_a_run_of_an_execution_writes_to_its_log(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with pool.worker() as worker, pool.worker(slots=0) as other:
        worker.command()
        for printing, text in ((other, "a stranger's"), (worker, "its worker's")):
            line = PrintedText(execution=execution_id, source={"step": "start"}, text=text)
            printing.send(WorkerReport(no=1, logs=(line,)))
            assert not printing.has_command(), "and it is dealt with"
    log = (pool.plane.home / "logs" / f"{execution_id}.jsonl").read_text("utf-8")
    assert "its worker's" in log
    assert "stranger" not in log


@pytest.mark.spec("000 §4.2 (2)")
def test_runs_go_to_workers_of_their_pool_that_know_their_kinds(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    with (
        pool.worker(pools=("another",)) as elsewhere,
        pool.worker(kinds=("python",)) as ignorant,
        pool.worker(pools=(pool.name, "default")) as worker,
    ):
        assert worker.command().execution == execution_id
        other = RawPool(pool.plane, "another").start(ONE)
        assert elsewhere.command().execution == other
        assert ignorant.session


def test_a_worker_gets_no_more_runs_than_it_has_slots_and_executions_take_turns(pool: RawPool) -> None:
    fan = """\
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}
- step: a
  tool: {kind: noop}
- step: b
  tool: {kind: noop}
- step: c
  tool: {kind: noop}
"""
    first, second = pool.start(fan), pool.start(fan)
    with pool.worker(slots=2) as worker:
        commands = [worker.command(), worker.command()]
        assert {command.execution for command in commands} == {first, second}
        done = 0
        while commands:
            assert worker.end(commands.pop(0)) == "durable"
            done += 1
            if done <= 4:
                commands.append(worker.command())
    assert done == 6
    assert pool.end(first) == pool.end(second) == "completed"


CHAIN_OF_MANY = """\
workflow:
- step: start
  tool: {kind: noop, set: {ctx.n: 1}}
  next: {arcs: [{step: start}]}
"""


def test_after_64_runs_of_one_execution_another_has_its_turn(pool: RawPool) -> None:
    endless, short = pool.start(CHAIN_OF_MANY), pool.start(ONE)
    owners: list[str] = []
    with pool.worker() as worker:
        while short not in owners:
            command = worker.command()
            owners.append(command.execution)
            assert worker.end(command) == "durable"
    # One that the dispatcher gave, and those that followed it.
    assert owners == [endless] * 65 + [short]


def test_the_same_messages_go_by_requests(pool: RawPool) -> None:
    (welcome,) = post(
        pool.plane, "register", Register(protocol=PROTOCOL, pools=(pool.name,), kinds=("noop",))
    )
    assert isinstance(welcome, Registered)
    session = welcome.session
    first, second = pool.start(ONE), pool.start(ONE)
    (work,) = post(pool.plane, "claim", ClaimCredit(slots=1), session)
    assert isinstance(work, Work)
    lease = lease_of(work.commands[0])
    assert lease.execution == first
    (beaten,) = post(pool.plane, "heartbeat", Heartbeat(), session)
    assert beaten == Beaten(known=True)
    data = (20, 1, msgspec.Raw(msgspec.json.encode({"run": lease.run})))
    report = RunReport(execution=first, run=lease.run, fence=lease.fence, start=0, events=(data,), done=True)
    (ack,) = post(pool.plane, "report", WorkerReport(no=1, reports=(report,)), session)
    assert isinstance(ack, Ack)
    assert ack.verdicts == ("durable",)
    (command,) = ack.commands
    assert command.execution == second, "the next one comes with the acknowledgement"
    (playbook,) = post(pool.plane, "fetch", FetchPlaybook(hash=command.playbook), session)
    assert isinstance(playbook, FetchedPlaybook)
    assert ONE in playbook.text
    (released,) = post(pool.plane, "release", Release(runs=(lease_of(command),)), session)
    assert released == Released()
    assert reasons(pool.events(second)) == ["released"]


READS_ONE_KEY = """\
workflow:
- step: start
  tool:
  - read: {kind: noop, args: {word: "{{ ctx.k7.word }}", bare: "{{ k8 }}", of: "{{ workload.small }}"}, set: {ctx.k9.deep: 1}}
  next: {arcs: [{step: all}]}
- step: all
  tool: {kind: noop, args: {everything: "{{ ctx }}"}}
"""


def test_a_command_carries_only_what_its_step_reads(pool: RawPool) -> None:
    ctx = {f"k{number}": {"word": str(number) * 5_000} for number in range(100)}
    pool.start(READS_ONE_KEY, ctx, small="here", large="x" * 100_000)
    with pool.worker() as worker:
        command = worker.command()
        data = msgspec.json.encode(command)
        assert len(data) < 25_000
        assert msgspec.json.decode(command.workload) == {"small": "here"}
        (sent,) = msgspec.json.decode(command.run)["mappings"][:1]
        assert {name for name, value in sent.items() if value is not None} == {"k7", "k8", "k9"}
        assert sent.keys() == ctx.keys(), "how many ctx may have is limited"
        worker.end(command)
        following = worker.command()
        assert len(msgspec.json.encode(following)) > 200_000, "`{{ ctx }}` is all of it"
        worker.end(following)


def _open_two_shards(first: RawWorker, second: RawWorker) -> tuple[RunLease, RunLease]:
    """Of a loop of four iterations, each worker has two."""
    run = lease_of(first.command())
    begun = LoopStarted(run=run.run, total=4, items=[0, 1, 2, 3], max_in_flight=2, shard_size=2)
    assert first.report(run, 0, begun, done=True) == "durable"
    commands = first.command(), second.command()
    assert [command.shard for command in commands] == [0, 2]
    return lease_of(commands[0]), lease_of(commands[1])


def test_the_owner_of_a_shard_that_another_one_ends_is_told_and_who_ended_it_is_not(pool: RawPool) -> None:
    with pool.worker() as first, pool.worker() as second:
        execution_id = pool.start(SHARED_LOOP)
        failing, idle = _open_two_shards(first, second)
        failed = LoopIterationCompleted(
            run=failing.run, index=0, status="error", error=ErrorInfo(kind="tool", message="no")
        )
        assert first.report(failing, 0, LoopIterationStarted(run=failing.run, index=0), failed) == "durable"
        (news,) = second.news().items
        assert (news.execution, news.fence, news.owned) == (execution_id, idle.fence, False)
        assert not first.has_news()
        assert pool.end(execution_id) == "failed"


def test_owners_of_shards_hear_nothing_of_others_that_wait_go_on_or_end(pool: RawPool) -> None:
    with pool.worker() as first, pool.worker() as second:
        execution_id = pool.start(SHARED_LOOP)
        waiting, busy = _open_two_shards(first, second)
        began = LoopIterationStarted(run=busy.run, index=2)
        assert second.report(busy, 0, began) == "durable"
        started = LoopIterationStarted(run=waiting.run, index=0)
        waits = RunSuspended(run=waiting.run, reason="signal", iteration=0, signal="go")
        assert first.report(waiting, 0, started, waits, done=True) == "durable"
        pool.plane.submit(execution_id, Signal("go", True))
        again = lease_of(first.command())
        ended = LoopIterationCompleted(run=again.run, index=0, status="success")
        others = LoopIterationStarted(run=again.run, index=1), replace(ended, index=1)
        assert first.report(again, 0, ended, *others, done=True) == "durable"
        assert not first.has_news()
        assert not second.has_news()
        rest = replace(ended, index=2), LoopIterationStarted(run=busy.run, index=3), replace(ended, index=3)
        assert second.report(busy, 1, *rest, done=True) == "durable"
        assert pool.end(execution_id) == "completed"
        assert not second.has_news()


def test_who_is_not_connected_gets_no_runs_and_keeps_those_it_has(pool: RawPool) -> None:
    held = pool.start(TWO_TASKS)
    with pool.worker(slots=9) as gone:
        mine = gone.command()
    execution_id = pool.start(ONE)
    with pool.worker() as other:
        assert other.end(other.command()) == "durable"
        assert pool.end(execution_id) == "completed"
        assert not other.has_command(), "the other one's lease lives on"
    waiting = pool.start(ONE)
    with pool.worker(slots=9, session=gone.session, held=(lease_of(mine),)) as back:
        assert back.end(back.command()) == "durable"
        assert pool.end(waiting) == "completed"
        assert back.end(mine) == "durable"
    assert pool.end(held) == "completed"
    assert reasons(pool.events(held)) == reasons(pool.events(waiting)) == []
