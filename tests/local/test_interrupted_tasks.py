"""Tasks that are interrupted: by a timeout that they do not keep to, by a cancel, by the end of the process.

The loop of most of these tests does not wait: where nothing is to be done its clock jumps to the next timer.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.engine.catalog.playbooks import Playbooks
from noetl.events.bodies import CancelRequested, StepFailed, TaskProcessed, TaskStarted
from noetl.events.event import Event
from noetl.kernel.net.commands import Cancel
from noetl.loader import installed_kinds
from noetl.local import Local
from noetl.model.outcome import Outcome, succeeded
from noetl.ports.tool import Call
from noetl.stores.ownership import Owners
from noetl.stores.sqlite.store import SqliteStore
from noetl.tools.host.worker_tools import Tools
from noetl.worker import attempt, runner
from tests.local.local_engine import Bench, source


class SkippingSelector(selectors.DefaultSelector):
    """Waits for no timer, and sums up how long it would have waited."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        ready = super().select(0)
        if not ready:
            self.skipped += max(timeout, 0.0)
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return super().time() + self._skipping.skipped


class StubbornTool:
    """Waits for ever; once it is interrupted it tidies up for some seconds, and then gives an outcome."""

    def __init__(self, *, tidies_for: float = 0.0) -> None:
        self._tidies_for = tidies_for
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.interrupted_after = 0.0

    async def run(self, _: Call) -> Outcome:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        self.began.set()
        try:
            await loop.create_future()
        except asyncio.CancelledError:
            self.interrupted_after = loop.time() - began_at
            await asyncio.sleep(self._tidies_for)
        finally:
            self.ended.set()
        return succeeded("too late")

    async def close(self) -> None:
        """Nothing is held."""


class Interruption:
    """An engine with a stubborn tool, and the moments of events on the clock of its loop."""

    def __init__(self, bench: Bench, tool: StubbornTool) -> None:
        self.tool = tool
        self.bench = bench
        self.moments: dict[type, float] = {}
        self.ended_before: dict[type, bool] = {}
        self.ended_before_exit = False

    def watch(self, _: str, events: Any, __: object) -> None:
        for event in events:
            self.moments[type(event.body)] = asyncio.get_running_loop().time()
            self.ended_before[type(event.body)] = self.tool.ended.is_set()

    def run(
        self,
        work: Callable[[Local, str], Awaitable[None]],
        text: str,
        loop: Callable[[], asyncio.AbstractEventLoop] = SkippingLoop,
    ) -> list[Event]:
        """What is recorded of an execution when `work` with it is over."""

        async def use() -> str:
            # Without a thread, whose work would take no time on the clock of the loop.
            store = SqliteStore.at(self.bench.home.store, inline="everything")
            kind = Kind(name="stubborn", summary="Waits.", implementation=lambda: self.tool)
            try:
                async with Local(
                    store,
                    owners=Owners(self.bench.home.owners),
                    playbooks=Playbooks(allow_kinds=["stubborn"]),
                    tools=Tools(Kinds([*installed_kinds(), kind])),
                    watch=self.watch,
                ) as local:
                    execution_id = await local.start(source(text))
                    await self.tool.began.wait()
                    await work(local, execution_id)
                self.ended_before_exit = self.tool.ended.is_set()
            finally:
                await store.close()
            return execution_id

        with asyncio.Runner(loop_factory=loop) as loop_runner:
            execution_id = loop_runner.run(use())
        return self.bench.events(execution_id)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def playbook(spec: str = "", step_spec: str = "") -> str:
    return (
        f"workflow:\n- step: start\n  spec: {{{step_spec}}}\n  tool: {{kind: stubborn, spec: {{{spec}}}}}\n"
    )


def kinds_of(events: list[Event]) -> Mapping[type, int]:
    kinds: dict[type, int] = {}
    for event in events:
        kinds[type(event.body)] = kinds.get(type(event.body), 0) + 1
    return kinds


