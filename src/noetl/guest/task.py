"""One task: the code's names, its run, and the value it gives."""

import linecache
import sys
import traceback
from functools import lru_cache
from types import ModuleType, TracebackType
from typing import Any

from noetl.guest.code import compile_code
from noetl.guest.frame import CodeAnswer, CodeFailure, CodeRequest, LibImport, pack
from noetl.guest.value_files import ResultFileWriter, load_input_files
from noetl.model.normalisation import NotJson, normalise
from noetl.model.result_alias import with_other_names

MAX_TEXT = 262_144
"""Characters of a message, and of a traceback. The host cuts them shorter, for it can mask them before."""

_compiled = lru_cache(maxsize=128)(compile_code)  # a loop sends the same code for every iteration


def answer_request(request: CodeRequest, module: ModuleType) -> CodeAnswer:
    """Runs the code in a fresh module and gives its result or its failure; raises nothing."""
    try:
        writer = ResultFileWriter(request.file_prefix, request.max_inline)
        result = normalise(_run_code(request, module), writer.value)
        return CodeAnswer(result=result, result_files=writer.files)
    except NotJson as fault:
        text = f"the result is not JSON: {fault}"
        return CodeAnswer(
            failure=CodeFailure(kind="python", message=text, exception_type="TypeError", text=text)
        )
    except BaseException as error:  # noqa: BLE001 - SystemExit too: whatever it is, it ends the task alone
        return CodeAnswer(failure=_code_failure(error, request))


def answer_frame(answer: CodeAnswer, request: CodeRequest) -> bytes:
    """The answer as one frame, or that it was too large."""
    frame = pack(answer)
    if answer.failure or len(frame) <= request.max_result:
        return frame
    text = f"the result has {len(frame):,} bytes, and {request.max_result:,} are allowed"
    return pack(CodeAnswer(failure=CodeFailure(kind="limit", message=text), spent=answer.spent))


def _run_code(request: CodeRequest, module: ModuleType) -> Any:
    code = _compiled(request.code, request.name)
    names = module.__dict__
    inputs = {
        name: with_other_names(value) for name, value in load_input_files(request.args, request.files).items()
    }
    variables = {"args": dict(inputs), "input_data": dict(inputs), **inputs}
    for name, value in variables.items():
        names.setdefault(name, value)  # what every module has, such as `__name__`, stays
    if request.script:
        names["__file__"] = request.script
    for lib in request.libs:
        names[lib.name] = _import_lib(lib)
    returned = code.run(names)
    if returned:
        return returned[0]
    # An input may be called `result`, too: it is none unless the code assigned it, or put another there.
    if "result" in names and ("result" in code.assigned or names["result"] is not variables.get("result")):
        return names["result"]
    main = names.get("main")
    return _call_main(main, inputs, variables) if callable(main) else None


def _import_lib(lib: LibImport) -> Any:
    __import__(lib.module)
    module = sys.modules[lib.module]
    if lib.thing is None:
        return module
    if not hasattr(module, lib.thing):
        try:
            __import__(f"{lib.module}.{lib.thing}")
        except ModuleNotFoundError:
            raise ImportError(f"cannot import name `{lib.thing}` from `{lib.module}`") from None
    return getattr(module, lib.thing)


def _call_main(main: Any, inputs: dict[str, Any], variables: dict[str, Any]) -> Any:
    from inspect import isawaitable, signature  # noqa: PLC0415 - code without `main` starts without it

    positional: list[Any] = []
    named: dict[str, Any] = {}
    parameters = list(signature(main).parameters.values())
    if [parameter.name for parameter in parameters] == ["input"]:
        positional.append(dict(inputs))
    else:
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                named = {**inputs, **named}
            elif parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in variables:
                positional.append(variables[parameter.name])
            elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.name in variables:
                named[parameter.name] = variables[parameter.name]
    value = main(*positional, **named)
    return _run_awaitable(value) if isawaitable(value) else value


def _run_awaitable(value: Any) -> Any:
    import asyncio  # noqa: PLC0415 - likewise: importing it takes longer than most tasks

    async def await_value() -> Any:
        return await value

    return asyncio.run(await_value())


def _code_failure(error: BaseException, request: CodeRequest) -> CodeFailure:
    """The failure that an exception of the code is. Its traceback begins in the code."""
    name = type(error).__name__
    text = _shorten(_message_of(error))
    return CodeFailure(
        kind="limit" if isinstance(error, MemoryError) else "python",
        message=f"{name}: {text}" if text else name,
        exception_type=name,
        text=text,
        traceback=_shorten(_traceback_text(error, request)),
    )


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - users' `__str__` may raise anything
        return "(its text cannot be shown)"


def _traceback_text(error: BaseException, request: CodeRequest) -> str:
    # Python marks the fault one column too far right in a last line that does not end.
    lines = f"{request.code}\n".splitlines(keepends=True)
    # So that the traceback shows the lines of code that is in no file. None: it never looks at a disk.
    linecache.cache[request.name] = (len(request.code), None, lines, request.name)
    error.__traceback__ = _own_traceback(error.__traceback__, request.name)
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - formatting calls `__str__`, too
        return "".join(traceback.format_tb(error.__traceback__))
    finally:
        linecache.cache.pop(request.name, None)


def _own_traceback(trace: TracebackType | None, name: str) -> TracebackType | None:
    """The traceback from the first frame of the code on; None if the code never ran."""
    while trace and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    return trace


def _shorten(text: str) -> str:
    """As much as may go through the pipe: the beginning and the end, as UTF-8 can hold them."""
    if len(text) > MAX_TEXT:
        half = MAX_TEXT // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
    return text.encode(errors="backslashreplace").decode()
