"""JSON Schema 2020-12 of the canonical document, made from the same shapes that the reader checks."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from noetl.dsl.document.keychain_kinds import CREDENTIAL_SUFFIX, KEYCHAIN_KINDS
from noetl.dsl.document.kinds import Kind, Kinds
from noetl.dsl.document.shape_check import Field, fields_of, is_closed
from noetl.dsl.document.shapes import (
    NAME,
    AllowShape,
    InheritedPolicyShape,
    KeychainShape,
    LoopSpecShape,
    PolicyShape,
    RootShape,
    RouterShape,
    StepShape,
    StepSpecShape,
    TaskShape,
    ThenShape,
)
from noetl.dsl.document.spec import inheritable_spec_fields
from noetl.expr.runtime.scope import ITERATOR_NAMESPACES, NAMESPACES

Schema: TypeAlias = dict[str, Any]

_EXPRESSION: Schema = {"type": "string", "pattern": r"\{[{%#]"}
_GUARD: Schema = {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"^\s*\{\{[\s\S]*\}\}\s*$"}]}


def document_schema(kinds: Kinds) -> Schema:
    """The schema of a playbook that uses these kinds."""
    return _SchemaBuilder(kinds).document()


class _SchemaBuilder:
    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.definitions: dict[str, Schema] = {"expression": _EXPRESSION, "condition": _GUARD}
        self.names: dict[tuple[type[msgspec.Struct], bool], str] = {}

    def document(self) -> Schema:
        root = self._object(fields_of(RootShape), RootShape.__doc__ or "")
        self._define_keychain()
        self._define_tasks()
        self._define_rules()
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "NoETL playbook",
            **root,
            "$defs": dict(sorted(self.definitions.items())),
        }

    def _object(
        self,
        fields: Mapping[str, Field],
        description: str,
        *,
        templated: Mapping[str, Field] = {},
        closed: bool = True,
    ) -> Schema:
        """A mapping with these keys; the values of the `templated` ones may be expressions."""
        schema: Schema = {"type": "object"}
        if description:
            schema["description"] = description.split("\n", maxsplit=1)[0]
        known = {**templated, **fields}
        schema["properties"] = {
            key: self._field(field, templated=key not in fields) for key, field in known.items()
        }
        if required := [key for key, field in known.items() if field.required]:
            schema["required"] = required
        if closed:
            schema["additionalProperties"] = False
        return schema

    def _field(self, field: Field, *, templated: bool) -> Schema:
        form = field.extra.get("form")
        schema = self._form(form) if form else self._type(field.type, templated=templated)
        if not field.required and "empty" not in field.extra:
            schema = _or_null(schema)
        return {"description": field.description, **schema} if field.description else schema

    def _form(self, form: str) -> Schema:
        match form:
            case "tasks":
                return {"anyOf": [{"type": "array", "minItems": 1, "items": _ref("task")}, _ref("tool")]}
            case "workbook":
                named: Schema = {"type": "object", "additionalProperties": _ref("definition")}
                listed: Schema = {"type": "array", "items": _ref("task")}
                holder = {
                    "type": "object",
                    "properties": {"tasks": {"anyOf": [named, listed, {"type": "null"}]}},
                }
                return {"anyOf": [{**holder, "additionalProperties": False}, listed]}
            case "step-spec":
                return self._scope_spec(fields_of(StepSpecShape), StepSpecShape.__doc__ or "")
            case "loop-spec":
                return self._scope_spec(fields_of(LoopSpecShape), LoopSpecShape.__doc__ or "")
            case "router":
                return self._struct(RouterShape, templated=False)
            case "policy":
                return self._object(fields_of(InheritedPolicyShape), InheritedPolicyShape.__doc__ or "")
            case "rule" | "admit":
                return {"type": "array", "items": _ref(form)}
            case _:
                raise ValueError(f"no schema for the form `{form}`")

    def _scope_spec(self, scope_fields: Mapping[str, Field], description: str) -> Schema:
        return self._object(scope_fields, description, templated=inheritable_spec_fields(self.kinds))

    def _type(self, type_: inspect.Type, *, templated: bool) -> Schema:
        extra: dict[str, Any] = {}
        while isinstance(type_, inspect.Metadata):
            extra = {**(type_.extra or {}), **extra}
            type_ = type_.type
        if "expression" in extra:
            return _ref("expression")
        if "guard" in extra:
            return _ref("condition")
        if "document" in extra:
            return {"$ref": "#"}
        if "name" in extra:
            reserved = NAMESPACES - ITERATOR_NAMESPACES if "iterator" in extra else NAMESPACES
            return {**self._plain(type_, templated=False), "not": {"enum": sorted(reserved)}}
        literal = "literal" in extra
        schema = self._plain(type_, templated=templated and not literal)
        loose = not templated or literal or not schema or schema.get("type") == "string"
        return schema if loose else _any_of([schema, _ref("expression")])

    def _plain(self, type_: inspect.Type, *, templated: bool) -> Schema:
        match type_:
            case inspect.UnionType():
                return _any_of([self._type(option, templated=False) for option in _not_none(type_)])
            case inspect.StructType():
                return self._struct(type_.cls, templated=templated)
            case inspect.ListType():
                schema: Schema = {"type": "array", "items": self._type(type_.item_type, templated=templated)}
                return {**schema, "minItems": type_.min_length} if type_.min_length else schema
            case inspect.DictType():
                values = self._type(type_.value_type, templated=templated)
                return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
            case inspect.LiteralType():
                options = list(type_.values)
                return {"const": options[0]} if len(options) == 1 else {"enum": options}
            case inspect.StrType():
                bounds: Schema = {"minLength": type_.min_length, "pattern": type_.pattern}
            case inspect.IntType() | inspect.FloatType():
                bounds = {"minimum": type_.ge, "maximum": type_.le}
            case _:
                bounds = {}
        names: dict[type[inspect.Type], str] = {
            inspect.StrType: "string",
            inspect.IntType: "integer",
            inspect.FloatType: "number",
            inspect.BoolType: "boolean",
        }
        name = names.get(type(type_))
        limits = {key: bound for key, bound in bounds.items() if bound is not None}
        return {"type": name, **limits} if name else {}

    def _struct(self, struct: type[msgspec.Struct], *, templated: bool) -> Schema:
        if (struct, templated) not in self.names:
            name = self._free_name(struct.__name__.removesuffix("Shape"))
            self.names[struct, templated] = name
            fields = fields_of(struct)
            self.definitions[name] = {}  # holds the place while the struct refers to itself
            self.definitions[name] = self._object(
                {} if templated else fields,
                struct.__doc__ or "",
                templated=fields if templated else {},
                closed=is_closed(struct),
            )
            if struct is StepShape:
                self.definitions[name]["anyOf"] = [{"required": ["tool"]}, {"required": ["next"]}]
        return _ref(self.names[struct, templated])

    def _free_name(self, name: str) -> str:
        """The name, or that with a number: packages of others may have a Struct that is called the same."""
        number = 1
        free = name
        while free in self.definitions:
            number += 1
            free = f"{name} {number}"
        return free

    def _define_keychain(self) -> None:
        """An entry has the fields of its kind; a tool's own credentials are free."""
        common = fields_of(KeychainShape)
        entry = self.definitions["Keychain"]
        entry["properties"]["kind"]["anyOf"] = [
            {"enum": list(KEYCHAIN_KINDS)},
            {"pattern": f"{CREDENTIAL_SUFFIX}$"},
        ]
        entry["allOf"] = [
            {
                "if": {"properties": {"kind": {"const": kind}}},
                "then": self._object(common, fields.__doc__ or "", templated=fields_of(fields)),
            }
            for kind, fields in KEYCHAIN_KINDS.items()
        ]

    def _define_tasks(self) -> None:
        for kind in self.kinds:
            self.definitions[f"{kind.name} task"] = self._kind(kind)
        known: Schema = {"description": "The tool.", "enum": self.kinds.names}
        choice = [
            {"if": {"properties": {"kind": {"const": kind.name}}}, "then": _ref(f"{kind.name} task")}
            for kind in self.kinds
        ]
        self.definitions["tool"] = {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": known},
            "allOf": choice,
        }
        labelled = {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "propertyNames": {"pattern": NAME, "not": {"enum": sorted(NAMESPACES)}},
            "additionalProperties": _ref("tool"),
        }
        named = {
            "if": {"anyOf": [{"required": ["kind"]}, {"required": ["name"]}]},
            "then": _ref("tool"),
            "else": labelled,
        }
        self.definitions["task"] = {"type": "object", **named}
        # A definition may lack inputs that its users give.
        self.definitions["definition"] = {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": known},
        }

    def _kind(self, kind: Kind) -> Schema:
        policy = self._struct(PolicyShape, templated=False)
        spec = self._object({}, f"Knobs of `{kind.name}`.", templated=fields_of(kind.spec))
        spec["properties"]["policy"] = policy
        inputs = fields_of(kind.inputs)
        task_fields = {key: field for key, field in fields_of(TaskShape).items() if key not in inputs}
        schema = self._object(task_fields, kind.summary, templated=inputs)
        schema["properties"]["spec"] = {"description": "Knobs and policy.", **_or_null(spec)}
        required: list[str] = schema.pop("required")
        spellings_by_name: dict[str, list[str]] = {}
        for spelling, target in kind.spellings.items():
            name = target if isinstance(target, str) else ""
            schema["properties"].setdefault(spelling, schema["properties"].get(name, {}))
            spellings_by_name.setdefault(name, []).append(spelling)
        schema["required"] = [key for key in required if key not in spellings_by_name]
        required_with_spellings = [
            [key, *spellings_by_name[key]] for key in required if key in spellings_by_name
        ]
        if required_with_spellings:
            schema["allOf"] = [
                {"anyOf": [{"required": [key]} for key in keys]} for keys in required_with_spellings
            ]
        if kind.name == "workbook":
            schema["additionalProperties"] = True  # the inputs of the task it names
        return schema

    def _define_rules(self) -> None:
        then = self._struct(ThenShape, templated=False)
        allow = self._struct(AllowShape, templated=False)
        self.definitions["rule"] = _rule(then)
        self.definitions["admit"] = _rule(allow)


