"""What happens around crashes, beyond the points where one can happen: interrupts, refusals, late children."""

import asyncio
from pathlib import Path

import pytest

from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.history.fork import CannotFork
from noetl.engine.inbox import encode_command
from noetl.engine.remote_control import RemoteControl
from noetl.events.bodies import LeaseExpired, PlaybookProcessed, RunSuspended, SignalReceived, TaskStarted
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Resume, Signal
from noetl.local import Local
from noetl.ports.store import StoreFull
from noetl.stores.ownership import Owners
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from tests.local.local_engine import Bench, source


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def until(bench: Bench, name: str) -> None:
    while all(type(event.body).__name__ != name for _, event in bench.seen):
        await asyncio.sleep(0)


TWO = """
workflow:
- step: start
  tool: [{kind: python, code: "result = 1"}, {kind: python, code: "result = 2"}]
"""

DONE = "workflow:\n- step: start\n  tool: {kind: noop}"


def test_an_interrupt_records_what_is_in_flight_and_begins_nothing_new(bench: Bench) -> None:
    async def work(local: Local) -> str:
        execution_id = await local.start(source(TWO))
        await until(bench, "TaskStarted")
        local.interrupt()
        assert (await local.wait_for_end(execution_id)).status == "running"
        return execution_id

    execution_id = bench.with_local(work)
    names = bench.names(execution_id)
    assert (names.count("TaskStarted"), names.count("TaskProcessed")) == (1, 1)
    assert bench.resume(execution_id).result == 2
    assert bench.names(execution_id).count("TaskStarted") == 2
    leases = [event.body for event in bench.events(execution_id) if isinstance(event.body, LeaseExpired)]
    assert [lease.reason for lease in leases] == ["released"]
    assert names[-1] == "LeaseExpired"


def test_what_is_over_cannot_be_forked_at_its_end(bench: Bench) -> None:
    state = bench.run(TWO)

    async def fork(local: Local) -> None:
        await local.fork(state.execution_id, at=state.version)

    with pytest.raises(CannotFork, match="was completed by event"):
        bench.with_local(fork)


def test_a_fork_says_which_step_its_playbook_lacks(bench: Bench) -> None:
    state = bench.run(TWO)

    async def fork(local: Local) -> None:
        other = TWO.replace("step: start", "step: begin")
        await local.fork(state.execution_id, at=state.version - 1, source=source(other))

    with pytest.raises(CannotFork, match="it has no `start`"):
        bench.with_local(fork)


DETACHED = """
workflow:
- step: start
  tool:
    kind: playbook
    spec: {wait: false}
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: child, path: child}
      workflow:
      - step: start
        tool: {kind: wait, signal: go}
"""


def test_what_an_execution_started_and_did_not_wait_for_goes_on_with_it(bench: Bench) -> None:
    async def begin(local: Local) -> str:
        execution_id = await local.start(source(DETACHED))
        await until(bench, "RunSuspended")
        local.interrupt()
        assert (await local.wait_for_end(execution_id)).status == "completed"
        return execution_id

    parent = bench.with_local(begin)
    child = next(execution_id for execution_id, _ in bench.seen if execution_id != parent)

    async def go_on(local: Local) -> str:
        await local.resume(parent)
        await local.submit(child, Signal("go", 5))
        return (await local.wait_for_end(parent)).status

    assert bench.with_local(go_on) == "completed"
    assert bench.names(child)[-1] == "PlaybookProcessed"


def test_a_parent_leaves_a_child_alone_that_another_process_runs(bench: Bench) -> None:
    parent = ""

    async def run(local: Local) -> None:
        nonlocal parent
        parent = await local.start(source(DETACHED))
        await until(bench, "RunSuspended")
        store = SqliteStore.at(bench.home.store)
        async with Local(store, owners=Owners(bench.home.owners)) as other:
            assert (await other.wait_for_end(await other.resume(parent))).status == "completed"
        await store.close()

    bench.with_local(run)


def test_a_retry_that_is_refused_leaves_the_execution_alone(bench: Bench) -> None:
    async def begin(local: Local) -> str:
        execution_id = await local.start(source(TWO))
        await until(bench, "TaskStarted")
        with pytest.raises(Refused, match="running"):
            await local.retry(execution_id)
        await local.kill()
        return execution_id

    execution_id = bench.with_local(begin)
    before = bench.names(execution_id)

    async def refused(local: Local) -> None:
        with pytest.raises(Refused, match="running"):
            await local.retry(execution_id)
        await local.wait_for_end(await local.start(source(DONE)))

    bench.with_local(refused)
    assert bench.names(execution_id) == before
    assert bench.resume(execution_id).result == 2


WAITING = """
workflow:
- step: start
  tool: {kind: wait, signal: go}
"""


def test_a_cancelled_wait_ends_at_once(bench: Bench) -> None:
    async def work(local: Local) -> str:
        execution_id = await local.start(source(WAITING))
        await until(bench, "RunSuspended")
        await local.submit(execution_id, Cancel())
        return (await local.wait_for_end(execution_id)).status

    assert bench.with_local(work) == "cancelled"


