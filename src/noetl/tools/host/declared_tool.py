"""Runs tools that others wrote, and holds them to what a tool promises."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, structs

from noetl.dsl.document.kinds import NoInputs
from noetl.model.normalisation import NotJson, normalise
from noetl.model.outcome import ERROR_KINDS, Outcome, ToolError, succeeded
from noetl.ports.tool import Call
from noetl.tools.host.deadlines import DeadlineExceeded, Deadlines
from noetl.tools.host.input_rules import private_copy
from noetl.tools.host.task_prints import TaskPrints
from noetl.tools.host.tool_attempt import as_outcome, inputs_of

T = TypeVar("T")


class FunctionTool:
    """A function as a tool. `parameters` are its own by the names of the inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: type[Struct],
        parameters: Mapping[str, str],
        takes_call: str | None,
    ) -> None:
        self._function = function
        self._inputs = inputs
        self._parameters = parameters
        self._takes_call = takes_call
        self._deadlines = Deadlines()

    # Neither this nor `_call` is async itself: each would be one more coroutine on the way of every attempt.
    def run(self, call: Call) -> Coroutine[Any, Any, Outcome]:
        return as_outcome(self._attempt(call))

    async def close(self) -> None:
        """Nothing is held."""

    async def _attempt(self, call: Call) -> Outcome:
        arguments: dict[str, Any] = {}
        if self._takes_call:
            call = arguments[self._takes_call] = _with_copies(call)
        elif call.inputs:  # it cannot reach the rest of the call
            call = structs.replace(call, inputs=private_copy(call.inputs))
        inputs = inputs_of(call, self._inputs)
        for name, parameter in self._parameters.items():
            if name in call.inputs:  # the function has its defaults itself
                arguments[parameter] = getattr(inputs, parameter)
        with TaskPrints(call.log):
            result = await self._call(call, arguments)
        return succeeded(_as_json(result, "result"))

    def _call(self, call: Call, arguments: dict[str, Any]) -> Coroutine[Any, Any, object]:
        return _run_in_time(self._deadlines, call, self._function, **arguments)


class ThreadedTool(FunctionTool):
    """A function that is not async as a tool: it runs in a thread, and may block that.

    Nobody can stop a thread. When the attempt's time is over, or it is cancelled, the attempt ends; the
    function goes on to its end, and nobody hears what it gives.
    """

    async def _call(self, call: Call, arguments: dict[str, Any]) -> object:
        if self._takes_call:
            arguments[self._takes_call] = structs.replace(call, log=_from_thread(call.log))
        with TaskPrints(_from_thread(call.log)):
            return await _run_in_time(self._deadlines, call, _in_thread, partial(self._function, **arguments))


async def _in_thread(function: Callable[[], object]) -> object:
    """What the function gives, or raises, in a thread of its own that sees this task's context."""
    loop = asyncio.get_running_loop()
    pending: asyncio.Future[Callable[[], object]] = loop.create_future()
    context = copy_context()

    def settle(answer: Callable[[], object]) -> None:
        if not pending.done():
            pending.set_result(answer)

    def work() -> None:
        answer: Callable[[], object]
        try:
            answer = partial(_give, context.run(function))
        except BaseException as error:  # noqa: BLE001 - SystemExit, too: it ends the attempt, not a thread
            answer = partial(_raise, error)
        with suppress(RuntimeError):  # the loop may be closed by now, and nobody waits
            loop.call_soon_threadsafe(settle, answer)

    # A daemon, and none of a pool: a function that never ends must neither keep the worker from ending nor
    # take the place of another.
    Thread(target=work, name="noetl-tool", daemon=True).start()
    return (await pending)()


def _give(value: object) -> object:
    if inspect.iscoroutine(value):
        value.close()
        raise ToolError("tool", "it gave a coroutine, which nobody awaits: declare it with `async def`")
    return value


def _raise(error: BaseException) -> NoReturn:
    raise error


def _from_thread(log: Callable[[str], None]) -> Callable[[str], None]:
    """The log, for code in another thread than that of the event loop."""
    loop = asyncio.get_running_loop()

    def hand_over(text: str) -> None:
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(log, text)

    return hand_over


class ClassTool:
    """An instance of a class with `run` as a tool. Its `close` is called if it has one."""

    def __init__(self, create: Callable[[], Any], inputs: type[Struct] = NoInputs) -> None:
        self._tool = create()
        self._inputs = inputs
        self._deadlines = Deadlines()

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        if (close := getattr(self._tool, "close", None)) is not None:
            await close()

    async def _attempt(self, call: Call) -> Outcome:
        call = _with_copies(call)
        inputs_of(call, self._inputs)
        with TaskPrints(call.log):
            outcome = await _run_in_time(self._deadlines, call, self._tool.run, call)
        if not isinstance(outcome, Outcome):
            raise ToolError("tool", f"`run` gave a value of type `{type(outcome).__name__}`, not an Outcome")
        if (outcome.status == "error") != (outcome.error is not None):
            raise ToolError("tool", "`run` gave an outcome whose status and error contradict each other")
        error = outcome.error
        if error is not None:
            if error.kind not in ERROR_KINDS:
                raise ToolError("tool", f"`run` gave an error of the kind `{error.kind}`, which is none")
            error = structs.replace(error, details=_as_json(error.details, "error.details"))
        return structs.replace(
            outcome,
            result=_as_json(outcome.result, "result"),
            error=error,
            meta=_as_json(outcome.meta, "meta"),
            helpers=_as_json(outcome.helpers, "helpers"),
        )


def _with_copies(call: Call) -> Call:
    """The call with values of its own, which the tool may change."""
    return structs.replace(
        call,
        inputs=private_copy(call.inputs),
        args=private_copy(call.args),
        spec=private_copy(call.spec),
        prev=private_copy(call.prev),
    )


async def _run_in_time(
    deadlines: Deadlines, call: Call, work: Callable[..., Awaitable[T]], /, *args: Any, **named: Any
) -> T:
    """What the code of others gives, within the time of the call, and without ending the worker."""
    try:
        return await deadlines.within(call.timeout, work(*args, **named))
    except DeadlineExceeded:
        raise ToolError("timeout", f"it was not done within {call.timeout:g} s", retryable=True) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled this task: the error came from inside, and would end the run without a word.
        raise ToolError("cancelled", "something that it awaits was cancelled") from None
    except SystemExit as error:
        raise ToolError("tool", f"it tried to end the worker: SystemExit: {error.code}") from None


def _as_json(value: object, part: str) -> Any:
    try:
        return normalise(value)
    except NotJson as error:
        raise ToolError("tool", f"its {part} is not JSON: {error}") from None
