"""Whole executions through server and worker in one process."""

import asyncio
import gc
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.inbox import encode_command
from noetl.engine.service import AlreadyRunning
from noetl.events.errors import EventUnwritable
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Signal
from noetl.kernel.state.execution_state import ExecutionState
from noetl.loader import installed_kinds
from noetl.local import Local
from noetl.model.outcome import Outcome, succeeded
from noetl.ports.tool import Call
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from noetl.tools.host.worker_tools import Tools
from tests.local.local_engine import HEAD, Bench, source


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


CHAIN = """
workflow:
- step: start
  tool: {kind: python, code: "result = 20"}
  next: {arcs: [{step: double, args: {n: "{{ event.result }}"}}]}
- step: double
  tool: {kind: python, args: {n: "{{ n }}"}, code: "result = n * 2"}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop}
"""


def test_a_chain_runs_to_its_end_and_its_log_replays(bench: Bench) -> None:
    state = bench.run(CHAIN)
    assert (state.status, state.result) == ("completed", 40)
    events = bench.events(state.execution_id)
    assert [event.seq for event in events] == list(range(1, state.version + 1))
    assert [event for _, event in bench.seen] == events


def test_a_failure_ends_the_execution_and_names_its_place(bench: Bench) -> None:
    state = bench.run('workflow:\n- step: start\n  tool: {kind: python, code: "raise ValueError(7)"}')
    assert state.status == "failed"
    assert state.error is not None
    assert (state.error.kind, state.error.details["step"]) == ("python", "start")


def test_iterations_run_at_once(bench: Bench) -> None:
    meet = (
        "import os\nopen(f'{folder}/{i}', 'w').close()\nwhile len(os.listdir(folder)) < 3: pass\nresult = i"
    )
    folder = bench.home.folder / "meet"
    folder.mkdir()
    state = bench.run(
        f"""
workflow:
- step: start
  loop: {{in: [0, 1, 2], iterator: i, spec: {{mode: parallel}}}}
  tool:
    kind: python
    args: {{i: "{{{{ iter.i }}}}", folder: "{folder}"}}
    code: {meet!r}
"""
    )
    assert state.result == [0, 1, 2]


def test_a_long_wait_holds_nothing_and_ends_by_itself(bench: Bench) -> None:
    state = bench.run(
        "workflow:\n- step: start\n  tool: [{kind: wait, seconds: 0.05}, {kind: python, code: 'result = 1'}]"
    )
    assert (state.status, state.result) == ("completed", 1)
    assert "RunSuspended" in bench.names(state.execution_id)


CHILD = """
workflow:
- step: start
  tool:
    kind: playbook
    args: {n: 3}
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: child, path: child}
      workload: {n: 0}
      workflow:
      - step: start
        tool: {kind: python, args: {n: "{{ workload.n }}"}, code: "result = n + 1"}
"""


def test_a_child_is_an_execution_of_its_own_and_gives_its_result(bench: Bench) -> None:
    state = bench.run(CHILD)
    assert (state.status, state.result) == ("completed", 4)
    assert len({execution_id for execution_id, _ in bench.seen}) == 2


def test_a_missing_child_fails_the_task(bench: Bench) -> None:
    state = bench.run(
        "workflow:\n- step: start\n  tool: {kind: playbook, path: '{{ workload.p }}'}\nworkload: {p: nowhere}"
    )
    assert state.error is not None
    assert state.error.kind == "child_failed"
    assert "no playbook `nowhere`" in state.error.message


SIGNAL = """
workflow:
- step: start
  tool: {kind: wait, signal: go}
"""


def test_a_signal_from_another_process_is_heard(bench: Bench) -> None:
    async def work(local: Local) -> object:
        execution_id = await local.start(source(SIGNAL))
        await _until(bench, "RunSuspended")
        from noetl.stores.sqlite.store import SqliteStore

        other = SqliteStore.at(bench.home.store)
        await other.send(execution_id, encode_command(Signal("go", {"by": "me"})))
        await other.close()
        return (await local.wait_for_end(execution_id)).result

    assert bench.with_local(work) == {"by": "me"}


