"""`retry` of an execution whose child failed goes on with that child (semantics §10)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.remote_control import RemoteControl
from noetl.engine.service import AlreadyRunning
from noetl.events.bodies import ExecutionRetried, PlaybookExecutionRequested, RunSuspended, TaskStarted
from noetl.events.event import Event
from noetl.kernel.net.commands import Cancel, Signal
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.verify.verification import verify
from noetl.local import Local
from noetl.stores.ownership import Owners
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from tests.cli.command_line import run
from tests.local.local_engine import Bench, source


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class Shop:
    """Playbooks whose tasks leave their label and key in a file, and fail until a file is there."""

    def __init__(self, folder: Path, bench: Bench) -> None:
        self.folder = folder
        self.bench = bench

    def effect(self, label: str, *, needs: str = "") -> dict[str, Any]:
        """A task that has an effect; before that it fails as long as the file `needs` is missing."""
        code = "open(log, 'a').write(label + ' ' + key + '\\n')\nresult = label"
        if needs:
            code = f"open(folder + '/{needs}').close()\n{code}"
        args = {"log": str(self.folder / "log"), "folder": str(self.folder), "label": label}
        return {
            "name": label.replace(" ", "_").split("_")[0],
            "kind": "python",
            "args": {**args, "key": "{{ _idempotency_key }}"},
            "code": code,
        }

    def child(self, *tasks: dict[str, Any], name: str = "child") -> dict[str, Any]:
        steps = [
            {"step": f"s{number}", "tool": [task], "next": {"arcs": [_then(f"s{number + 1}")]}}
            for number, task in enumerate(tasks)
        ]
        steps[-1].pop("next")
        return {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": name, "path": name},
            "executor": {"kind": "local", "spec": {"entry_step": "s0"}},
            "workflow": steps,
        }

    def call(self, document: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"name": "call", "kind": "playbook", "document": document, **more}

    def text(self, *tasks: dict[str, Any], loop: dict[str, Any] | None = None, **step: Any) -> str:
        workflow = {"step": "start", "tool": list(tasks), **({"loop": loop} if loop else {}), **step}
        return f"workflow: {json.dumps([workflow])}"

    def mend(self, name: str = "there") -> None:
        (self.folder / name).touch()

    def effects(self) -> list[str]:
        """The labels of what was done."""
        return [line.split()[0] for line in self.log()]

    def log(self) -> list[str]:
        file = self.folder / "log"
        return file.read_text().splitlines() if file.exists() else []

    def run(self, *tasks: dict[str, Any], **step: Any) -> ExecutionState:
        return self.ended(lambda local: local.start(source(self.text(*tasks, **step))))

    def retry(self, execution_id: str) -> ExecutionState:
        return self.ended(lambda local: local.retry(execution_id, by="me"))

    def ended(self, begin: Callable[[Local], Awaitable[str]]) -> ExecutionState:
        async def work(local: Local) -> ExecutionState:
            return await local.wait_for_end(await begin(local))

        state = self.bench.with_local(work, results=FileResults(self.folder / "results"))
        events = self.bench.events(state.execution_id)
        assert verify(state.plan, state.execution_id, events).differences == ()
        return state

    def waited_for(self, execution_id: str) -> list[str]:
        """The children that its runs waited for, in order."""
        bodies = [event.body for event in self.bench.events(execution_id)]
        return [body.child for body in bodies if isinstance(body, RunSuspended) and body.child]

    def retries(self, execution_id: str) -> list[ExecutionRetried]:
        bodies = [event.body for event in self.bench.events(execution_id)]
        return [body for body in bodies if isinstance(body, ExecutionRetried)]

    def children_begun(self) -> int:
        """Executions that were begun by others, in all processes."""
        requests = [
            event.body for _, event in self.bench.seen if isinstance(event.body, PlaybookExecutionRequested)
        ]
        return sum(request.parent is not None for request in requests)


def _then(step: str) -> dict[str, str]:
    return {"step": step, "when": "{{ event.name == 'step.done' }}"}


@pytest.fixture
def shop(tmp_path: Path, bench: Bench) -> Shop:
    return Shop(tmp_path, bench)


def charge_and_book(shop: Shop) -> dict[str, Any]:
    return shop.child(shop.effect("charge"), shop.effect("book", needs="there"))


def test_the_failed_child_goes_on_and_repeats_nothing(shop: Shop) -> None:
    failed = shop.run(shop.call(charge_and_book(shop)), shop.effect("after"))
    assert (failed.status, shop.effects()) == ("failed", ["charge"])
    shop.mend()
    done = shop.retry(failed.execution_id)
    assert (done.status, done.result) == ("completed", "after")
    assert shop.effects() == ["charge", "book", "after"]
    assert shop.children_begun() == 1
    first, again = shop.waited_for(done.execution_id)
    assert first == again
    (retried,) = shop.retries(done.execution_id)
    assert (retried.runs, retried.by, retried.children) == (("r5",), "me", (first,))
    assert len(shop.retries(first)) == 1


def test_a_child_that_fails_again_goes_on_at_the_next_retry(shop: Shop) -> None:
    failed = shop.run(shop.call(charge_and_book(shop)))
    assert shop.retry(failed.execution_id).status == "failed"
    shop.mend()
    assert shop.retry(failed.execution_id).result == "book"
    assert shop.effects() == ["charge", "book"]
    assert len(set(shop.waited_for(failed.execution_id))) == 1


def test_children_of_children_go_on_too(shop: Shop) -> None:
    lowest = charge_and_book(shop)
    middle = shop.child(shop.effect("reserve"), shop.call(lowest), name="middle")
    failed = shop.run(shop.call(middle))
    shop.mend()
    done = shop.retry(failed.execution_id)
    assert (done.status, done.result) == ("completed", "book")
    assert shop.effects() == ["reserve", "charge", "book"]
    assert shop.children_begun() == 2


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_in_a_loop_only_the_children_that_failed_go_on(shop: Shop, mode: str) -> None:
    child = shop.child(shop.effect("charge"), shop.effect("book", needs="need-{{ workload.n }}"))
    child["workload"] = {"n": 0}
    code = child["workflow"][1]["tool"][0]
    code["code"] = code["code"].replace("/need-{{ workload.n }}'", "/need-' + str(n)")
    code["args"]["n"] = "{{ workload.n }}"
    for name in ("need-0", "need-2"):
        shop.mend(name)
    call = shop.call(child, args={"n": "{{ iter.n }}"})
    loop = {"in": [0, 1, 2], "iterator": "n", "spec": {"mode": mode}}
    failed = shop.run(call, shop.effect("after"), loop=loop)
    before = shop.effects()
    assert failed.status == "failed"
    shop.mend("need-1")
    done = shop.retry(failed.execution_id)
    assert (done.status, done.result) == ("completed", ["after"] * 3)
    new = ["book", "after"] if mode == "parallel" else ["book", "after", "charge", "book", "after"]
    assert shop.effects()[len(before) :] == new
    assert shop.children_begun() == 3


def test_of_several_attempts_the_last_child_goes_on_and_the_policy_starts_others(shop: Shop) -> None:
    rules = [{"when": "{{ outcome.status == 'error' }}", "then": {"do": "retry", "attempts": 2}}]
    call = shop.call(charge_and_book(shop), spec={"policy": {"rules": rules}})
    failed = shop.run(call)
    assert shop.effects() == ["charge", "charge"]
    assert shop.retry(failed.execution_id).status == "failed"
    first, second, again, other = shop.waited_for(failed.execution_id)
    assert again == second
    assert len({first, second, other}) == 3
    shop.mend()
    assert shop.retry(failed.execution_id).result == "book"
    assert shop.waited_for(failed.execution_id)[-1] == other


def test_the_result_of_a_child_that_completed_since_is_taken(shop: Shop) -> None:
    failed = shop.run(shop.call(charge_and_book(shop)))
    (child,) = shop.waited_for(failed.execution_id)
    shop.mend()
    assert shop.retry(child).result == "book"
    done = shop.retry(failed.execution_id)
    assert (done.status, done.result) == ("completed", "book")
    assert shop.effects() == ["charge", "book"]
    assert len(shop.retries(child)) == 1


def test_a_large_result_of_a_child_that_completed_since_is_taken_whole(shop: Shop) -> None:
    large = {"name": "large", "kind": "python", "code": "result = ['x' * 1000] * 300"}
    child = shop.child(shop.effect("book", needs="there"), large)
    count = {"name": "count", "kind": "noop", "args": {"n": "{{ call | length }}"}}
    failed = shop.run(shop.call(child), count)
    shop.mend()
    shop.retry(shop.waited_for(failed.execution_id)[0])
    assert shop.retry(failed.execution_id).result == {"n": 300}


def test_in_place_of_a_cancelled_child_there_is_a_new_one(shop: Shop) -> None:
    child = shop.child(shop.effect("charge"), {"name": "hold", "kind": "wait", "signal": "never"})

    async def cancel_child(local: Local) -> str:
        execution_id = await local.start(source(shop.text(shop.call(child))))
        await _until(shop.bench, RunSuspended, 2)
        (child_id,) = {seen_id for seen_id, _ in shop.bench.seen} - {execution_id}
        await local.submit(child_id, Cancel())
        assert (await local.wait_for_end(execution_id)).status == "failed"
        return execution_id

    execution_id = shop.bench.with_local(cancel_child)
    page = run("executions", "show", execution_id, cwd=shop.folder).out
    assert f"  child child {shop.waited_for(execution_id)[0]}: cancelled\n" in page

    async def retry(local: Local) -> None:
        await local.retry(execution_id)
        await _until(shop.bench, RunSuspended, 4)
        await local.kill()

    shop.bench.with_local(retry)
    assert shop.effects() == ["charge", "charge"]
    assert shop.retries(execution_id)[0].children == ()
    assert len(set(shop.waited_for(execution_id))) == 2


def test_a_child_that_was_retried_and_then_cancelled_is_replaced(shop: Shop) -> None:
    hold = {"name": "hold", "kind": "wait", "signal": "never"}
    child = shop.child(shop.effect("charge"), shop.effect("book", needs="there"), hold)
    failed = shop.run(shop.call(child))
    (first,) = shop.waited_for(failed.execution_id)
    shop.mend()

    async def retry_and_cancel(local: Local) -> None:
        await local.retry(first)
        await _until(shop.bench, RunSuspended, 2)
        await local.submit(first, Cancel())
        await local.wait_for_end(first)

    shop.bench.with_local(retry_and_cancel)

    async def retry(local: Local) -> None:
        await local.retry(failed.execution_id)
        await _until(shop.bench, RunSuspended, 4)
        await local.kill()

    shop.bench.with_local(retry)
    assert shop.effects() == ["charge", "book", "charge", "book"]


def test_a_child_that_never_began_is_replaced(shop: Shop) -> None:
    missing = {"name": "call", "kind": "playbook", "path": "{{ 'later' }}"}
    file = str(shop.folder / "parent.yaml")
    failed = shop.ended(lambda local: local.start(source(shop.text(missing), file)))
    assert failed.status == "failed"
    document = shop.child(shop.effect("charge"), name="later")
    (shop.folder / "later.yaml").write_text(json.dumps(document))
    assert shop.retry(failed.execution_id).result == "charge"
    assert len(set(shop.waited_for(failed.execution_id))) == 2


def test_a_child_that_took_too_long_is_replaced(shop: Shop) -> None:
    code = "import time, os\nwhile not os.path.exists(folder + '/there'): time.sleep(0.01)\nresult = 1"
    slow = {"name": "slow", "kind": "python", "args": {"folder": str(shop.folder)}, "code": code}
    call = shop.call(shop.child(shop.effect("charge"), slow), spec={"timeout": 1})
    failed = shop.run(call)
    assert failed.error is not None
    assert failed.error.kind == "timeout"
    shop.mend()
    assert shop.retry(failed.execution_id).result == 1
    assert shop.effects() == ["charge", "charge"]


def test_a_failure_that_is_not_the_child_s_starts_another(shop: Shop) -> None:
    rules = [{"when": "{{ ctx.n is not defined }}", "then": {"do": "fail", "set_ctx": {"n": 1}}}]
    call = shop.call(shop.child(shop.effect("charge")), spec={"policy": {"rules": rules}})
    failed = shop.run(call)
    assert failed.status == "failed"
    assert shop.retry(failed.execution_id).result == "charge"
    assert shop.effects() == ["charge", "charge"]


def test_a_child_that_was_interrupted_while_it_was_retried_goes_on(shop: Shop) -> None:
    hold = {"name": "hold", "kind": "wait", "seconds": 0.05}
    child = shop.child(shop.effect("charge"), shop.effect("book", needs="there"), hold)
    failed = shop.run(shop.call(child), shop.effect("after"))
    (first,) = shop.waited_for(failed.execution_id)
    shop.mend()

    async def retry_and_die(local: Local) -> None:
        await local.retry(first)
        await _until(shop.bench, RunSuspended, 2)
        await local.kill()

    shop.bench.with_local(retry_and_die)
    assert shop.retry(failed.execution_id).result == "after"
    assert shop.effects() == ["charge", "book", "after"]
    assert len(shop.retries(first)) == 1


def test_while_another_process_runs_the_child_the_parent_is_not_retried(shop: Shop) -> None:
    hold = {"name": "hold", "kind": "wait", "signal": "never"}
    child = shop.child(shop.effect("book", needs="there"), hold)
    failed = shop.run(shop.call(child))
    (first,) = shop.waited_for(failed.execution_id)
    shop.mend()

    async def retry_twice(local: Local) -> None:
        await local.retry(first)
        await _until(shop.bench, RunSuspended, 2)
        store = SqliteStore.at(shop.bench.home.store)
        async with Local(store, owners=Owners(shop.bench.home.owners)) as other:
            with pytest.raises(AlreadyRunning, match=first):
                await other.retry(failed.execution_id)
            assert await other.resume(failed.execution_id)  # nobody owns it
        await store.close()
        await local.kill()

    shop.bench.with_local(retry_twice)
    assert shop.retries(failed.execution_id) == []


def test_a_fork_has_children_of_its_own(shop: Shop) -> None:
    """The copy is cut where the original's child had failed it, while another branch still ran."""
    steps = [
        {"step": "start", "next": {"spec": {"mode": "inclusive"}, "arcs": [{"step": "a"}, {"step": "b"}]}},
        {"step": "a", "tool": [shop.call(charge_and_book(shop))]},
        {"step": "b", "tool": [{"name": "hold", "kind": "wait", "signal": "go"}]},
    ]
    text = f"workflow: {json.dumps(steps)}"

    async def begin(local: Local) -> str:
        execution_id = await local.start(source(text))
        await _until(shop.bench, lambda body: type(body).__name__ == "StepFailed", 2)
        await local.submit(execution_id, Cancel())
        await local.wait_for_end(execution_id)
        return execution_id

    original = shop.bench.with_local(begin)
    events = shop.bench.events(original)
    at = next(event.seq for event in events if type(event.body).__name__ == "StepFailed")
    shop.mend()

    async def fork(local: Local) -> str:
        forked = await local.fork(original, at=at)
        await local.submit(forked, Signal("go"))
        assert (await local.wait_for_end(forked)).status == "failed"
        return forked

    forked = shop.bench.with_local(fork)
    assert shop.retry(forked).status == "completed"
    assert shop.effects() == ["charge", "charge", "book"]
    assert shop.retries(shop.waited_for(original)[0]) == []


