"""One task: the code's names, its run, and the value it gives."""

import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

from noetl.guest.code import compile_code
from noetl.guest.frame import CodeAnswer, CodeFailure, CodeRequest, LibImport, pack
from noetl.guest.report import code_failure
from noetl.guest.value_files import ResultFileWriter, load_input_files
from noetl.model.normalisation import NotJson, normalise

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
        return CodeAnswer(failure=code_failure(error, request))


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
