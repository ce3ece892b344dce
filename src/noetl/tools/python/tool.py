"""Runs the kind `python`."""

import asyncio
from collections.abc import Mapping
from functools import partial

import msgspec

from noetl.guest.frame import CodeAnswer, CodeRequest, LibImport
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.ports.results import ResultError
from noetl.ports.tool import Call, TextMask
from noetl.tools.host.bounded_text import MAX_MESSAGE, shorten_middle
from noetl.tools.host.deadlines import DeadlineExceeded, Deadlines
from noetl.tools.host.input_rules import byte_count, input_text
from noetl.tools.host.tool_attempt import as_outcome, error_outcome, inputs_of
from noetl.tools.process.code_runner import MAX_OUTPUT, MAX_RESULT, CodeRunner
from noetl.tools.process.file_exchange import run_with_files
from noetl.tools.python.inline import InlineRunner
from noetl.tools.python.kind import PythonInputs, PythonSpec, repeatable
from noetl.tools.python.script import ScriptCode, ScriptLoader

MAX_TRACEBACK = 32_768
"""Characters of a traceback."""

_KNOBS = tuple(PythonSpec.__annotations__)
"""What is its own in `spec`: the rest is checked and used by the worker."""


class PythonTool:
    """Users' Python in warm child processes of the worker's interpreter, as `CodeRunner` has them."""

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
        self._children = CodeRunner(
            size=size, idle=idle, uses=uses, max_result=max_result, max_output=max_output, env=env
        )
        self._inline = InlineRunner()
        self._scripts = ScriptLoader()
        self._deadlines = Deadlines()

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    def forget(self, execution_id: str) -> None:
        """Frees what was kept for an execution that has ended."""
        self._children.forget(execution_id)

    async def close(self) -> None:
        await asyncio.gather(self._scripts.close(), self._children.close())

    async def _attempt(self, call: Call) -> Outcome:
        try:
            inputs = inputs_of(call, PythonInputs)
            spec = msgspec.convert({name: call.spec.get(name) for name in _KNOBS}, PythonSpec)
        except msgspec.ValidationError as error:
            return error_outcome("input", str(error))
        if spec.isolation == "inline" and spec.memory:
            return error_outcome("input", "`spec.memory` cannot be kept with `isolation: inline`")
        try:
            return await self._deadlines.within(call.timeout, self._run_code(call, inputs, spec))
        except DeadlineExceeded:
            return error_outcome(
                "timeout", f"the code was not done within {call.timeout:g} s", retryable=True
            )
        except ResultError as error:
            return error_outcome("not_found", f"a stored value cannot be read or written: {error}")

    async def _run_code(self, call: Call, inputs: PythonInputs, spec: PythonSpec) -> Outcome:
        source = await self._scripts.load_code(call, inputs)
        request = await self._request(call, inputs, spec, source)
        return _outcome(await self._answer(call, spec, request), call.mask)

    async def _request(
        self, call: Call, inputs: PythonInputs, spec: PythonSpec, source: ScriptCode
    ) -> CodeRequest:
        return await self._children.request(
            call,
            source.code,
            dict(call.args),
            name=source.name,
            script=str(source.path) if source.path else None,
            libs=[
                LibImport(name, lib) if isinstance(lib, str) else LibImport(name, lib.from_, lib.import_)
                for name, lib in (inputs.libs or {}).items()
            ],
            env={name: input_text(value) for name, value in (spec.env or {}).items()},
            side_effect_free=not spec.env and repeatable(call.inputs),
        )

    async def _answer(self, call: Call, spec: PythonSpec, request: CodeRequest) -> CodeAnswer:
        tables = spec.tables or "rows"
        if spec.isolation == "inline":
            return await run_with_files(call, request, tables, partial(self._inline.run, call=call))
        memory = byte_count(spec.memory) if spec.memory else None
        isolation = spec.isolation or "pool"
        return await self._children.run(call, request, tables=tables, isolation=isolation, memory=memory)


def _outcome(answer: CodeAnswer, mask: TextMask) -> Outcome:
    failure = answer.failure
    if failure is None:
        return succeeded(answer.result)
    error = ErrorInfo(kind=failure.kind, message=shorten_middle(failure.message, MAX_MESSAGE, mask))
    if not failure.exception_type:
        return failed(error)
    py: dict[str, Json] = {
        "exception_type": failure.exception_type,
        "exception": failure.exception_type,  # as 003 calls it
        "message": shorten_middle(failure.text, MAX_MESSAGE, mask),
        "traceback": shorten_middle(failure.traceback, MAX_TRACEBACK, mask),
    }
    return failed(error, py=py)
