"""`noetl.tool`: a class or an async function becomes a tool kind."""

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
from noetl.model import NoetlError
from noetl.ports.tool import Call, Tool
from noetl.tools.host.input_rules import Inputs
from noetl.tools.kind_registry import declare_kind

Made = TypeVar("Made", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_MARK = "__noetl_kind__"
_TAKEN = frozenset({"kind", "desc", "input", "set", "output_select", "spec"})
"""What every task has, whatever its kind."""
_PLAIN = (types.AnyType, types.NoneType, types.BoolType, types.IntType, types.FloatType, types.StrType)


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
) -> Callable[[Made], Made]:
    """Makes a class or an async function the tool kind `name` of this process.

    The inputs are the function's parameters, or the Struct `inputs` of the class. `effect` is `pure` if
    running it twice does no harm and nothing outside notices. `result` says what it gives, `example` is a
    task in YAML. Raises ToolRefused, KindTaken.
    """
    if not _NAME.fullmatch(str(name)):  # without parentheses it is the function itself
        raise ToolRefused('a tool needs a name: write `@noetl.tool("greet")`')

    def declare(made: Made) -> Made:
        kind = _kind(made, name)
        kind = msgspec.structs.replace(
            kind,
            effect=effect,
            summary=summary or kind.summary,
            result=result,
            example=example,
            spec=spec,
            check=check,
        )
        declare_kind(kind, f"{made.__module__}.{made.__qualname__}")
        setattr(made, _MARK, kind)
        return made

    return declare


def kind_from_entry_point(made: object, name: str) -> Kind | None:
    """The kind that an entry point of this name brings: itself, or a class or function, declared or not.

    None if it is nothing of that sort. Raises ToolRefused.
    """
    if isinstance(made, Kind):
        return made
    declared = vars(made).get(_MARK) if hasattr(made, "__dict__") else None
    if isinstance(declared, Kind):
        return declared
    return _kind(made, name) if inspect.isclass(made) or inspect.isfunction(made) else None


def _kind(made: Any, name: str) -> Kind:
    summary = (inspect.getdoc(made) or name).split("\n", 1)[0]
    if inspect.isclass(made):
        inputs = _inputs_of_class(made)
        implementation: Callable[[], Any] = partial(_running, "ClassTool", made, inputs)
    else:
        parameters, takes_call = _parameters(made, name)
        inputs = _inputs_of_function(made, parameters, f"The inputs of `{name}`.")
        own = {_input(one): one for one in parameters}
        implementation = partial(_running, "FunctionTool", made, inputs, own, takes_call)
    for fault in _unfit(inputs, made.__qualname__):
        raise ToolRefused(fault)
    return Kind(name=name, summary=summary, inputs=inputs, implementation=implementation)


def _running(what: str, *about: object) -> Tool:
    """What runs it. Documents are checked without that, and without all that it needs."""
    tool: Tool = resolve_name(f"noetl.tools.host.declared_tool:{what}")(*about)
    return tool


def _inputs_of_class(made: type) -> type[Struct]:
    run = getattr(made, "run", None)
    if not inspect.iscoroutinefunction(run):
        raise ToolRefused(f"`{made.__qualname__}` needs `async def run(self, call: Call) -> Outcome`")
    inputs = getattr(made, "inputs", None) or _hints(made).get("inputs", NoInputs)
    if not (inspect.isclass(inputs) and issubclass(inputs, Struct)):
        raise ToolRefused(f"`{made.__qualname__}.inputs` must be a msgspec Struct")
    return inputs


def _parameters(made: Any, name: str) -> tuple[dict[str, inspect.Parameter], str | None]:
    """The parameters that are inputs, and the one that takes the call, if there is one."""
    if not inspect.iscoroutinefunction(made):
        raise ToolRefused(f"the tool `{name}` must be a class or an `async def`")
    found, takes_call = {}, None
    hints = _hints(made)
    for parameter in inspect.signature(made).parameters.values():
        where = f"`{parameter.name}` of `{made.__qualname__}`"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolRefused(f"{where} cannot be given by name, as inputs are")
        if _input(parameter.name) in _TAKEN:
            raise ToolRefused(f"{where} is a key that every task has: choose another name")
        if hints.get(parameter.name) is Call:
            takes_call = parameter.name
        else:
            found[parameter.name] = parameter
    return found, takes_call


def _inputs_of_function(made: Any, parameters: dict[str, inspect.Parameter], doc: str) -> type[Struct]:
    hints = _hints(made)
    fields: list[tuple[str, Any, Any]] = []
    for name, parameter in parameters.items():
        given = parameter.default
        default: Any = msgspec.NODEFAULT if given is parameter.empty else given
        if default is not msgspec.NODEFAULT and not isinstance(default, str | int | float | None):
            factory = partial(_same, default)
            field = msgspec.field(default_factory=factory, name=_input(name))
        else:
            field = msgspec.field(default=default, name=_input(name))
        fields.append((name, hints.get(name, Any), field))
    title = "".join(part.title() for part in re.split(r"\W|_", made.__name__))
    try:
        return msgspec.defstruct(
            f"{title}Inputs",
            fields,
            module=made.__module__,
            namespace={"__doc__": doc},
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=True,
        )
    except (TypeError, ValueError) as error:
        raise ToolRefused(f"the parameters of `{made.__qualname__}` cannot be inputs: {error}") from None


def _same(value: Any) -> Any:
    return value


def _input(parameter: str) -> str:
    """What a document calls the parameter: `from_` is `from`, which Python has no room for."""
    bare = parameter.removesuffix("_")
    return bare if keyword.iskeyword(bare) else parameter


def _hints(made: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(made, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolRefused(f"the annotations of `{made.__qualname__}` cannot be read: {error}") from None


def _unfit(inputs: type[Struct], where: str) -> Iterator[str]:
    """What documents cannot say, of all the types in the model."""
    try:
        info = types.type_info(inputs)
    except TypeError as error:
        yield f"the inputs of `{where}` are of no type that documents have: {error}"
        return
    waiting: list[tuple[types.Type, str]] = [(info, "")]
    known: set[type] = set()
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
                if type_.cls not in known:
                    known.add(type_.cls)
                    waiting += [(field.type, name or field.encode_name) for field in type_.fields]
            case types.LiteralType():
                pass
            case _ if not isinstance(type_, _PLAIN):
                yield (
                    f"the input `{name}` of `{where}` has a type that documents do not: take text, numbers, "
                    "booleans, lists, mappings or Structs of these, and convert them"
                )
