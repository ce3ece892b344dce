"""`noetl.tool`: a class or a function becomes a tool kind."""

import inspect
import keyword
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pkgutil import resolve_name
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec import inspect as types

from noetl.dsl.document.kinds import Fault, Kind, NoInputs, TaskSpec
from noetl.model.errors import NoetlError
from noetl.ports.tool import Call, Tool
from noetl.tools.host.input_rules import Inputs
from noetl.tools.kind_registry import declare_kind

Declared = TypeVar("Declared", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_KIND_ATTRIBUTE = "__noetl_kind__"
_TASK_KEYS = frozenset({"kind", "desc", "input", "set", "output_select", "spec"})
"""What every task has, whatever its kind."""
_PLAIN_TYPES = (types.AnyType, types.NoneType, types.BoolType, types.IntType, types.FloatType, types.StrType)


class ToolRefused(NoetlError):
    """A class or function cannot be a tool; the message says what to change."""


def tool(
    name: str,
    *,
    effect: Literal["pure", "write"] = "write",
    summary: str = "",
    result: str = "",
    example: str = "",
    spec: type[TaskSpec] = TaskSpec,
    check: Callable[[Inputs, Inputs], Iterable[Fault]] | None = None,
) -> Callable[[Declared], Declared]:
    """Makes a class or a function the tool kind `name` of this process.

    A function that is no `async def` runs in a thread. The inputs are the function's parameters, or the
    Struct `inputs` of the class. `effect` is `pure` if running it twice does no harm and nothing outside
    notices. `result` says what it gives, `example` is a task in YAML. Raises ToolRefused, KindTaken.
    """
    if not _NAME.fullmatch(str(name)):  # without parentheses it is the function itself
        raise ToolRefused('a tool needs a name: write `@noetl.tool("greet")`')

    def declare(target: Declared) -> Declared:
        kind = _kind_of(target, name)
        kind = msgspec.structs.replace(
            kind,
            effect=effect,
            summary=summary or kind.summary,
            result=result,
            example=example,
            spec=spec,
            check=check,
        )
        declare_kind(kind, f"{target.__module__}.{target.__qualname__}")
        setattr(target, _KIND_ATTRIBUTE, kind)
        return target

    return declare


def kind_from_entry_point(target: object, name: str) -> Kind | None:
    """The kind that an entry point of this name brings: itself, or a class or function, declared or not.

    None if it is nothing of that sort. Raises ToolRefused.
    """
    if isinstance(target, Kind):
        return target
    declared = vars(target).get(_KIND_ATTRIBUTE) if hasattr(target, "__dict__") else None
    if isinstance(declared, Kind):
        return declared
    return _kind_of(target, name) if inspect.isclass(target) or inspect.isfunction(target) else None


def _kind_of(target: Any, name: str) -> Kind:
    summary = (inspect.getdoc(target) or name).split("\n", 1)[0]
    threaded = not inspect.isclass(target) and not inspect.iscoroutinefunction(target)
    if inspect.isclass(target):
        inputs = _inputs_of_class(target)
        implementation: Callable[[], Any] = partial(_make_tool, "ClassTool", target, inputs)
    else:
        parameters, takes_call = _parameters(target, name)
        inputs = _inputs_of_function(target, parameters, f"The inputs of `{name}`.")
        parameter_names = {_input_name(parameter): parameter for parameter in parameters}
        class_name = "ThreadedTool" if threaded else "FunctionTool"
        implementation = partial(_make_tool, class_name, target, inputs, parameter_names, takes_call)
    for fault in _unfit_types(inputs, target.__qualname__):
        raise ToolRefused(fault)
    return Kind(name=name, summary=summary, inputs=inputs, implementation=implementation, threaded=threaded)


def _make_tool(class_name: str, *arguments: object) -> Tool:
    """What runs it. Documents are checked without that, and without all that it needs."""
    # By name: `noetl validate` declares kinds, too, and need not load what runs them.
    tool: Tool = resolve_name(f"noetl.tools.host.declared_tool:{class_name}")(*arguments)
    return tool


def _inputs_of_class(target: type) -> type[Struct]:
    run = getattr(target, "run", None)
    if not inspect.iscoroutinefunction(run):
        raise ToolRefused(f"`{target.__qualname__}` needs `async def run(self, call: Call) -> Outcome`")
    inputs = getattr(target, "inputs", None) or _type_hints(target).get("inputs", NoInputs)
    if not (inspect.isclass(inputs) and issubclass(inputs, Struct)):
        raise ToolRefused(f"`{target.__qualname__}.inputs` must be a msgspec Struct")
    return inputs


def _parameters(target: Any, name: str) -> tuple[dict[str, inspect.Parameter], str | None]:
    """The parameters that are inputs, and the one that takes the call, if there is one."""
    if not inspect.isfunction(target):
        raise ToolRefused(f"the tool `{name}` must be a class or a function")
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ToolRefused(f"the tool `{name}` yields values: it must return one, for example a list")
    inputs, takes_call = {}, None
    hints = _type_hints(target)
    for parameter in inspect.signature(target).parameters.values():
        label = f"`{parameter.name}` of `{target.__qualname__}`"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolRefused(f"{label} cannot be given by name, as inputs are")
        if _input_name(parameter.name) in _TASK_KEYS:
            raise ToolRefused(f"{label} is a key that every task has: choose another name")
        if hints.get(parameter.name) is Call:
            takes_call = parameter.name
        else:
            inputs[parameter.name] = parameter
    return inputs, takes_call


def _inputs_of_function(target: Any, parameters: dict[str, inspect.Parameter], doc: str) -> type[Struct]:
    hints = _type_hints(target)
    fields: list[tuple[str, Any, Any]] = []
    for name, parameter in parameters.items():
        declared = parameter.default
        default: Any = msgspec.NODEFAULT if declared is parameter.empty else declared
        if default is not msgspec.NODEFAULT and not isinstance(default, str | int | float | None):
            # msgspec refuses defaults that could be changed, as it would share them.
            factory = partial(_constant, default)
            field = msgspec.field(default_factory=factory, name=_input_name(name))
        else:
            field = msgspec.field(default=default, name=_input_name(name))
        fields.append((name, hints.get(name, Any), field))
    title = "".join(part.title() for part in re.split(r"\W|_", target.__name__))
    try:
        return msgspec.defstruct(
            f"{title}Inputs",
            fields,
            module=target.__module__,
            namespace={"__doc__": doc},
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=True,
        )
    except (TypeError, ValueError) as error:
        raise ToolRefused(f"the parameters of `{target.__qualname__}` cannot be inputs: {error}") from None


def _constant(value: Any) -> Any:
    return value


def _input_name(parameter: str) -> str:
    """What a document calls the parameter: `from_` is `from`, which Python has no room for."""
    bare = parameter.removesuffix("_")
    return bare if keyword.iskeyword(bare) else parameter


def _type_hints(target: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolRefused(f"the annotations of `{target.__qualname__}` cannot be read: {error}") from None


def _unfit_types(inputs: type[Struct], label: str) -> Iterator[str]:
    """What documents cannot say, of all the types in the model."""
    try:
        info = types.type_info(inputs)
    except TypeError as error:
        yield f"the inputs of `{label}` are of no type that documents have: {error}"
        return
    waiting: list[tuple[types.Type, str]] = [(info, "")]
    seen: set[type] = set()
    while waiting:
        type_, name = waiting.pop()
        match type_:
            case types.Metadata():
                waiting.append((type_.type, name))
            case types.UnionType():
                waiting += [(option, name) for option in type_.types]
            case types.ListType():
                waiting.append((type_.item_type, name))
            case types.DictType():
                waiting.append((type_.value_type, name))
            case types.StructType():
                if type_.cls not in seen:
                    seen.add(type_.cls)
                    waiting += [(field.type, name or field.encode_name) for field in type_.fields]
            case types.LiteralType():
                pass
            case _ if not isinstance(type_, _PLAIN_TYPES):
                yield (
                    f"the input `{name}` of `{label}` has a type that documents do not: take text, numbers, "
                    "booleans, lists, mappings or Structs of these, and convert them"
                )
