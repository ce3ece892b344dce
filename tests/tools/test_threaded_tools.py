"""Functions that are not async as tools: they run in threads."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

import noetl
from noetl.loader import installed_kinds
from noetl.ports.tool import Call
from noetl.tools.host.task_prints import capture_prints
from noetl.tools.host.worker_tools import Tools
from tests.tools.declared_calls import error_of, kind_named, outcome_of, run
from tests.tools.python_calls import call


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """What functions wait for that would never end."""
    event = threading.Event()
    yield event
    event.set()


def test_a_function_need_not_be_async() -> None:
    @noetl.tool("double")
    def double(number: int, *, times: int = 1) -> dict[str, int]:
        return {"number": number * 2 * times}

    assert outcome_of("double", number=3, times=2).result == {"number": 12}
    assert error_of("double", number="three").kind == "input"


def test_it_does_not_block_the_event_loop(released: threading.Event) -> None:
    @noetl.tool("patient")
    def patient() -> bool:
        return released.wait(60)

    async def release_meanwhile() -> Any:
        tool = Tools(installed_kinds()).get("patient")
        assert tool is not None
        task = asyncio.create_task(tool.run(call()))
        await asyncio.sleep(0)  # it has begun
        asyncio.get_running_loop().call_soon(released.set)
        return (await task).result

    assert asyncio.run(release_meanwhile()) is True


def test_also_a_pure_one_runs_in_a_thread() -> None:
    @noetl.tool("where", effect="pure")
    def where() -> str:
        return threading.current_thread().name

    assert kind_named("where").effect == "pure"
    text = (
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: it, path: test/it}\n"
        "workflow: [{step: start, tool: {kind: where}}]\n"
    )
    assert noetl.run(text, store="sqlite:///:memory:").result == "noetl-tool"
    tools = Tools(installed_kinds())
    assert (tools.immediate("where"), tools.repeatable("where", {})) == (False, True)


def test_when_its_time_is_over_the_attempt_ends_though_nobody_can_stop_it(released: threading.Event) -> None:
    begun = threading.Event()

    @noetl.tool("endless")
    def endless() -> None:
        begun.set()
        released.wait()

    (outcome,) = run("endless", msgspec.structs.replace(call(), timeout=0.05))
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("timeout", True)
    assert begun.is_set()


def test_when_it_is_cancelled_the_attempt_ends_at_once(released: threading.Event) -> None:
    begun = threading.Event()

    @noetl.tool("endless")
    def endless() -> None:
        begun.set()
        released.wait()

    async def cancel() -> bool:
        tool = Tools(installed_kinds()).get("endless")
        assert tool is not None
        task = asyncio.create_task(tool.run(call()))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(cancel())


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "it tried to end the worker: SystemExit: 3"),
        (noetl.ToolError("limit", "too much"), "too much"),
    ],
    ids=repr,
)
def test_what_it_raises_is_the_error_of_its_task(problem: BaseException, message: str) -> None:
    @noetl.tool("broken")
    def broken() -> None:
        raise problem

    assert error_of("broken").message == message


def test_its_traceback_begins_in_it() -> None:
    @noetl.tool("broken")
    def broken() -> None:
        raise KeyError("k")

    frames = [line for line in error_of("broken").details["traceback"].splitlines() if "File " in line]
    assert len(frames) == 1
    assert frames[0].endswith("in broken")


def test_an_async_function_in_disguise_is_named() -> None:
    async def hidden() -> int:
        return 1

    @noetl.tool("disguised")
    def disguised() -> Any:
        return hidden()

    assert (
        "it gave a coroutine, which nobody awaits: declare it with `async def`"
        in error_of("disguised").message
    )


def test_it_can_write_to_the_log_of_its_task() -> None:
    lines: list[tuple[str, str]] = []

    @noetl.tool("talks")
    def talks(attempt: Call) -> None:
        attempt.log("a line")
        sys.stdout.write("another")

    def log(text: str) -> None:
        lines.append((text, threading.current_thread().name))

    with capture_prints():
        run("talks", msgspec.structs.replace(call(), log=log))
    assert lines == [("a line", "MainThread"), ("another", "MainThread")]


@pytest.mark.parametrize("threaded", [True, False])
def test_what_tools_print_goes_to_their_own_logs(threaded: bool, capsys: pytest.CaptureFixture[str]) -> None:
    meeting = threading.Barrier(2)

    if threaded:

        @noetl.tool("talks")
        def talks(name: str) -> None:
            sys.stdout.write("I am\n")
            meeting.wait()  # both print at the same time
            sys.stdout.write(f"{name} and ")
            sys.stdout.write("no more")
    else:

        @noetl.tool("talks")
        async def talks_too(name: str) -> None:
            sys.stdout.write("I am\n")
            await asyncio.sleep(0)
            sys.stdout.write(f"{name} and ")
            sys.stdout.write("no more")

    logs: dict[str, list[str]] = {"Ada": [], "Bob": []}

    async def talk() -> None:
        tool = Tools(installed_kinds()).get("talks")
        assert tool is not None
        calls = [msgspec.structs.replace(call(name=name), log=log.append) for name, log in logs.items()]
        await asyncio.gather(*(tool.run(each) for each in calls))
        sys.stdout.write("and the program itself\n")

    with capture_prints():
        asyncio.run(talk())
    assert logs == {name: ["I am", f"{name} and no more"] for name in logs}
    assert capsys.readouterr().out == "and the program itself\n"


def test_after_a_tool_prints_are_those_of_the_program_again(capsys: pytest.CaptureFixture[str]) -> None:
    @noetl.tool("talks")
    async def talks() -> None:
        sys.stdout.write("in the tool\n")

    async def talk() -> list[str]:
        tool, log = Tools(installed_kinds()).get("talks"), list[str]()
        assert tool is not None
        await tool.run(msgspec.structs.replace(call(), log=log.append))
        sys.stdout.write("after it\n")
        return log

    with capture_prints():
        assert asyncio.run(talk()) == ["in the tool"]
    assert capsys.readouterr().out == "after it\n"


def test_the_end_of_a_long_traceback_is_kept() -> None:
    @noetl.tool("verbose")
    def verbose() -> None:
        raise ValueError("x" * 10_000 + "the end")

    text = (
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: it, path: test/it}\n"
        "workflow: [{step: start, tool: {kind: verbose}}]\n"
    )
    error = noetl.run(text, store="sqlite:///:memory:").error
    assert error is not None
    assert len(error["traceback"]) == 4_001
    assert error["traceback"].endswith("xthe end\n")