def _rule(then: Schema) -> Schema:
    wrapped = {
        "type": "object",
        "properties": {"then": then},
        "required": ["then"],
        "additionalProperties": False,
    }
    desc: Schema = {"desc": {"type": "string"}}
    ordinary = {
        "type": "object",
        "properties": {"when": _ref("condition"), "then": then, **desc},
        "required": ["when", "then"],
        "additionalProperties": False,
    }
    otherwise = {
        "type": "object",
        "properties": {"else": {"anyOf": [wrapped, then]}, **desc},
        "required": ["else"],
        "additionalProperties": False,
    }
    beside = {
        "type": "object",
        "properties": {"else": {"type": "null"}, "then": then, **desc},
        "required": ["else", "then"],
        "additionalProperties": False,
    }
    return {"anyOf": [ordinary, otherwise, beside]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name.replace(' ', '%20')}"}


def _not_none(union: inspect.UnionType) -> list[inspect.Type]:
    return [option for option in union.types if not isinstance(option, inspect.NoneType)]


def _any_of(options: list[Schema]) -> Schema:
    flat: list[Schema] = []
    for option in options:
        for choice in option.get("anyOf", [option]) if list(option) == ["anyOf"] else [option]:
            if choice not in flat:
                flat.append(choice)
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _or_null(schema: Schema) -> Schema:
    """A key with nothing behind it counts as absent."""
    return _any_of([schema, {"type": "null"}]) if schema else schema
