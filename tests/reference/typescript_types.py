"""The types of the API for the page, made from the OpenAPI document: `web/src/api/types.ts`."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from noetl.ports import page_api
from noetl.server.http.application import ENDPOINTS
from noetl.server.http.openapi import openapi_document

HEAD = """\
// Made by scripts/docs from the types of the server. Do not edit.

"""
NAME = re.compile(r"^[A-Za-z_]\w*$")
REFERENCE = "#/components/schemas/"


def typescript_types() -> str:
    """An interface for each type, and `Operations`: what each endpoint takes and gives, by its name."""
    document = openapi_document(ENDPOINTS)
    schemas = _stream_schemas() | document["components"]["schemas"]
    parts = [_declaration(name, schema) for name, schema in sorted(schemas.items())]
    return HEAD + "\n".join([*parts, *_operations(document), ""])


def _stream_schemas() -> dict[str, Any]:
    """What goes over the stream stands in no endpoint's answer."""
    kinds = [
        kind
        for kind in vars(page_api).values()
        if isinstance(kind, type) and issubclass(kind, Struct) and not kind.__name__.startswith("_")
    ]
    kinds = [kind for kind in kinds if kind.__module__ == page_api.__name__]
    _, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE + "{name}")
    return components


def _declaration(name: str, schema: dict[str, Any]) -> str:
    comment = _comment(schema.get("description", ""), "")
    if schema.get("type") == "object" and "properties" in schema:
        fields = "\n".join(_fields(schema))
        return f"{comment}export interface {name} {{\n{fields}\n}}\n"
    return f"{comment}export type {name} = {_type(schema)};\n"


def _fields(schema: dict[str, Any], indent: str = "  ") -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        optional = "" if name in required else "?"
        yield f"{indent}{name if NAME.match(name) else repr(name)}{optional}: {_type(field)};"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix(REFERENCE))
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(map(_type, choices)))
    if "enum" in schema:
        return " | ".join(_literal(value) for value in schema["enum"])
    if "const" in schema:
        return _literal(schema["const"])
    match schema.get("type"):
        case "string":
            return "string"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "boolean"
        case "null":
            return "null"
        case "array":
            return _array_type(schema)
        case "object":
            return _object_type(schema)
        case _:
            return "unknown"


def _literal(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _array_type(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(map(_type, schema['prefixItems']))}]"
    item = _type(schema.get("items") or {})
    return f"({item})[]" if "|" in item else f"{item}[]"


def _object_type(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        return "{ " + " ".join(_fields(schema, "")) + " }"
    values = schema.get("additionalProperties")
    return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"


def _operations(document: dict[str, Any]) -> Iterator[str]:
    yield "/** What each endpoint takes and gives, by the name that `CallerAnswer.may` has. */"
    yield "export interface Operations {"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield _comment(operation["summary"], "  ").rstrip("\n")
            yield f"  {operation['operationId']}: {{"
            yield f"    method: {_literal(method.upper())};"
            yield f"    path: {_literal(path)};"
            yield f"    query: {_query(operation)};"
            yield f"    body: {_body(operation)};"
            yield f"    answer: {_answer(operation)};"
            yield "  };"
    yield "}"


def _query(operation: dict[str, Any]) -> str:
    fields = [
        f"{part['name']}?: {_type(part['schema'])};"
        for part in operation["parameters"]
        if part["in"] == "query"
    ]
    return f"{{ {' '.join(fields)} }}" if fields else "Record<string, never>"


def _body(operation: dict[str, Any]) -> str:
    if "requestBody" not in operation:
        return "undefined"
    kinds = [_type(media["schema"]) for media in operation["requestBody"]["content"].values()]
    return " | ".join(dict.fromkeys(kinds))


def _answer(operation: dict[str, Any]) -> str:
    good = [answer for status, answer in operation["responses"].items() if int(status) < 400]
    kinds = [_type(media["schema"]) for answer in good for media in answer.get("content", {}).values()]
    return " | ".join(dict.fromkeys(kinds)) or "undefined"


def _comment(text: str, indent: str) -> str:
    lines = text.strip().splitlines()
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0].strip()} */\n"
    body = "\n".join(f"{indent} * {line.strip()}".rstrip() for line in lines)
    return f"{indent}/**\n{body}\n{indent} */\n"