def test_a_fork_of_what_was_only_recorded_leaves_the_child_of_the_original_alone(shop: Shop) -> None:
    failed = shop.run(shop.call(charge_and_book(shop)))
    shop.mend()

    async def record() -> None:
        store, results = SqliteStore.at(shop.bench.home.store), FileResults(shop.folder / "results")
        control = RemoteControl(store, Owners(shop.bench.home.owners), results, Playbooks())
        await control.retry_here(failed.execution_id, by="me", repaired=None)
        await store.close()

    asyncio.run(record())
    at = shop.bench.events(failed.execution_id)[-1].seq
    forked = shop.ended(lambda local: local.fork(failed.execution_id, at=at))
    assert (forked.status, shop.effects()) == ("completed", ["charge", "charge", "book"])
    assert shop.retries(shop.waited_for(failed.execution_id)[0]) == []


def test_what_a_retried_child_starts_and_does_not_wait_for_is_waited_for_at_the_end(shop: Shop) -> None:
    hold = {"name": "hold", "kind": "wait", "seconds": 0.3}
    lowest = shop.child(hold, shop.effect("late"), name="lowest")
    child = shop.child(shop.effect("book", needs="there"), shop.call(lowest, spec={"wait": False}))
    failed = shop.run(shop.call(child))
    shop.mend()
    assert shop.retry(failed.execution_id).status == "completed"
    assert shop.effects() == ["book", "late"]


def test_keys_stay_the_same_in_a_child_that_goes_on(shop: Shop) -> None:
    late = shop.effect("book")
    late["code"] += "\nopen(folder + '/there').close()"
    failed = shop.run(shop.call(shop.child(late)))
    shop.mend()
    shop.retry(failed.execution_id)
    first, again = shop.log()
    assert first == again


def test_attempts_go_on_counting(shop: Shop) -> None:
    failed = shop.run(shop.call(charge_and_book(shop)))
    shop.mend()
    shop.retry(failed.execution_id)
    bodies = [event.body for event in shop.bench.events(failed.execution_id)]
    assert [body.attempt for body in bodies if isinstance(body, TaskStarted)] == [1, 2]


async def _until(bench: Bench, kind: Any, times: int) -> None:
    """Returns when so many such events were seen, in all processes together."""
    store = SqliteStore.at(bench.home.store)

    def matches(event: Event) -> bool:
        return isinstance(event.body, kind) if isinstance(kind, type) else kind(event.body)

    try:
        async for _ in store.changes():
            if sum(matches(event) for _, event in bench.seen) >= times:
                return
    finally:
        await store.close()
