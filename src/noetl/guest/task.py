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

MAX_TEXT = 8_192
"""Characters of a message."""
MAX_TRACEBACK = 32_768

_compiled = lru_cache(maxsize=128)(compile_code)


def answer_request(request: CodeRequest, module: ModuleType) -> CodeAnswer:
    """Runs the code in a fresh module and gives its result or its failure; raises nothing."""
    try:
        making = ResultFileWriter(request.objects, request.max_inline)
        return CodeAnswer(result=normalise(_value(request, module), making.value), made=making.made)
    except NotJson as fault:
        text = f"the result is not JSON: {fault}"
        return CodeAnswer(
            failure=CodeFailure(kind="python", message=text, exception_type="TypeError", text=text)
        )
    except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever it is, it ends the task alone
        return CodeAnswer(failure=_code_failure(error, request))


def answer_frame(answer: CodeAnswer, request: CodeRequest) -> bytes:
    """The answer as one frame, or that it was too large."""
    frame = pack(answer)
    if answer.failure or len(frame) <= request.max_result:
        return frame
    text = f"the result has {len(frame):,} bytes, and {request.max_result:,} are allowed"
    return pack(CodeAnswer(failure=CodeFailure(kind="limit", message=text), spent=answer.spent))


def _value(request: CodeRequest, module: ModuleType) -> Any:
    code = _compiled(request.code, request.name)
    names, inputs = module.__dict__, load_input_files(request.args, request.files)
    given = {"args": dict(inputs), "input_data": dict(inputs), **inputs}
    for name, value in given.items():
        names.setdefault(name, value)  # what every module has, such as `__name__`, stays
    if request.script:
        names["__file__"] = request.script
    for lib in request.libs:
        names[lib.name] = _imported(lib)
    returned = code.run(names)
    if returned:
        return returned[0]
    # An input may have the name, too.
    if "result" in names and ("result" in code.assigned or names["result"] is not given.get("result")):
        return names["result"]
    main = names.get("main")
    return _called(main, inputs, given) if callable(main) else None


def _imported(lib: LibImport) -> Any:
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


def _called(main: Any, inputs: dict[str, Any], given: dict[str, Any]) -> Any:
    from inspect import isawaitable, signature  # noqa: PLC0415  # code without `main` starts without it

    by_place: list[Any] = []
    by_name: dict[str, Any] = {}
    parameters = list(signature(main).parameters.values())
    if [one.name for one in parameters] == ["input"]:
        by_place.append(dict(inputs))
    else:
        for one in parameters:
            if one.kind is one.VAR_KEYWORD:
                by_name = {**inputs, **by_name}
            elif one.kind is one.POSITIONAL_ONLY and one.name in given:
                by_place.append(given[one.name])
            elif one.kind is not one.VAR_POSITIONAL and one.name in given:
                by_name[one.name] = given[one.name]
    value = main(*by_place, **by_name)
    return _awaited(value) if isawaitable(value) else value


def _awaited(value: Any) -> Any:
    import asyncio  # noqa: PLC0415  # as above

    async def whole() -> Any:
        return await value

    return asyncio.run(whole())


def _code_failure(error: BaseException, request: CodeRequest) -> CodeFailure:
    """The failure that an exception of the code is. Its traceback begins in the code."""
    name = type(error).__name__
    text = _cut(_text(error), MAX_TEXT)
    return CodeFailure(
        kind="limit" if isinstance(error, MemoryError) else "python",
        message=f"{name}: {text}" if text else name,
        exception_type=name,
        text=text,
        traceback=_cut(_traceback(error, request), MAX_TRACEBACK),
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # users' `__str__` may raise anything
        return "(its text cannot be shown)"


def _traceback(error: BaseException, request: CodeRequest) -> str:
    lines = request.code.splitlines(keepends=True)
    linecache.cache[request.name] = (len(request.code), None, lines, request.name)  # None: not from disk
    error.__traceback__ = _own(error.__traceback__, request.name)
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001  # as above
        return "".join(traceback.format_tb(error.__traceback__))
    finally:
        linecache.cache.pop(request.name, None)


def _own(trace: TracebackType | None, name: str) -> TracebackType | None:
    """The traceback from the first frame of the code on; None if the code never ran."""
    while trace and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    return trace


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters: the beginning and the end, as UTF-8 can hold them."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
    return text.encode(errors="backslashreplace").decode()
