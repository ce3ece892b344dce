"""The child process: takes requests one after the other until its standard input ends."""

import contextlib
import faulthandler
import fcntl
import gc
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator
from contextvars import Context
from threading import Thread
from types import ModuleType
from typing import Any

from msgspec import structs

from noetl.guest.frame import READY, SPENT, CodeAnswer, CodeFailure, CodeRequest, FrameReader, unpack
from noetl.guest.process_state import MODULE, ProcessState
from noetl.guest.task import answer_frame, answer_request

_CHUNK = 1 << 20
_PRIVATE = 100
"""Our descriptors are from here on, out of the way of those that users' code opens."""


def serve(isolation: str, notice: int) -> None:
    """Answers requests in this process, or with `fork` each in a fresh copy of it.

    `notice` is the descriptor of the pipe whose end is the worker's.
    """
    requests, answers = _pipes()
    _die_with_worker(fcntl.fcntl(notice, fcntl.F_DUPFD_CLOEXEC, _PRIVATE))
    os.close(notice)
    _prepare()
    runner = TaskRunner(answers)
    _send(answers, READY)
    for frame in _receive(requests):
        request = unpack(frame, CodeRequest)
        if isolation == "fork":
            runner.fork(request)
        else:
            runner.run(request)
            # After the answer, while the worker is busy with it: what this task made is freed, and what
            # stays is not looked at again.
            gc.collect()
            gc.freeze()


def _pipes() -> tuple[int, int]:
    """The ends that requests and answers go through; standard output and error become the log."""
    requests = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _PRIVATE)
    answers = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _PRIVATE)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)  # a `print` must not fall between the frames
    # Lines, so that the log has them while the code runs; what UTF-8 cannot hold must not fail a `print`.
    style: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace", "line_buffering": True}
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(**style)  # type: ignore[union-attr]  # nobody has replaced them yet
    return requests, answers


def _die_with_worker(pipe: int) -> None:
    """From now on the whole process group is killed when the worker is gone, even in the middle of code.

    On Linux the kernel does it, so code that never gives up the interpreter cannot delay it, and no thread
    makes `fork` unsafe. Elsewhere a thread does.

    The pipe is one of its own: the kernel tells of what is written, too, and may do so after it was read.
    """
    if sys.platform != "linux":
        Thread(target=_kill_group_at_end, args=(pipe,), daemon=True).start()
        return
    fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if _is_closed(pipe, 0):  # before it was watched
        os.killpg(0, signal.SIGKILL)


def _kill_group_at_end(pipe: int) -> None:
    if _is_closed(pipe, None):
        os.killpg(0, signal.SIGKILL)


def _is_closed(pipe: int, milliseconds: int | None) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)  # asks for the end alone
    return bool(poll.poll(milliseconds))


def _prepare() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()  # a crash tells the line in the log
    # Where memory runs out, the system ends users' code and not the worker.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    gc.freeze()


class TaskRunner:
    """One process that runs tasks."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        # A copy writes to it when its answer is sent. Its exit code would not tell: code may exit with 0.
        self._done_reader, self._done_writer = os.pipe()
        os.set_blocking(self._done_reader, False)
        self._state = ProcessState()

    def run(self, request: CodeRequest) -> None:
        """Runs the task and sends its answer. Returns only if the process is fit for another."""
        process = os.getpid()
        module = ModuleType(MODULE)
        put_back, put_all_back = self._state.guard  # before the code can put others there
        try:
            self._state.enter(request, module)
        except OSError as error:
            answer = CodeAnswer(
                failure=CodeFailure(kind="not_found", message=f"cannot work in its folder: {error}")
            )
        else:
            # A context of its own: that of `decimal` is one of its variables.
            answer = Context().run(answer_request, request, module)
        intact = request.side_effect_free or put_back()
        if os.getpid() != process:
            os._exit(0)  # a copy that the code forked and let come back here
        _flush()
        del module  # what the code made is freed here, and not while the next task runs
        fit = self._state.is_at_rest(request) and intact
        frame = answer_frame(structs.replace(answer, spent=not fit), request)
        _send(self._answers, frame)
        # After the answer, while the worker is busy with it: to look at everything takes longer than most
        # tasks. What comes meanwhile is not read before this is over, and by a spent process never.
        if fit and (request.side_effect_free or put_all_back()) and self._state.restore(request):
            return
        if fit:
            _send(self._answers, SPENT)
        while True:
            signal.pause()  # until the worker kills it, with all that the code left behind

    def fork(self, request: CodeRequest) -> None:
        """Runs the task in a copy of this process. If the copy dies unheard, this process dies alike."""
        copy = os.fork()
        if copy == 0:
            self.run(request)
            os.write(self._done_writer, b".")
            os._exit(0)
        _, status = os.waitpid(copy, 0)
        with contextlib.suppress(BlockingIOError):
            os.read(self._done_reader, 1)
            return
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            with contextlib.suppress(OSError):  # some signals have no other way
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # the code may have put anything there
            stream.flush()  # type: ignore[union-attr]  # None is one of them


def _send(pipe: int, frame: bytes) -> None:
    remaining = memoryview(frame)
    while remaining:
        remaining = remaining[os.write(pipe, remaining) :]


def _receive(pipe: int) -> Iterator[bytearray]:
    """The frames that come, without their lengths. One call of the system gets most of them whole."""
    frames = FrameReader()
    while part := os.read(pipe, _CHUNK):
        yield from frames.feed(part)
