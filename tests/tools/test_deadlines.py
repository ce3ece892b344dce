"""How long work may take, with one timer for all of it."""

import asyncio

import pytest

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
