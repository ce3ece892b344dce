"""Runs a program for a task: feeds it, takes what it prints, and tells how it ended."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

import msgspec

from noetl.model.json import Json
from noetl.model.outcome import Outcome, ToolError, succeeded
from noetl.model.reference import StoredReference
from noetl.ports.tool import Call, TextMask
from noetl.tools.host.bounded_text import MAX_EXCERPT, shorten_text
from noetl.tools.host.input_rules import input_text
from noetl.tools.host.tool_attempt import error_outcome
from noetl.tools.process.pipe import open_pipe_reader, write_all
from noetl.tools.process.program import Program
from noetl.tools.process.stream_capture import CapturedStream, StreamCapture

_ROOM = 64 * 1024
"""Bytes that wait in memory to be taken from a stream."""
GRACE = 0.5
"""Seconds that a program has for tidying up when it is stopped."""
_LINGER = 0.5
"""Seconds in which processes that the program left behind may say their last words."""
_DRAIN = 2.0
"""Seconds in which what they said is read, if one that left the group keeps the stream open."""
_STOP_DRAIN = 0.2
"""The same for a program that is stopped: its time is over."""


class CapturedProgram(NamedTuple):
    """The exit code of a program, or minus the signal that ended it, and what it printed."""

    code: int
    out: CapturedStream
    err: CapturedStream


async def run_captured(call: Call, start: Callable[[int], Program], grace: float) -> CapturedProgram:
    """Runs what `start` starts with a standard input, the task's `stdin`. None of it goes on afterwards.

    ToolError of kind `timeout` if it is not done in the time of the call.
    """
    async with AsyncExitStack() as stack:
        streams = StreamCapture(call, stack), StreamCapture(call, stack)
        try:
            async with asyncio.timeout(call.timeout) as bound:
                stdin, stdin_data = await _open_stdin(call, stack)
                program = start(stdin)
                try:
                    await _follow(program, stdin_data, *streams, grace)
                finally:
                    code = program.end()
                out, err = [await stream.result() for stream in streams]
        except TimeoutError:
            if not bound.expired():  # a TimeoutError of the system
                raise
            message = f"the command was not done within {call.timeout:g} s"
            raise ToolError("timeout", message, retryable=True) from None
    return CapturedProgram(code, out, err)


async def _follow(
    program: Program, stdin_data: bytes, out: StreamCapture, err: StreamCapture, grace: float
) -> None:
    """Feeds the program and takes what it prints, until it and those it leaves behind have ended."""
    async with AsyncExitStack() as open_streams:
        readers = []
        for stream in program.streams:
            reader, transport = await open_pipe_reader(stream, _ROOM)
            open_streams.callback(transport.close)
            readers.append(reader)
        taking = [
            asyncio.create_task(capture.read(reader))
            for capture, reader in zip((out, err), readers, strict=True)
        ]
        feeding = asyncio.create_task(_feed(program, stdin_data))
        try:
            await program.wait()
            await asyncio.wait(taking, timeout=_LINGER)
            # Those that it left behind hold the streams open: without this the task would wait for them.
            program.kill()
            await asyncio.wait(taking, timeout=_DRAIN)
        except asyncio.CancelledError:
            await program.stop(grace)
            await asyncio.wait(taking, timeout=_STOP_DRAIN)
            raise
        finally:
            for task in (feeding, *taking):
                task.cancel()
            await asyncio.wait((feeding, *taking))
        for task in taking:
            if not task.cancelled():
                task.result()  # raises what storing the output raised


async def _open_stdin(call: Call, stack: AsyncExitStack) -> tuple[int, bytes]:
    """What standard input is, and what is to be written to it."""
    match call.inputs.get("stdin"):
        case None:
            return subprocess.DEVNULL, b""
        case StoredReference() as reference:
            path = await stack.enter_async_context(call.objects.local(reference))
            return stack.enter_context(path.open("rb")).fileno(), b""
        case dict() | list() as value:
            return subprocess.PIPE, msgspec.json.encode(value)
        case value:
            return subprocess.PIPE, input_text(value).encode()


async def _feed(program: Program, stdin_data: bytes) -> None:
    """Writes what the program is to read; it need not read all of it."""
    if program.stdin is None:
        return
    os.set_blocking(program.stdin.fileno(), False)
    with contextlib.suppress(BrokenPipeError), program.stdin as pipe:
        await write_all(pipe.fileno(), stdin_data)


def exit_outcome(program: CapturedProgram, mask: TextMask) -> Outcome:
    """What the end of a program means for its task: an error unless the exit code is 0."""
    code, out, err = program
    result: dict[str, Json] = {"exit_code": code, "stdout": out.text, "stderr": err.text}
    for name, printed in (("stdout_ref", out), ("stderr_ref", err)):
        if printed.reference is not None:
            result[name] = printed.reference
    if code == 0:
        return succeeded(result)
    details: dict[str, Json] = {"exit_code": code}
    message, foreign = f"the command ended with exit code {code}", False
    if code < 0:
        details["signal"] = name = _signal_name(-code)
        message = f"the command was killed by {name}"
        # Nobody but the system or an operator sends these: another try may end well.
        foreign = -code in (signal.SIGKILL, signal.SIGTERM)
    failed = error_outcome(
        "process_exit", message + last_words(err.text, mask), retryable=foreign, details=details
    )
    return msgspec.structs.replace(failed, result=result)


def _signal_name(number: int) -> str:
    """Most of the real-time signals have no name of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def last_words(printed: str, mask: TextMask) -> str:
    """The last line of what was printed, to be put behind a message; nothing if there is none."""
    last_line = next((line for line in reversed(printed.splitlines()) if line.strip()), "").strip()
    return f": {shorten_text(last_line, MAX_EXCERPT, mask)}" if last_line else ""
