"""Does a tree have the shape a type declares? What does not is reported at its place and left out."""

import difflib
import re
from collections.abc import Iterable
from collections.abc import Mapping as AbstractMapping
from functools import cache
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import inspect

from noetl.dsl.document.shape_messages import describe_type, inline_description, known_keys_hint, quote_hint
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, Sequence
from noetl.expr.language.guard import is_template
from noetl.model.json import Json


class ProblemReporter(Protocol):
    """Takes a problem: a code of the table, where it stands, what is wrong, what to do."""

    def __call__(self, code: str, at: Located, message: str, hint: str = "") -> None: ...


class Field(NamedTuple):
    """A key that a mapping may have."""

    type: inspect.Type
    required: bool
    extra: AbstractMapping[str, Any]
    description: str


class RefusedKey(NamedTuple):
    """A key that is refused with its own code, because people may expect it to work."""

    code: str
    message: str
    hint: str


# Cached: msgspec takes the type apart anew each time (3 ms for a playbook), and every task asks for its kind.
@cache
def fields_of(struct: type[msgspec.Struct]) -> dict[str, Field]:
    """The keys a Struct declares, as the document spells them."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)  # noqa: S101 - narrows what msgspec gives for a Struct
    return {field.encode_name: _field(field) for field in info.fields}


ANYTHING = Field(inspect.AnyType(), required=False, extra={}, description="")


def closest_words(word: str, known: Iterable[str], likeness: float = 0.6) -> list[str]:
    """The known word that looks most like this one, if any does."""
    return difflib.get_close_matches(word, list(known), n=1, cutoff=likeness)


def did_you_mean(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """A hint with the nearest known word, or nothing."""
    near = closest_words(word, known, likeness)
    return f"did you mean `{near[0]}`?" if near else ""


def is_closed(struct: type[msgspec.Struct]) -> bool:
    """Whether a mapping of this shape has no keys but the declared ones."""
    return struct.__struct_config__.forbid_unknown_fields


class ShapeChecker:
    """Checks trees against types.

    By the name of a Struct, `moved` holds its refused keys, `called` what messages call it.
    """

    def __init__(
        self,
        report: ProblemReporter,
        moved: AbstractMapping[str, AbstractMapping[str, RefusedKey]] = {},
        called: AbstractMapping[str, str] = {},
    ) -> None:
        self._report = report
        self._moved = moved
        self._called = called

    def check_struct(
        self, node: Node, struct: type[msgspec.Struct], subject: str, *, templated: bool = False
    ) -> Mapping | None:
        """The mapping with the keys that fit; None if it is no mapping at all."""
        subject = self._called.get(struct.__name__, subject)
        if not isinstance(node, Mapping):
            self._report("wrong-type", node, f"{subject} must be a mapping, not {describe_node(node)}")
            return None
        fields = fields_of(struct)
        return self.check_fields(
            node,
            {} if templated else fields,
            subject,
            templated=fields if templated else {},
            closed=is_closed(struct),
            moved=self._moved.get(struct.__name__, {}),
        )

    def check_fields(
        self,
        node: Mapping,
        fields: AbstractMapping[str, Field],
        subject: str,
        *,
        templated: AbstractMapping[str, Field] = {},
        closed: bool = True,
        moved: AbstractMapping[str, RefusedKey] = {},
    ) -> Mapping:
        """As `struct`, for keys put together by the caller; the values of `templated` may be expressions."""
        entries: dict[str, MappingEntry] = {}
        known = {**templated, **fields}
        suggested: set[str] = set()
        for entry in node:
            if (refused := moved.get(entry.key)) is not None:
                self._report(refused.code, entry, refused.message, refused.hint)
            elif (field := known.get(entry.key)) is not None:
                if is_empty(entry.value):
                    self._refuse_empty(entry, field)
                    continue
                value = self._field(entry, field, templated=entry.key not in fields)
                # The entry itself where nothing was left out, as nearly always: no copy for each key.
                if value is entry.value:
                    entries[entry.key] = entry
                elif value is not None:
                    entries[entry.key] = MappingEntry(entry.key, value, entry.line, entry.column)
            elif closed:
                suggested.update(closest_words(entry.key, known))
                hint = did_you_mean(entry.key, known) or known_keys_hint(known)
                self._report("unknown-key", entry, f"{subject} has no key `{entry.key}`", hint)
            else:
                entries[entry.key] = entry
        for key, field in known.items():
            if (
                field.required
                and key not in suggested
                and ((value := node.get(key)) is None or is_empty(value))
            ):
                self._miss(node, key, field, subject)
        return Mapping(entries, node.line, node.column)

    def _miss(self, node: Mapping, key: str, field: Field, subject: str) -> None:
        code = field.extra.get("missing", "missing-key")
        hint = (
            f"add `{key}:`, {inline_description(field.description)}" if field.description else f"add `{key}:`"
        )
        self._report(code, node.entries.get(key, node), f"{subject} needs the key `{key}`", hint)

    def _refuse_empty(self, entry: MappingEntry, field: Field) -> None:
        """An empty key counts as absent, unless it must not be left half written."""
        if (code := field.extra.get("empty")) is not None:
            self._report(code, entry, f"`{entry.key}` is empty", "fill it in or leave it out")

    def _field(self, entry: MappingEntry, field: Field, *, templated: bool) -> Node | None:
        """The entry's value; what does not fit is reported with the code that the field asks for."""
        if (field_code := field.extra.get("wrong")) is None:
            return self.check_value(entry.value, field.type, f"`{entry.key}`", templated=templated)

        def report_with_field_code(code: str, at: Located, message: str, hint: str = "") -> None:  # noqa: ARG001 - the protocol
            self._report(field_code, at, message, hint)

        return ShapeChecker(report_with_field_code, self._moved, self._called).check_value(
            entry.value, field.type, f"`{entry.key}`", templated=templated
        )

    def check_value(
        self, node: Node, type_: inspect.Type, subject: str, *, templated: bool = False
    ) -> Node | None:
        """The node, cleaned, or None if it does not fit."""
        extra: AbstractMapping[str, Any] = {}
        description = ""
        while isinstance(type_, inspect.Metadata):
            extra = {**(type_.extra or {}), **extra}
            description = (type_.extra_json_schema or {}).get("description", description)
            type_ = type_.type
        literal = "literal" in extra or "document" in extra
        takes_template = literal or "expression" in extra or (templated and "name" not in extra)
        if (
            takes_template
            and isinstance(node, Scalar)
            and isinstance(node.value, str)
            and is_template(node.value)
        ):
            return node
        if "guard" in extra or ("name" in extra and isinstance(node, Scalar)):
            return node
        return self._plain(node, type_, subject, templated=templated and not literal, description=description)

    def _plain(
        self, node: Node, type_: inspect.Type, subject: str, *, templated: bool, description: str = ""
    ) -> Node | None:
        if isinstance(type_, inspect.AnyType):
            return node
        if isinstance(type_, inspect.UnionType):
            return self._union(node, type_, subject, templated=templated)
        if isinstance(type_, inspect.StructType):
            return self.check_struct(node, type_.cls, subject, templated=templated)
        if isinstance(type_, inspect.DictType) and isinstance(node, Mapping):
            return self._dict(node, type_, templated=templated)
        if isinstance(type_, inspect.ListType) and isinstance(node, Sequence):
            items = (
                self.check_value(item, type_.item_type, f"an item of {subject}", templated=templated)
                for item in node.items
            )
            fitting_items = [item for item in items if item is not None]
            if type_.min_length and len(node.items) < type_.min_length:
                self._report("bad-value", node, f"{subject} must not be empty")
            return Sequence(fitting_items, node.line, node.column)
        if isinstance(type_, inspect.LiteralType) and isinstance(node, Scalar):
            return self._literal(node, type_, subject)
        if isinstance(node, Scalar) and _scalar_fits(node.value, type_):
            return self._bounded(node, type_, subject, description)
        expected = describe_type(type_) + (" or an expression" if templated else "")
        self._report(
            "wrong-type",
            node,
            f"{subject} must be {expected}, not {describe_node(node)}",
            quote_hint(node, type_),
        )
        return None

    def _union(self, node: Node, union: inspect.UnionType, subject: str, *, templated: bool) -> Node | None:
        fitting = [option for option in union.types if _could_be(node, option)]
        if len(fitting) == 1:
            return self.check_value(node, fitting[0], subject, templated=templated)
        for option in fitting:
            if _accepts(node, option, templated=templated):
                return self.check_value(node, option, subject, templated=templated)
        if fitting and not isinstance(node, Scalar):
            return self.check_value(node, fitting[0], subject, templated=templated)
        expected = describe_type(union) + (" or an expression" if templated else "")
        hints = (
            quote_hint(node, option) for option in union.types if not isinstance(option, inspect.StrType)
        )
        hint = next(filter(None, hints), "")
        self._report("wrong-type", node, f"{subject} must be {expected}, not {describe_node(node)}", hint)
        return None

    def _dict(self, node: Mapping, type_: inspect.DictType, *, templated: bool) -> Mapping:
        if isinstance(type_.value_type, inspect.AnyType):
            return node
        entries = {}
        for entry in node:
            value = self.check_value(entry.value, type_.value_type, f"`{entry.key}`", templated=templated)
            if value is not None:
                entries[entry.key] = MappingEntry(entry.key, value, entry.line, entry.column)
        return Mapping(entries, node.line, node.column)

    def _literal(self, node: Scalar, type_: inspect.LiteralType, subject: str) -> Node | None:
        if node.value in type_.values and not isinstance(node.value, bool):
            return node
        options = [f"`{value}`" for value in type_.values]
        hint = f"one of {', '.join(options)}" if len(options) > 1 else f"write {options[0]}"
        near = did_you_mean(str(node.value), [str(value) for value in type_.values])
        self._report("bad-value", node, f"{subject} cannot be {describe_node(node)}", near or hint)
        return None

    def _bounded(self, node: Scalar, type_: inspect.Type, subject: str, description: str) -> Node | None:
        if isinstance(type_, inspect.IntType | inspect.FloatType):
            if type_.ge is not None and float(str(node.value)) < type_.ge:
                self._report("bad-value", node, f"{subject} must be at least {type_.ge}, not {node.value}")
                return None
            if type_.le is not None and float(str(node.value)) > type_.le:
                self._report("bad-value", node, f"{subject} must be at most {type_.le}, not {node.value}")
                return None
        if isinstance(type_, inspect.StrType) and type_.min_length and not str(node.value).strip():
            self._report("bad-value", node, f"{subject} must not be empty")
            return None
        if (
            isinstance(type_, inspect.StrType)
            and type_.pattern
            and not re.search(type_.pattern, str(node.value))
        ):
            hint = inline_description(description) if description else f"it must match `{type_.pattern}`"
            self._report("bad-value", node, f"{subject} cannot be {describe_node(node)}", hint)
            return None
        return node


