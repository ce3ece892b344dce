"""Runs Python code in warm child processes, for the kinds that have some to run."""

import asyncio
import itertools
import signal
from collections.abc import Mapping
from functools import partial
from typing import Any

from noetl.guest.frame import CodeAnswer, CodeRequest, TableForm, pack
from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.host.result_limits import inline_limit
from noetl.tools.process.child_pool import ChildPool
from noetl.tools.process.child_process import (
    ChildExited,
    ChildLimits,
    ChildSpent,
    Isolation,
    LimitExceeded,
    WarmChild,
)
from noetl.tools.process.file_exchange import run_with_files
from noetl.tools.process.log_lines import LogLines

MAX_RESULT = 64 * 1024 * 1024
"""Bytes of one result on its way to the worker."""
MAX_OUTPUT = 16 * 1024 * 1024
"""Bytes that one task may print."""

_ENVELOPE = 4 * 1024 * 1024
"""Bytes of an answer beside its result: the texts of a failure are cut only when they are here."""


class CodeRunner:
    """Warm children of the worker's own interpreter, in a pool for each isolation.

    `size` bounds the children of a pool, `idle` the seconds that one waits for work, `uses` the tasks it
    may run. `env` is their environment; None is the worker's own.
    """

    def __init__(
        self,
        *,
        size: int,
        idle: float,
        uses: int = 1_000,
        max_result: int = MAX_RESULT,
        max_output: int = MAX_OUTPUT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        def pool(isolation: Isolation) -> ChildPool:
            return ChildPool(partial(WarmChild, isolation, env), size=size, idle=idle, uses=uses)

        self._pools: dict[Isolation, ChildPool] = {"pool": pool("pool"), "fork": pool("fork")}
        self._draft_paths: dict[str, str] = {}
        self._numbers = itertools.count()
        self._max_result = max_result
        self._max_output = max_output

    async def request(self, call: Call, code: str, args: dict[str, Any], **details: Any) -> CodeRequest:
        """The request to run this code for the call. Raises ResultError."""
        return CodeRequest(
            code=code,
            args=args,
            folder=str(call.folder),
            file_prefix=await self._file_prefix(call),
            max_inline=inline_limit(call),
            max_result=self._max_result,
            **details,
        )

    async def run(
        self,
        call: Call,
        request: CodeRequest,
        *,
        tables: TableForm = "rows",
        isolation: Isolation = "pool",
        memory: int | None = None,
    ) -> CodeAnswer:
        """What comes of the request in a child. Raises ToolError if there is no answer, and ResultError.

        `tables` is the form of stored tables among the args; `memory` bounds the bytes that the code may use.
        """
        return await run_with_files(call, request, tables, partial(self._ask_child, call, isolation, memory))

    def forget(self, execution_id: str) -> None:
        """Frees what was kept for an execution that has ended."""
        self._draft_paths.pop(execution_id, None)

    async def close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def _file_prefix(self, call: Call) -> str:
        """How the names of the files begin that the call may write.

        One draft is made for each execution and the calls are counted: to make a draft for every call, of
        which few write a file, would cost some calls of the system each.
        """
        path = self._draft_paths.get(call.execution_id)
        if path is None:
            async with call.objects.draft() as draft:
                path = self._draft_paths[call.execution_id] = str(draft.path)
        return f"{path}.{next(self._numbers)}"

    async def _ask_child(
        self, call: Call, isolation: Isolation, memory: int | None, request: CodeRequest
    ) -> CodeAnswer:
        pool = self._pools[isolation]
        if pool.closed:
            raise ToolError("cancelled", "the worker is ending")
        try:
            frame = pack(request)
        except (ValueError, TypeError, RecursionError) as error:
            raise ToolError("input", f"the inputs cannot be sent to a process: {error}") from None
        limits = ChildLimits(memory=memory, output=self._max_output, answer=self._max_result + _ENVELOPE)
        while True:
            try:
                return await self._ask_one(pool, call, frame, limits)
            except ChildSpent:
                continue  # nothing has begun: another child takes it

    async def _ask_one(self, pool: ChildPool, call: Call, frame: bytes, limits: ChildLimits) -> CodeAnswer:
        try:
            child = await pool.take()
        except OSError as error:
            raise ToolError("limit", f"no process could be started: {error}", retryable=True) from None
        reusable = False
        try:
            answer = await child.ask(frame, LogLines(call.log, call.mask), limits)
            reusable = not answer.spent
        except ChildExited as exited:
            child.kill()
            code = await child.reap()
            raise _exit_error(code, started=exited.started, closed=pool.closed) from None
        except LimitExceeded as exceeded:
            raise ToolError("limit", str(exceeded)) from None
        finally:
            pool.give_back(child, reusable=reusable)
        return answer


def _exit_error(code: int, *, started: bool, closed: bool) -> ToolError:
    """What the end of a process before its answer means; `code` is minus the signal that killed it."""
    if closed:
        return ToolError("cancelled", "the worker is ending")
    if not started:
        return ToolError("tool", f"the process for the code could not start (exit code {code}): see the log")
    if code >= 0:
        message = f"the process ended with exit code {code} before the code was done"
        return ToolError("process_exit", message, details={"exit_code": code})
    name = signal.Signals(-code).name
    # Nobody but the system or an operator sends these: another try may end well.
    foreign = -code in (signal.SIGKILL, signal.SIGTERM)
    message = f"the process was killed by {name}"
    return ToolError("process_exit", message, retryable=foreign, details={"signal": name})