async def wait_for_end(local: Local, execution_id: str) -> None:
    await local.wait_for_end(execution_id)


async def cancel(local: Local, execution_id: str) -> None:
    await local.submit(execution_id, Cancel())
    await local.wait_for_end(execution_id)


@pytest.mark.parametrize(("spec", "timeout"), [("timeout: 5", 5), ("", 300)])
def test_a_tool_that_keeps_to_no_timeout_is_interrupted_a_second_after_it(
    bench: Bench, spec: str, timeout: float
) -> None:
    interruption = Interruption(bench, StubbornTool())
    events = interruption.run(wait_for_end, playbook(spec))
    assert attempt.GRACE == 1
    assert interruption.tool.interrupted_after == pytest.approx(timeout + 1, abs=0.1)
    # It gave an outcome after all, which is the one that counts.
    (processed,) = [event.body for event in events if isinstance(event.body, TaskProcessed)]
    assert processed.outcome.result == "too late"


def test_cancelling_waits_until_interrupted_tasks_have_tidied_up(bench: Bench) -> None:
    interruption = Interruption(bench, StubbornTool(tidies_for=runner.PATIENCE - 0.5))
    events = interruption.run(cancel, playbook())
    last = type(events[-1].body)
    assert interruption.ended_before[CancelRequested] is False
    assert interruption.ended_before[last] is True


def test_cancelling_waits_for_no_task_for_ever(bench: Bench) -> None:
    interruption = Interruption(bench, StubbornTool(tidies_for=100))
    events = interruption.run(cancel, playbook())
    waited = interruption.moments[type(events[-1].body)] - interruption.moments[CancelRequested]
    assert waited == pytest.approx(runner.PATIENCE, abs=0.2)
    assert runner.PATIENCE == 2
    assert interruption.ended_before[type(events[-1].body)] is False


def test_cancelling_interrupts_all_iterations_of_a_loop_at_once(bench: Bench) -> None:
    interruption = Interruption(bench, StubbornTool())
    loop = "  loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel}}\n"
    events = interruption.run(cancel, playbook().replace("  tool:", f"{loop}  tool:"))
    assert kinds_of(events)[TaskStarted] == 3
    waited = interruption.moments[type(events[-1].body)] - interruption.moments[CancelRequested]
    assert waited == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize("tidies_for", [0.0, 1.0])
def test_the_outcome_of_a_cancelled_attempt_is_not_recorded(bench: Bench, tidies_for: float) -> None:
    interruption = Interruption(bench, StubbornTool(tidies_for=tidies_for))
    kinds = kinds_of(interruption.run(cancel, playbook()))
    assert (kinds[TaskStarted], kinds.get(TaskProcessed, 0)) == (1, 0)


@pytest.mark.parametrize("tidies_for", [0.0, 1.0])
def test_the_outcome_of_an_attempt_is_not_recorded_that_the_end_of_the_process_interrupts(
    bench: Bench, tidies_for: float
) -> None:
    """Whoever resumes it delivers the attempt again: nobody knows what of it was done."""

    async def leave(_: Local, __: str) -> None:
        """The engine stops while the tool runs."""

    interruption = Interruption(bench, StubbornTool(tidies_for=tidies_for))
    kinds = kinds_of(interruption.run(leave, playbook()))
    assert interruption.ended_before_exit
    assert (kinds[TaskStarted], kinds.get(TaskProcessed, 0)) == (1, 0)


def test_the_outcome_of_an_attempt_is_not_recorded_whose_step_was_out_of_time(bench: Bench) -> None:
    interruption = Interruption(bench, StubbornTool())
    # Timers of the engine know the time of day, which does not jump.
    events = interruption.run(wait_for_end, playbook(step_spec="timeout: 0.05"), asyncio.new_event_loop)
    (failure,) = [event.body for event in events if isinstance(event.body, StepFailed)]
    assert failure.error.kind == "timeout"
    assert interruption.tool.ended.is_set()
    assert TaskProcessed not in kinds_of(events)
