"""A warm child process, seen from the worker."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import MsgspecError, Struct

from noetl.guest.frame import SPENT_BODY, CodeAnswer, FrameReader, unpack
from noetl.tools.process.log_lines import LogLines
from noetl.tools.process.pipe import write_all
from noetl.tools.process.process_tree import HAS_PROC, exit_handle, kill_tree, resident_bytes

Isolation: TypeAlias = Literal["pool", "fork"]

_ROOT = str(Path(__file__).parents[3])
"""Where the package lies: a child need not find it by itself, as its environment may be another."""
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from noetl.guest.request_loop import serve; serve(sys.argv[2], int(sys.argv[3]))"
)
_CHUNK = 65_536
_WEIGH_SECONDS = 0.02 if HAS_PROC else 0.5
"""Seconds between two looks at a child's memory."""


class ChildExited(Exception):
    """The child is gone, or of no more use, before it answered. `started`: it was able to run code."""

    def __init__(self, *, started: bool) -> None:
        super().__init__("the process ended")
        self.started = started


class ChildSpent(Exception):
    """The task before left the child unfit for another, and it did not begin this one."""


class LimitExceeded(Exception):
    """The code used more than it may; the text says what of."""


class ChildLimits(Struct, frozen=True, kw_only=True):
    """What one task may use: bytes of memory and of output, and of the frame with its answer."""

    memory: int | None
    output: int
    answer: int


class WarmChild:
    """One process that runs tasks, one at a time. Belongs to the running event loop."""

    def __init__(self, isolation: Isolation, env: Mapping[str, str] | None) -> None:
        notice, self._life = os.pipe()  # the end of `_life` is the end of the child
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                # -P: no module of the working directory is taken for one of the library.
                [sys.executable, "-P", "-c", _START, _ROOT, isolation, str(notice)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(notice,),
                env=env,
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._life)
            raise
        finally:
            os.close(notice)
        self.pid = self._process.pid
        self.task_count = 0
        """Tasks so far."""
        self.idle_since = 0.0
        self.spent = False
        """Whether it said after an answer that it is not fit for another task: it is then killed."""
        self._loop = asyncio.get_running_loop()
        self._isolation = isolation
        self._started = False
        self._frames = FrameReader()
        self._lines: LogLines | None = None
        self._limits: ChildLimits | None = None
        self._answer: asyncio.Future[CodeAnswer] | None = None
        self._exited = asyncio.Event()
        self._forgotten = False
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._requests, self._answers, self._log = (pipe.fileno() for pipe in pipes if pipe)
        for pipe in (self._requests, self._answers, self._log):
            os.set_blocking(pipe, False)
        self._loop.add_reader(self._answers, self._on_answer)
        self._loop.add_reader(self._log, self._on_output)
        self._exit_handle = exit_handle(self.pid)
        if self._exit_handle is not None:
            # The end of the pipes is not enough: a process that the code forked may hold them open.
            self._loop.add_reader(self._exit_handle, self._on_end)

    @property
    def alive(self) -> bool:
        return not self._exited.is_set()

    async def ask(self, frame: bytes, lines: LogLines, limits: ChildLimits) -> CodeAnswer:
        """Sends a request and waits for its answer. ChildExited, LimitExceeded or ChildSpent if none comes.

        `lines` takes what is printed meanwhile.

        After any of them but the last, or if the waiting is cut short, the child must be killed.
        """
        self.task_count += 1
        self._lines, self._limits = lines, limits
        answer: asyncio.Future[CodeAnswer] = self._loop.create_future()
        self._answer = answer
        weighing = self._loop.create_task(self._weigh(limits.memory)) if limits.memory else None
        try:
            await write_all(self._requests, frame)
            return await answer
        except BrokenPipeError:
            raise ChildSpent if self.spent else ChildExited(started=self._started) from None
        finally:
            if weighing:
                weighing.cancel()
            if not answer.cancel() and not answer.cancelled():
                # It may have failed while the request was still being sent: asked for, so that the loop does
                # not complain of an exception that nobody has seen.
                answer.exception()
            self._drain()
            self._lines.finish()
            self._lines = self._limits = self._answer = None

    def kill(self) -> None:
        """Ends the process and all it started, at once. A second call does nothing."""
        if self._process.returncode is None:
            kill_tree(self.pid)

    async def reap(self) -> int:
        """Waits for the end of a process that was killed or ended; its exit code, or minus its signal."""
        if self._exit_handle is None:
            await asyncio.to_thread(self._process.wait)
        else:
            await self._exited.wait()
        code = self._process.wait()
        self._forget()
        return code

    async def retire(self, seconds: float) -> None:
        """Lets an idle process end by itself, and kills it if that takes longer."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(seconds):
                await self.reap()
        except TimeoutError:
            self.kill()
            await self.reap()

    async def _weigh(self, limit: int) -> None:
        """Fails the answer once the child holds that much more than at its beginning."""
        before = 0
        while True:
            held = resident_bytes(self.pid)
            if not self._started or not before:
                # A copy shares its memory with the process it was forked from, and both are counted.
                before = held * 2 if self._isolation == "fork" else held
            elif held - before > limit:
                self._fail(LimitExceeded(f"the code used more than {limit:,} bytes of memory"))
                return
            await asyncio.sleep(_WEIGH_SECONDS)

    def _on_answer(self) -> None:
        try:
            data = os.read(self._answers, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._answers)
            self._fail(ChildExited(started=self._started))
            if self._exit_handle is None:
                self._exited.set()
            return
        for body in self._frames.feed(data):
            self._take(body)
        if self._limits and self._frames.size > self._limits.answer:  # the code wrote into our pipe
            self._fail(ChildExited(started=self._started))

    def _take(self, body: bytearray) -> None:
        if not self._started and not body:  # READY
            self._started = True
            return
        if body == SPENT_BODY:
            self.spent = True
            # The answer that is waited for, if one is, is that of the next task: this comes after its own.
            self._fail(ChildSpent())
            self.kill()  # with all that the task left behind; a request under way finds its pipe broken
            return
        try:
            answer = unpack(body, CodeAnswer)
        except (MsgspecError, ValueError):  # likewise
            self._fail(ChildExited(started=self._started))
            return
        if self._answer and not self._answer.done():
            self._answer.set_result(answer)

    def _on_output(self) -> bool:
        """Takes what was printed; whether there may be more."""
        try:
            data = os.read(self._log, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._log)
        elif self._lines and self._limits:
            self._lines.feed(data)
            if self._lines.total > self._limits.output:
                self._fail(LimitExceeded(f"the code printed more than {self._limits.output:,} bytes"))
        return bool(data)

    def _drain(self) -> None:
        # Answer and output come by different pipes: what was printed before the answer may still be in its
        # own. Not to its end, for processes that the code left behind may go on printing for ever.
        for _ in range(16):
            if not self._on_output():
                break

    def _on_end(self) -> None:
        # A reader that is ready stays so for ever: without this the loop would spin.
        if self._exit_handle is not None:
            self._loop.remove_reader(self._exit_handle)
        self._on_answer()  # what it said last may not have been read yet
        self._fail(ChildExited(started=self._started))
        self._exited.set()

    def _fail(self, error: Exception) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(error)

    def _forget(self) -> None:
        """Gives up the descriptors. Once only: their numbers are soon another child's."""
        if self._forgotten:
            return
        self._forgotten = True
        os.close(self._life)
        self._loop.remove_reader(self._answers)
        self._loop.remove_reader(self._log)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()
        if self._exit_handle is not None:
            self._loop.remove_reader(self._exit_handle)
            os.close(self._exit_handle)
