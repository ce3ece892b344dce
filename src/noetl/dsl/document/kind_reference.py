"""What there is to say about a tool kind, taken from the types that check its tasks."""

import json
from collections.abc import Collection, Iterator, Mapping

import msgspec
from msgspec import Struct, inspect

from noetl.dsl.document.kinds import Kind, Spelling, TaskSpec
from noetl.dsl.document.shape_messages import describe_type
from noetl.model.json import Json

_COMMON = frozenset(TaskSpec.__struct_encode_fields__)


class KindField(Struct, frozen=True, kw_only=True):
    """An input or a knob. `default` is JSON, empty if there is none; a key inside of it is `name.key`."""

    name: str
    type: str
    required: bool
    default: str
    description: str
    spellings: tuple[str, ...] = ()


class KindReference(Struct, frozen=True, kw_only=True):
    """Everything about a kind that its types tell. `knobs` are those that not every kind has."""

    inputs: tuple[KindField, ...]
    knobs: tuple[KindField, ...]


def reference_of(kind: Kind) -> KindReference:
    """The inputs and knobs of a kind, in the order in which they are declared."""
    spellings = alternative_spellings(kind.spellings)
    own_knobs = {name for name in kind.spec.__struct_encode_fields__ if name not in _COMMON}
    own_knobs |= {name for name in _COMMON if _type_of(kind.spec, name) != _type_of(TaskSpec, name)}
    return KindReference(
        inputs=tuple(struct_fields(kind.inputs, spellings=spellings)),
        knobs=tuple(
            entry
            for entry in struct_fields(kind.spec, defaults=kind.defaults)
            if entry.name.partition(".")[0] in own_knobs
        ),
    )


def common_knobs() -> tuple[KindField, ...]:
    """The knobs that every kind has."""
    return tuple(struct_fields(TaskSpec))


def alternative_spellings(spellings: Mapping[str, Spelling]) -> dict[str, tuple[str, ...]]:
    """By the name of an input, how else it may be spelt."""
    spellings_by_name: dict[str, tuple[str, ...]] = {}
    for spelling, target in spellings.items():
        names = {target} if isinstance(target, str) else {target({}), target("")}
        for name in names:
            spellings_by_name[name] = (*spellings_by_name.get(name, ()), spelling)
    return spellings_by_name


def struct_fields(
    struct: type[Struct],
    *,
    defaults: Mapping[str, Json] = {},
    spellings: Mapping[str, tuple[str, ...]] = {},
    within: str = "",
    seen: tuple[type, ...] = (),
) -> Iterator[KindField]:
    """The fields of a Struct, each followed by those of the mappings that it may be."""
    for field in _struct_type(struct).fields:
        name = within + field.encode_name
        yield KindField(
            name=name,
            type=_type_text(field.type),
            required=field.required,
            default=_default(field, defaults),
            description=_description(field.type),
            spellings=spellings.get(name, ()),
        )
        for inner, path in _nested_structs(field.type, name):
            if inner not in (struct, *seen):
                yield from struct_fields(inner, within=f"{path}.", seen=(struct, *seen))


def _struct_type(struct: type[Struct]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)  # noqa: S101 - narrows what msgspec gives for a Struct
    return info


def _type_of(struct: type[Struct], name: str) -> inspect.Type:
    return next(field.type for field in _struct_type(struct).fields if field.encode_name == name)


def _default(field: inspect.Field, defaults: Mapping[str, Json]) -> str:
    value = defaults.get(field.encode_name)
    if value is None and field.default_factory is not msgspec.NODEFAULT:
        value = msgspec.to_builtins(field.default_factory())
    elif value is None and field.default is not msgspec.NODEFAULT:
        value = msgspec.to_builtins(field.default)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _description(type_: inspect.Type) -> str:
    if not isinstance(type_, inspect.Metadata):
        return ""
    return str((type_.extra_json_schema or {}).get("description") or _description(type_.type))


def _nested_structs(type_: inspect.Type, path: str) -> Iterator[tuple[type[Struct], str]]:
    """The mappings with known keys that a value may be or hold, and where."""
    match type_:
        case inspect.Metadata():
            yield from _nested_structs(type_.type, path)
        case inspect.UnionType():
            for option in type_.types:
                yield from _nested_structs(option, path)
        case inspect.ListType():
            yield from _nested_structs(type_.item_type, f"{path}[]")
        case inspect.DictType():
            yield from _nested_structs(type_.value_type, f"{path}.NAME")
        case inspect.StructType():
            yield type_.cls, path


def _type_text(type_: inspect.Type) -> str:
    match type_:
        case inspect.Metadata():
            return _type_text(type_.type)
        case inspect.UnionType():
            options = dict.fromkeys(_type_text(option) for option in type_.types)
            if "number" in options:
                options.pop("whole number", None)
            return " or ".join(option for option in options if option)
        case inspect.LiteralType():
            return ", ".join(
                f"`{value}`" for value in type_.values if not _is_case_variant(value, type_.values)
            )
        case inspect.ListType():
            item = _type_text(type_.item_type)
            return f"list of {item}" if item not in ("", "value") and " or " not in item else "list"
        case inspect.IntType() | inspect.FloatType():
            return _scalar_type_text(type_) + _bounds(type_.ge, type_.le)
        case inspect.NoneType():
            return ""
        case _:
            return _scalar_type_text(type_)


def _scalar_type_text(type_: inspect.Type) -> str:
    return describe_type(type_).removeprefix("a ")


def _is_case_variant(word: object, words: Collection[object]) -> bool:
    """Whether it stands there only because any case will do."""
    return isinstance(word, str) and word.islower() and word.upper() in words


def _bounds(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    if least is not None:
        return f" ≥ {least:g}"
    return f" ≤ {most:g}" if most is not None else ""