async def _until(bench: Bench, name: str) -> None:
    while all(type(event.body).__name__ != name for _, event in bench.seen):
        await asyncio.sleep(0)


def test_what_was_interrupted_goes_on_where_it_stood(bench: Bench) -> None:
    async def work(local: Local) -> str:
        execution_id = await local.start(source(SIGNAL))
        await _until(bench, "RunSuspended")
        local.interrupt()
        assert (await local.wait_for_end(execution_id)).status == "running"
        return execution_id

    execution_id = bench.with_local(work)

    async def again(local: Local) -> str:
        await local.resume(execution_id)
        await local.submit(execution_id, Signal("go", 5))
        return (await local.wait_for_end(execution_id)).status

    assert bench.with_local(again) == "completed"


def test_what_another_process_runs_cannot_be_resumed(bench: Bench) -> None:
    async def work(local: Local) -> None:
        execution_id = await local.start(source(SIGNAL))
        await _until(bench, "RunSuspended")
        from noetl.stores.ownership import Owners
        from noetl.stores.sqlite.store import SqliteStore

        store = SqliteStore.at(bench.home.store)
        async with Local(store, owners=Owners(bench.home.owners)) as other:
            with pytest.raises(AlreadyRunning):
                await other.resume(execution_id)
        await store.close()

    bench.with_local(work)


def test_cancelling_interrupts_what_runs(bench: Bench) -> None:
    from noetl.kernel.net.commands import Cancel

    async def work(local: Local) -> object:
        execution_id = await local.start(
            source("workflow:\n- step: start\n  tool: {kind: python, code: 'while True: pass'}")
        )
        await _until(bench, "TaskStarted")
        await local.submit(execution_id, Cancel())
        return (await local.wait_for_end(execution_id)).status

    assert bench.with_local(work) == "cancelled"


def test_the_same_key_begins_one_execution(bench: Bench) -> None:
    first = bench.run(CHAIN, idempotency_key="k")
    again = bench.run(CHAIN, idempotency_key="k")
    assert again.execution_id == first.execution_id
    assert again.result == 40


LARGE = {"text": "x" * 100_000}


@pytest.mark.parametrize(
    ("first", "second", "differences"),
    [
        ({"workload": {"n": 1}}, {"workload": {"n": 2}}, "workload"),
        ({"workload": {"n": 1}}, {"workload": {"n": True}}, "workload"),
        ({"workload": LARGE}, {"workload": {"text": "y" * 100_000}}, "workload"),
        ({}, {"ctx": {"a": 1}, "labels": {"b": "c"}}, "ctx, labels"),
    ],
)
def test_a_key_that_was_used_with_other_values_is_refused(
    bench: Bench, first: dict[str, Any], second: dict[str, Any], differences: str
) -> None:
    def run(request: dict[str, Any]) -> ExecutionState:
        async def work(local: Local) -> ExecutionState:
            return await local.wait_for_end(await local.start(source(CHAIN), idempotency_key="k", **request))

        return bench.with_local(work, results=FileResults(bench.home.results))

    begun = run(first)
    with pytest.raises(Refused) as refused:
        run(second)
    owner = f"the idempotency key `k` is that of {begun.execution_id}"
    assert str(refused.value) == f"{owner}, which was started with another {differences}"
    again = run(first)
    assert (again.execution_id, again.result) == (begun.execution_id, begun.result)


def test_a_key_that_was_used_with_another_document_is_refused(bench: Bench) -> None:
    bench.run(CHAIN, idempotency_key="k")
    with pytest.raises(Refused, match="which was started with another document"):
        bench.run(CHAIN.replace("20", "21"), idempotency_key="k")