def test_a_wait_ends_when_the_time_of_its_execution_is_over(bench: Bench) -> None:
    state = bench.run(WAITING, timeout=0.05)
    assert state.error is not None
    assert (state.status, state.error.kind) == ("failed", "timeout")


def test_what_was_told_is_durable(bench: Bench) -> None:
    async def work(local: Local) -> str:
        execution_id = await local.start(source(WAITING))
        await until(bench, "RunSuspended")
        await local.submit(execution_id, Signal("nobody listens"))
        assert bench.seen[-1][1].body == SignalReceived(signal="nobody listens")
        return execution_id

    bench.with_local(work)


def test_a_letter_is_answered_once(bench: Bench) -> None:
    async def begin(local: Local) -> str:
        execution_id = await local.start(source(WAITING))
        await until(bench, "RunSuspended")
        return execution_id

    execution_id = bench.with_local(begin)

    async def send() -> None:
        store = SqliteStore.at(bench.home.store)
        await store.send(execution_id, encode_command(Signal("other")))
        await store.send(execution_id, encode_command(Resume()))  # answered by nothing
        await store.close()

    asyncio.run(send())

    async def go_on(local: Local) -> None:
        await local.resume(execution_id)
        await local.submit(execution_id, Signal("go"))
        await local.wait_for_end(execution_id)

    bench.with_local(go_on)
    assert bench.names(execution_id).count("SignalReceived") == 2


def test_a_key_that_is_taken_disturbs_nobody(bench: Bench) -> None:
    """Ten ask for the same at once, while something else runs: one execution, and all slots stay free."""

    async def work(local: Local) -> set[str]:
        other = await local.start(source(WAITING))
        ids = await asyncio.gather(*(local.start(source(TWO), idempotency_key="k") for _ in range(10)))
        assert [(await local.wait_for_end(name)).result for name in ids] == [2] * 10
        await local.submit(other, Signal("go"))
        assert (await local.wait_for_end(other)).status == "completed"
        local.interrupt()
        return set(ids)

    (execution_id,) = bench.with_local(work, slots=2)
    assert bench.names(execution_id).count("TaskStarted") == 2


def test_an_execution_that_nobody_runs_can_be_cancelled_with_its_children(bench: Bench) -> None:
    async def begin(local: Local) -> str:
        execution_id = await local.start(source(PARENT))
        while sum(isinstance(event.body, RunSuspended) for _, event in bench.seen) < 2:
            await asyncio.sleep(0)
        return execution_id

    execution_id = bench.with_local(begin)
    child = next(name for name, _ in bench.seen if name != execution_id)

    async def cancel() -> str:
        store = SqliteStore.at(bench.home.store)
        desk = RemoteControl(store, Owners(bench.home.owners), FileResults(bench.home.results), Playbooks())
        done = await desk.send(execution_id, Cancel(by="me"))
        await store.close()
        return done

    assert asyncio.run(cancel()) == "done"
    for name in (execution_id, child):
        assert bench.events(name)[-1].body == PlaybookProcessed(status="cancelled")
    assert bench.resume(execution_id).status == "cancelled"


PARENT = DETACHED.replace("    spec: {wait: false}\n", "")

GROWING = """
workflow:
- step: start
  loop: {in: "{{ range(40) | list }}", iterator: i}
  tool:
    kind: python
    args: {i: "{{ iter.i }}", place: PLACE}
    code: |
      open(place, "a").write(f"{i}\\n")
      result = "x" * 30_000
  next: {arcs: [{step: end, args: {n: "{{ event.loop.succeeded }}"}}]}
- step: end
  tool: {kind: python, args: {n: "{{ n }}"}, code: "result = n"}
"""


def test_a_full_disk_stops_the_process_and_loses_nothing(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    text = GROWING.replace("PLACE", str(log))

    async def run_out_of_room() -> str:
        store = SqliteStore.at(bench.home.store, max_pages=60)
        async with Local(store, owners=Owners(bench.home.owners)) as local:
            execution_id = await local.start(source(text))
            with pytest.raises(StoreFull):
                await local.wait_for_end(execution_id)
        await store.close()
        return execution_id

    execution_id = asyncio.run(run_out_of_room())
    recorded = bench.names(execution_id).count("TaskProcessed")
    assert 0 < recorded < 40
    assert bench.resume(execution_id).result == 40
    done = log.read_text().split()
    assert sorted(set(map(int, done))) == list(range(40))
    assert len(done) <= 41
    assert done.count(str(recorded - 1)) == 1


def test_an_attempt_in_flight_at_a_fork_does_not_count_in_the_copy(bench: Bench) -> None:
    state = bench.run(
        'workflow:\n- step: start\n  tool: {kind: python, args: {n: "{{ _attempt }}"}, code: "result = n"}'
    )
    began = next(
        event.seq for event in bench.events(state.execution_id) if isinstance(event.body, TaskStarted)
    )

    async def fork(local: Local) -> object:
        return (await local.wait_for_end(await local.fork(state.execution_id, at=began))).result

    assert bench.with_local(fork) == 1