def is_empty(node: Node) -> bool:
    """Whether it is a key with nothing behind it, which counts as absent."""
    return isinstance(node, Scalar) and node.value is None


def describe_node(node: Node) -> str:
    """The node's type in words, with its value where that helps."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    value = node.value
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"the text `{value if len(value) <= 40 else value[:39] + '…'}`"
    return f"the number {value}"


def _field(field: inspect.Field) -> Field:
    """What the annotations of a field say. None is not an option: an empty key counts as absent."""
    extra: dict[str, Any] = {}
    description = ""
    type_ = field.type
    while True:
        if isinstance(type_, inspect.Metadata):
            extra = {**(type_.extra or {}), **extra}
            description = description or (type_.extra_json_schema or {}).get("description", "")
            type_ = type_.type
        elif isinstance(type_, inspect.UnionType) and type_.includes_none:
            options = tuple(option for option in type_.types if not isinstance(option, inspect.NoneType))
            type_ = options[0] if len(options) == 1 else inspect.UnionType(options)
        else:
            return Field(inspect.Metadata(type_, extra=extra), field.required, extra, description)


def _scalar_fits(value: Json, type_: inspect.Type) -> bool:
    match type_:
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case _:
            return False


def _could_be(node: Node, type_: inspect.Type) -> bool:
    """Whether the node is of the right sort, without looking inside."""
    while isinstance(type_, inspect.Metadata):
        if (type_.extra or {}).get("expression"):
            return isinstance(node, Scalar) and isinstance(node.value, str) and is_template(node.value)
        type_ = type_.type
    match type_:
        case inspect.AnyType():
            return True
        case inspect.UnionType():
            return any(_could_be(node, option) for option in type_.types)
        case inspect.DictType() | inspect.StructType():
            return isinstance(node, Mapping)
        case inspect.ListType():
            return isinstance(node, Sequence)
        case inspect.LiteralType():
            return isinstance(node, Scalar) and isinstance(node.value, str)
        case _:
            return isinstance(node, Scalar) and _scalar_fits(node.value, type_)


def _accepts(node: Node, type_: inspect.Type, *, templated: bool) -> bool:
    """Whether the value would fit. Tried with a checker of its own, so that nothing is reported."""
    faults: list[str] = []

    def note(code: str, at: Located, message: str, hint: str = "") -> None:  # noqa: ARG001 - the protocol
        faults.append(code)

    return ShapeChecker(note).check_value(node, type_, "", templated=templated) is not None and not faults
