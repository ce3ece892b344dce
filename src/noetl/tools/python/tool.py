"""Runs the kind `python`."""

import asyncio
import itertools
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec
from msgspec import structs

from noetl.guest.frame import CodeAnswer, CodeRequest, LibImport, pack
from noetl.model import Json
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.model.reference import may_hold_marker
from noetl.ports.results import ResultError
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import byte_count, input_text
from noetl.tools.host.tool_attempt import as_outcome, error_outcome, inputs_of
from noetl.tools.process.child_pool import ChildPool
from noetl.tools.process.child_process import ChildExited, ChildLimits, Isolation, LimitExceeded, WarmChild
from noetl.tools.python.inline import InlineRunner
from noetl.tools.python.kind import PythonInputs, PythonSpec, repeatable
from noetl.tools.python.large_values import mark_references, remove_result_files, store_result_files
from noetl.tools.python.script import ScriptCode, ScriptLoader
from noetl.tools.sql.statement_result import inline_limit

MAX_RESULT = 64 * 1024 * 1024
"""Bytes of one result on its way to the worker."""
MAX_OUTPUT = 16 * 1024 * 1024
"""Bytes that one task may print."""

_KNOBS = ("isolation", "memory", "env", "tables")


class PythonTool:
    """Users' Python in warm child processes of the worker's interpreter.

    `size` bounds the children of each isolation, `idle` the seconds that one waits for work, `uses`
    the tasks it may run. `env` is their environment; None is the worker's own.
    """

    def __init__(
        self,
        *,
        size: int = 32,
        idle: float = 60.0,
        uses: int = 1_000,
        max_result: int = MAX_RESULT,
        max_output: int = MAX_OUTPUT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        def pool(isolation: Isolation) -> ChildPool:
            return ChildPool(partial(WarmChild, isolation, env), size=size, idle=idle, uses=uses)

        self._pools: dict[Isolation, ChildPool] = {"pool": pool("pool"), "fork": pool("fork")}
        self._inline = InlineRunner()
        self._scripts = ScriptLoader()
        self._places: dict[str, str] = {}
        self._numbers = itertools.count()
        self._max_result = max_result
        self._max_output = max_output

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    def forget(self, execution_id: str) -> None:
        """Frees what was kept for an execution that has ended."""
        self._places.pop(execution_id, None)

    async def close(self) -> None:
        await asyncio.gather(self._scripts.close(), *(pool.close() for pool in self._pools.values()))

    async def _attempt(self, call: Call) -> Outcome:
        try:
            inputs = inputs_of(call, PythonInputs)
            spec = msgspec.convert({name: call.spec.get(name) for name in _KNOBS}, PythonSpec)
        except msgspec.ValidationError as error:
            return error_outcome("input", str(error))
        if spec.isolation == "inline" and spec.memory:
            return error_outcome("input", "`spec.memory` cannot be kept with `isolation: inline`")
        try:
            async with asyncio.timeout(call.timeout):
                source = await self._scripts.load_code(call, inputs)
                request = self._request(call, inputs, spec, source, await self._place(call))
                if not may_hold_marker(request.args):
                    return await self._done(call, spec, request)
                async with AsyncExitStack() as opened:
                    args, files = await mark_references(call, spec.tables or "rows", opened)
                    return await self._done(call, spec, structs.replace(request, args=args, files=files))
        except TimeoutError:
            return error_outcome(
                "timeout", f"the code was not done within {call.timeout:g} s", retryable=True
            )
        except ResultError as error:
            return error_outcome("not_found", f"a stored value cannot be read or written: {error}")

    async def _done(self, call: Call, spec: PythonSpec, request: CodeRequest) -> Outcome:
        """What the request comes to, its large parts stored."""
        whole = False
        try:
            if spec.isolation == "inline":
                answer: CodeAnswer | Outcome = await self._inline.run(request, call.log)
            else:
                memory = byte_count(spec.memory) if spec.memory else None
                answer = await self._in_child(call, request, spec.isolation or "pool", memory)
            if isinstance(answer, Outcome):
                return answer
            if answer.made and not answer.failure:
                answer = structs.replace(
                    answer, result=await store_result_files(call, answer, Path(request.objects))
                )
            whole = answer.failure is None
            return _outcome(answer)
        finally:
            if not whole:
                remove_result_files(Path(request.objects))

    async def _place(self, call: Call) -> str:
        """How the names of the files begin that the call may write. It takes some time to find a folder."""
        found = self._places.get(call.execution_id)
        if found is None:
            async with call.objects.draft() as draft:
                found = self._places[call.execution_id] = str(draft.path)
        return f"{found}.{next(self._numbers)}"

    def _request(
        self, call: Call, inputs: PythonInputs, spec: PythonSpec, source: ScriptCode, objects: str
    ) -> CodeRequest:
        return CodeRequest(
            code=source.code,
            name=source.name,
            args=dict(call.args),
            folder=str(call.folder),
            script=str(source.path) if source.path else None,
            libs=[
                LibImport(name, lib) if isinstance(lib, str) else LibImport(name, lib.from_, lib.import_)
                for name, lib in (inputs.libs or {}).items()
            ],
            env={name: input_text(value) for name, value in (spec.env or {}).items()},
            contained=not spec.env and repeatable(call.inputs),
            objects=objects,
            max_inline=inline_limit(call),
            max_result=self._max_result,
        )

    async def _in_child(
        self, call: Call, request: CodeRequest, isolation: Isolation, memory: int | None
    ) -> CodeAnswer | Outcome:
        pool = self._pools[isolation]
        if pool.closed:
            return error_outcome("cancelled", "the worker is ending")
        try:
            frame = pack(request)
        except (ValueError, TypeError, RecursionError) as error:
            return error_outcome("input", f"the inputs cannot be sent to a process: {error}")
        limits = ChildLimits(memory=memory, output=self._max_output, answer=self._max_result + 65_536)
        try:
            async with pool.lease() as lease:
                try:
                    answer = await lease.child.ask(frame, call.log, limits)
                except ChildExited as ended:
                    lease.spent = True
                    lease.child.kill()
                    return _ended(await lease.child.reap(), started=ended.started, closed=pool.closed)
                lease.spent = answer.spent
        except LimitExceeded as passed:
            return error_outcome("limit", str(passed))
        except OSError as error:
            return error_outcome("limit", f"no process could be started: {error}", retryable=True)
        return answer


def _outcome(answer: CodeAnswer) -> Outcome:
    failure = answer.failure
    if failure is None:
        return succeeded(answer.result)
    error = ErrorInfo(kind=failure.kind, message=failure.message)
    if not failure.exception_type:
        return failed(error)
    about: dict[str, Json] = {
        "exception_type": failure.exception_type,
        "exception": failure.exception_type,  # as 003 calls it
        "message": failure.text,
        "traceback": failure.traceback,
    }
    return failed(error, py=about)


def _ended(code: int, *, started: bool, closed: bool) -> Outcome:
    """What the end of a process before its answer means; `code` is minus the signal that killed it."""
    if closed:
        return error_outcome("cancelled", "the worker is ending")
    if not started:
        return error_outcome(
            "tool", f"the process for the code could not start (exit code {code}): see the log"
        )
    if code >= 0:
        message = f"the process ended with exit code {code} before the code was done"
        return error_outcome("process_exit", message, details={"exit_code": code})
    name = signal.Signals(-code).name
    # Nobody but the system or an operator sends these: another try may end well.
    foreign = -code in (signal.SIGKILL, signal.SIGTERM)
    message = f"the process was killed by {name}"
    return error_outcome("process_exit", message, retryable=foreign, details={"signal": name})
