"""How long work may take, with one timer for all of it."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.tools.host.deadlines import DeadlineExceeded, Deadlines


async def for_ever() -> None:
    await asyncio.Event().wait()


async def give(value: str) -> str:
    await asyncio.sleep(0)
    return value


async def in_time(deadlines: Deadlines) -> None:
    assert await deadlines.within(60, give("done")) == "done"


def test_work_in_time_gives_what_it_gives() -> None:
    asyncio.run(in_time(Deadlines()))


def test_late_work_is_interrupted_and_its_task_goes_on() -> None:
    async def use() -> None:
        deadlines = Deadlines()
        with pytest.raises(DeadlineExceeded):
            await deadlines.within(0.01, for_ever())
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await in_time(deadlines)

    asyncio.run(use())


def test_each_has_its_own_time() -> None:
    async def use() -> list[str]:
        deadlines = Deadlines()
        ended: list[str] = []

        async def wait(name: str, seconds: float) -> None:
            with pytest.raises(DeadlineExceeded):
                await deadlines.within(seconds, for_ever())
            ended.append(name)

        # the second begins later and is due earlier; the fourth ends long before it is due
        async with asyncio.TaskGroup() as group:
            group.create_task(wait("long", 0.2))
            group.create_task(wait("short", 0.02))
            group.create_task(wait("middle", 0.1))
            group.create_task(in_time(deadlines))
        return ended

    assert asyncio.run(use()) == ["short", "middle", "long"]


def test_who_is_cancelled_is_not_late() -> None:
    async def use() -> None:
        deadlines = Deadlines()
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            await for_ever()

        task = asyncio.create_task(deadlines.within(60, work()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await in_time(deadlines)

    asyncio.run(use())


def test_who_is_late_and_cancelled_is_cancelled() -> None:
    async def use() -> None:
        deadlines = Deadlines()
        interrupted = asyncio.Event()

        async def stubborn() -> None:
            try:
                await for_ever()
            except asyncio.CancelledError:
                interrupted.set()
                await for_ever()

        task = asyncio.create_task(deadlines.within(0.01, stubborn()))
        await interrupted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(use())


def test_late_work_may_still_give_a_result() -> None:
    async def use() -> None:
        deadlines = Deadlines()

        async def tidy() -> str:
            try:
                await for_ever()
            except asyncio.CancelledError:
                return "tidied up"
            raise AssertionError

        assert await deadlines.within(0.01, tidy()) == "tidied up"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(use())


class JumpingSelector(selectors.SelectSelector):
    """Waits for nothing: the time that is to pass has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += timeout or 0.0
        return super().select(0)


class Work(NamedTuple):
    """No two of its times are the same: which of them comes first would be anybody's guess."""

    begins: int
    allowed: int
    takes: int
    cancelled_after: int | None


Bounded = Callable[[float, Awaitable[None]], Awaitable[None]]


def ends_of(works: list[Work], bounded: Bounded) -> list[tuple[str, float]]:
    """How each work ends, and when, if all of them run at the same time."""
    selector = JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]  # the clock of the test

    async def end_of(work: Work) -> tuple[str, float]:
        await asyncio.sleep(work.begins)
        task = asyncio.current_task()
        assert task is not None
        if work.cancelled_after is not None:
            loop.call_later(work.cancelled_after, task.cancel)
        try:
            await bounded(work.allowed, asyncio.sleep(work.takes))
            return "done", loop.time()
        except (DeadlineExceeded, TimeoutError):
            return "late", loop.time()
        except asyncio.CancelledError:
            return "cancelled", loop.time()

    async def all_ends() -> list[tuple[str, float]]:
        return await asyncio.gather(*map(end_of, works))

    try:
        return loop.run_until_complete(all_ends())
    finally:
        loop.close()


def times(remainder: int) -> st.SearchStrategy[int]:
    return st.integers(0, 5).map(lambda number: 8 * number + remainder)


@given(st.lists(st.builds(Work, times(0), times(2), times(4), st.none() | times(6)), max_size=6))
def test_work_ends_as_if_each_had_a_timer_of_its_own(works: list[Work]) -> None:
    async def with_own_timer(seconds: float, work: Awaitable[None]) -> None:
        async with asyncio.timeout(seconds):
            await work

    assert ends_of(works, Deadlines().within) == ends_of(works, with_own_timer)
