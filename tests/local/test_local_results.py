"""Results of real executions: where they are kept, who has them, and how long."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from noetl.engine.catalog.preflight import CannotRun
from noetl.engine.history.retention import (
    DroppedBodies,
    delete_ended,
    delete_execution,
    drop_expired,
    ended_before,
)
from noetl.events.bodies import RunSuspended, TaskStarted
from noetl.local import Local
from noetl.model.reference import StoredReference, is_reference
from noetl.ports.results import ResultError, ResultExpired
from noetl.ports.store import ExecutionQuery
from noetl.stores.results.body_format import is_plain_body
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.sqlite.store import SqliteStore
from tests.local.local_engine import Bench, source

T = TypeVar("T")

SECOND = 1_000_000
MAKE = "kind: python, code: \"result = {'n': 1, 'rows': list(range(30000))}\""


class Kept(Bench):
    """A bench whose executions keep results in files: the engine's own, and those of `archive`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.own = FileResults(self.home.results)
        self.archive = FileResults(folder / "archive")
        self.results = NamedResults(self.own, {"archive": self.archive})

    def play(self, text: str, **options: Any) -> tuple[Any, Any]:
        """The state at the end, and the result whole."""

        async def work(local: Local) -> tuple[Any, Any]:
            state = await local.wait_for_end(await local.start(source(text)))
            assert state.status == "completed", state.error
            return state, await local.resolve(state.result)

        return self.with_local(work, results=self.results, **options)

    def in_store(self, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
        async def open_and_work() -> T:
            store = SqliteStore.at(self.home.store)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(open_and_work())

    def tidy(self, moment: int) -> tuple[int, int]:
        async def count_bodies(store: SqliteStore) -> tuple[int, int]:
            expired, _ = await drop_expired(self.home, store, self.results, moment)
            return expired.bodies, expired.bytes

        return self.in_store(count_bodies)


class Failing(FileResults):
    async def delete(self, execution_id: str) -> None:
        raise ResultError(f"{execution_id}: out of order", "wait")


@pytest.fixture
def bench(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def task(result: str = "") -> str:
    spec = f", spec: {{result: {{{result}}}}}" if result else ""
    return f"workflow:\n- step: start\n  tool: [{{t: {{{MAKE}{spec}}}}}]\n"


@pytest.mark.parametrize(("compression", "plain"), [("", False), ("none", True), ("gzip", False)])
def test_values_are_packed_unless_told_otherwise(bench: Kept, compression: str, plain: bool) -> None:
    state, result = bench.play(task(f"compression: {compression}" if compression else ""))
    assert is_reference(state.result)
    raw = (bench.home.results / state.result["key"]).read_bytes()
    assert is_plain_body(raw) is plain
    assert (len(raw) < state.result["size"]) is not plain
    assert result["n"] == 1


def test_a_result_can_be_kept_in_another_store(bench: Kept) -> None:
    state, result = bench.play(task("store: archive"))
    assert state.result["store"] == "archive"
    assert state.result["key"] == f"archive:{state.execution_id}/{state.result['hash']}"
    assert asyncio.run(bench.archive.keys(state.execution_id))
    assert not asyncio.run(bench.own.keys(state.execution_id))
    assert len(result["rows"]) == 30_000


def test_what_tools_store_goes_there_too(bench: Kept) -> None:
    text = """
workflow:
- step: start
  tool:
  - put: {kind: artifact, action: put, content: hello, spec: {result: {store: archive, compression: zstd}}}
  - get: {kind: artifact, action: get, ref: "{{ put }}", format: text}
"""
    state, result = bench.play(text)
    assert result == "hello"
    assert asyncio.run(bench.archive.keys(state.execution_id))


def test_a_store_that_nobody_set_is_refused_before_anything_runs(bench: Kept) -> None:
    with pytest.raises(CannotRun, match="there is no result store `nowhere`") as caught:
        bench.play(task("store: nowhere"))
    assert "archive" in caught.value.hint
    assert not bench.seen


def waits(body: object) -> bool:
    return isinstance(body, RunSuspended) and body.reason == "signal"


CHILD = """
workflow:
- step: start
  tool:
  - put: {kind: artifact, action: put, content: "%s", format: text}
  - child:
      kind: playbook
      args: {given: "{{ put }}"}
      document:
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: {name: c, path: c}
        workflow:
        - step: start
          tool:
          - read: {kind: artifact, action: get, ref: "{{ workload.given }}", format: text}
          - made: {kind: artifact, action: put, content: "{{ read | upper }}"}
          - both: {kind: noop, args: {mine: "{{ made }}", yours: "{{ workload.given }}"}}
  - mine: {kind: artifact, action: get, ref: "{{ child.mine }}", format: text}
  - yours: {kind: artifact, action: get, ref: "{{ child.yours }}", format: text}
  - end: {kind: noop, args: {mine: "{{ mine }}", yours: "{{ yours }}", refs: "{{ child }}"}}
"""


def test_objects_go_to_children_and_come_back(bench: Kept) -> None:
    state, result = bench.play(CHILD % "hello")
    assert (result["mine"], result["yours"]) == ("HELLO", "hello")
    for reference in result["refs"].values():
        assert isinstance(reference, StoredReference)
        assert reference["key"].startswith(f"{state.execution_id}/")
    owners = {path.name for path in bench.home.results.iterdir()}
    assert len(owners) == 2, "each has its own"
    files = [path for path in bench.home.results.rglob("*") if path.is_file()]
    assert len({path.stat().st_ino for path in files}) == 2, "and the disk has each once"


def test_a_fork_has_its_own_objects(bench: Kept) -> None:
    text = """
workflow:
- step: start
  tool: [{put: {kind: artifact, action: put, content: hello, spec: {result: {store: archive}}}}]
  next: {arcs: [{step: b}]}
- step: b
  tool: [{get: {kind: artifact, action: get, ref: "{{ start }}", format: text}}]
"""
    state, _ = bench.play(text)
    at = next(event.seq for _, event in bench.seen if type(event.body).__name__ == "StepDone")
    asyncio_delete = bench.results.delete(state.execution_id)

    async def work(local: Local) -> Any:
        forked = await local.fork(state.execution_id, at=at, run=False)
        await asyncio_delete
        return await local.wait_for_end(await local.resume(forked))

    ended = bench.with_local(work, results=bench.results)
    assert (ended.status, ended.result) == ("completed", "hello")


def test_bodies_expire_after_their_time_and_say_so(bench: Kept) -> None:
    state, _ = bench.play(task("ttl: 60"))
    assert state.result["ttl"] == 60
    end = state.ended_at
    assert bench.tidy(end + 59 * SECOND) == (0, 0)
    dropped, freed = bench.tidy(end + 61 * SECOND)
    assert (dropped, freed > 1_000) == (1, True)
    assert bench.tidy(end + 62 * SECOND) == (0, 0)
    with pytest.raises(ResultExpired, match="expired at 20"):
        asyncio.run(bench.results.get(state.result["key"]))
    assert state.result["preview"].startswith('{"n":1')


@pytest.mark.parametrize(
    ("knobs", "expires"),
    [
        ("scope: step", True),
        ("scope: execution", False),
        ("scope: execution, ttl: 0", True),
        ("scope: permanent, ttl: 0", False),
        ("scope: permanent", False),
    ],
)
def test_scopes_say_how_long_a_body_lives(bench: Kept, knobs: str, expires: bool) -> None:
    state, _ = bench.play(task(knobs))
    assert bench.tidy(state.ended_at + 3600 * SECOND)[0] == (1 if expires else 0)


def test_many_small_values_that_left_an_event_together_expire_and_are_copied_together(bench: Kept) -> None:
    inputs = ", ".join(f"k{number}: {number:04}{'x' * 900}" for number in range(600))
    text = f"""
workflow:
- step: start
  tool: [{{t: {{kind: python, code: "result = len(k7)", args: {{{inputs}}}, spec: {{result: {{ttl: 0}}}}}}}}]
"""
    state, result = bench.play(text)
    assert result == 904
    at, started = next(
        (event.seq, event.body) for _, event in bench.seen if isinstance(event.body, TaskStarted)
    )
    assert started.input["args"]["k7"]["path"] == ["k7"]

    async def fork(local: Local) -> Any:
        return await local.wait_for_end(await local.fork(state.execution_id, at=at))

    assert bench.with_local(fork, results=bench.results).result == 904
    assert bench.tidy(state.ended_at + 3600 * SECOND)[0] == 2


def test_what_another_reference_keeps_stays(bench: Kept) -> None:
    text = f"""
workflow:
- step: start
  tool:
  - t: {{{MAKE}, spec: {{result: {{ttl: 0}}}}}}
  - u: {{{MAKE}}}
"""
    state, _ = bench.play(text)
    assert bench.tidy(state.ended_at + SECOND) == (0, 0)


def test_what_somebody_owns_or_a_parent_wants_stays(bench: Kept) -> None:
    text = f"""
workflow:
- step: start
  tool:
  - c:
      kind: playbook
      document:
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: {{name: c, path: c}}
        workflow:
        - step: start
          tool: [{{t: {{{MAKE}, spec: {{result: {{ttl: 0}}}}}}}}]
  - w: {{kind: wait, signal: go}}
"""

    async def work(local: Local) -> str:
        execution_id = await local.start(source(text))
        while not any(waits(event.body) for _, event in bench.seen):
            await local.flush()
            await asyncio.sleep(0)
        return execution_id

    bench.with_local(work, results=bench.results)
    moment = time.time_ns() // 1_000 + SECOND
    assert bench.tidy(moment) == (0, 0), "the parent has not ended"

    async def children(store: SqliteStore) -> int:
        """Those that are left, though all that ended may go."""
        assert [record async for record in ended_before(store, moment)] == []
        await delete_ended(bench.home, store, bench.results, moment, 100)
        ended = (await store.executions(ExecutionQuery(status=("completed",)))).executions
        for record in ended:
            assert not await delete_execution(bench.home, store, bench.results, record)
        return len(ended)

    assert bench.in_store(children) == 1


def test_a_place_of_results_that_fails_keeps_what_is_to_be_deleted(bench: Kept) -> None:
    state, _ = bench.play(task())
    results = NamedResults(bench.own, {"archive": Failing(bench.home.results)})

    async def attempt(store: SqliteStore) -> bool:
        (record,) = [record async for record in ended_before(store, state.ended_at + SECOND)]
        with pytest.raises(ResultError, match="out of order"):
            await delete_execution(bench.home, store, results, record)
        assert await store.execution(state.execution_id) is not None
        return await delete_execution(bench.home, store, bench.results, record)

    assert bench.in_store(attempt), "it can be tried again"


def test_a_store_that_is_no_longer_named_does_not_keep_others_from_expiring(bench: Kept) -> None:
    bench.play(task("ttl: 0"))
    bench.play(task("ttl: 0, store: archive"))

    async def tidied(store: SqliteStore) -> DroppedBodies:
        moment = time.time_ns() // 1_000 + SECOND
        return (await drop_expired(bench.home, store, NamedResults(bench.own, {}), moment))[0]

    expired = bench.in_store(tidied)
    assert (expired.bodies, expired.unreachable) == (1, 1)


LOOP = "loop: {in: '{{ range(300) | list }}', iterator: i}"


@pytest.mark.parametrize(
    ("start", "length"),
    [
        pytest.param(f"tool: {{{MAKE}}}", 2, id="a value"),
        pytest.param(
            f"{LOOP}\n  tool: {{kind: noop, args: {{t: '{{{{ `x` * 1000 }}}}'}}}}", 300, id="chunks"
        ),
    ],
)
def test_what_the_event_says_of_a_stored_result_can_be_given_to_artifact_get(
    bench: Kept, start: str, length: int
) -> None:
    text = """workflow:
- step: start
  START
  next: {arcs: [{step: load, set: {ctx.r: "{{ event.result_ref }}"}}]}
- step: load
  tool:
    - {kind: artifact, action: get, format: json, ref: "{{ ctx.r }}"}
    - {kind: python, args: {d: "{{ _prev }}"}, code: "result = len(d)"}
"""
    assert bench.play(text.replace("START", start.replace("`", '"')))[1] == length