@pytest.mark.parametrize("text", [HEAD + CHAIN])
def test_slots_bound_how_many_runs_are_owned(bench: Bench, text: str) -> None:
    async def work(local: Local) -> list[str]:
        ids = [await local.start(source(text)) for _ in range(5)]
        return [(await local.wait_for_end(execution_id)).status for execution_id in ids]

    assert bench.with_local(work, slots=1) == ["completed"] * 5


class Careless:
    """A tool that gives what no event can hold."""

    async def run(self, _: Call) -> Outcome:
        return succeeded(object())  # type: ignore[arg-type]  # on purpose

    async def close(self) -> None:
        """Nothing is held."""


def test_a_tool_that_breaks_its_promise_ends_the_engine_and_nobody_waits_for_ever(bench: Bench) -> None:
    kind = Kind(name="careless", summary="Gives no JSON.", implementation=Careless)
    tools = Tools(Kinds([*installed_kinds(), kind]))

    async def work(local: Local) -> ExecutionState:
        text = "workflow: [{step: start, tool: {kind: careless}}]"
        return await asyncio.wait_for(local.wait_for_end(await local.start(source(text))), 60)

    with pytest.raises(EventUnwritable):
        bench.with_local(work, tools=tools, playbooks=Playbooks(allow_kinds=["careless"]))


class Untold(Exception):
    """Says nothing, not even that."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Raising:
    """A tool that raises, which no tool shall."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, _: Call) -> Outcome:
        raise self._error

    async def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize("effect", ["pure", "write"])
@pytest.mark.parametrize(
    ("error", "message"),
    [(OSError("no\ud800"), "OSError: no?"), (Untold(), "Untold")],
    ids=["not UTF-8", "no text"],
)
def test_a_tool_that_raises_fails_its_task_whatever_it_raises(
    bench: Bench, error: Exception, message: str, effect: Literal["pure", "write"]
) -> None:
    kind = Kind(name="raising", summary="Raises.", implementation=lambda: Raising(error), effect=effect)

    async def work(local: Local) -> ExecutionState:
        text = "workflow: [{step: start, tool: {kind: raising}}]"
        return await asyncio.wait_for(local.wait_for_end(await local.start(source(text))), 60)

    state = bench.with_local(
        work, tools=Tools(Kinds([*installed_kinds(), kind])), playbooks=Playbooks(allow_kinds=["raising"])
    )
    assert state.error is not None
    assert (state.error.kind, state.error.message) == ("tool", message)


def test_whoever_kills_the_engine_before_a_task_has_begun_meets_no_warning() -> None:
    async def use() -> None:
        durable: list[str] = []
        store = SqliteStore.in_memory()
        async with Local(store, watch=lambda name, *_: durable.append(name)) as local:
            await asyncio.sleep(0)  # it waits for something to do
            await local.start(
                source('workflow:\n- step: start\n  tool: {kind: http, url: "http://x.invalid"}')
            )
            await asyncio.sleep(0)
            # The start of the task is durable, and what runs its tool has not had its turn.
            assert durable
            await local.kill()
        await store.close()

    asyncio.run(use())
    gc.collect()


def test_a_flush_waits_for_the_one_under_way_though_nothing_else_is_to_be_written(bench: Bench) -> None:
    text = "workflow:\n- step: start\n  tool: {kind: noop}\n"

    async def work(local: Local) -> None:
        await local.wait_for_end(await local.start(source(text)))
        other = apsw.Connection(str(bench.home.store))
        other.execute("BEGIN IMMEDIATE")
        execution_id = await local.start(source(text))
        for _ in range(100):  # turns of the loop: the scheduler hands over all that is to be written
            await asyncio.sleep(0)
        flush = asyncio.create_task(local.flush())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not flush.done()
        other.execute("ROLLBACK")
        other.close()
        await flush
        assert (execution_id, "PlaybookProcessed") in [
            (written, type(event.body).__name__) for written, event in bench.seen
        ]

    bench.with_local(work)
