"""The OpenAPI document, made from the table of endpoints and the types of their requests and answers."""

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from noetl.ports.http_api import ProblemCode, ProblemDocument, StartExecution, StartExecutions
from noetl.server.http.endpoint import JSON, Endpoint
from noetl.server.http.problems import STATUSES

_PART = re.compile(r"{(\w+)(:path)?}")
_REFERENCE = "#/components/schemas/{name}"
_EVERYWHERE: tuple[ProblemCode, ...] = ("unauthenticated", "forbidden", "store_unavailable")
_HEADERS = {
    "stream_events": ("Last-Event-ID",),
    "stream_topics": ("Last-Event-ID",),
    "read_result": ("Range",),
}


def openapi_document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """OpenAPI 3.1 of these endpoints."""
    endpoints = list(endpoints)
    types: list[Any] = [ProblemDocument, StartExecution, StartExecutions]
    for endpoint in endpoints:
        types += [kind for kind in (*endpoint.answers, endpoint.body, endpoint.query) if _has_schema(kind)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    # By place, not by type: types that are equal to Python may not be the same.
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = _PART.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, by_type, components)
    queries = {endpoint.query.__name__ for endpoint in endpoints}
    return {
        "openapi": "3.1.0",
        "info": {"title": "NoETL", "version": _release()},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _release() -> str:
    try:
        return version("noetl")
    except PackageNotFoundError:
        return "0"


def _has_schema(kind: Any) -> bool:
    return kind is not None and kind is not bytes


def _operation(endpoint: Endpoint, by_type: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint, components),
        "responses": _responses(endpoint, by_type),
    }
    if endpoint.role is not None:
        operation["security"] = [{"bearer": []}]
        operation["x-role"] = endpoint.role
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body is bytes,
            "content": {
                kind: {"schema": _body_schema(endpoint, kind, by_type)} for kind in endpoint.body_types
            },
        }
    return operation


def _body_schema(endpoint: Endpoint, media_type: str, by_type: dict[str, Any]) -> dict[str, Any]:
    if endpoint.name == "start_execution":
        return {"anyOf": [by_type[repr(StartExecution)], by_type[repr(StartExecutions)]]}
    if endpoint.body is bytes:
        return {"type": "object"} if media_type == JSON else {"type": "string"}
    schema: dict[str, Any] = by_type[repr(endpoint.body)]
    return schema


def _parameters(endpoint: Endpoint, components: dict[str, Any]) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": match[1], "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for match in _PART.finditer(endpoint.path)
    ]
    query = components.get(endpoint.query.__name__, {})
    for name, schema in query.get("properties", {}).items():
        plain = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
        parameters.append({"name": name, "in": "query", "required": False, "schema": plain})
    return parameters + [
        {"name": header, "in": "header", "required": False, "schema": {"type": "string"}}
        for header in _HEADERS.get(endpoint.name, ())
    ]


def _responses(endpoint: Endpoint, by_type: dict[str, Any]) -> dict[str, Any]:
    content = {}
    if schemas := [by_type[repr(kind)] for kind in endpoint.answers]:
        content[JSON] = {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
    if endpoint.answer_type != JSON:
        content[endpoint.answer_type] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {}
    for status in (endpoint.status, *endpoint.also):
        description = "as asked" if status == endpoint.status else "likewise"
        responses[str(status)] = {"description": description} | (
            {"content": content} if status not in (204, 304) else {}
        )
    problem = {"application/problem+json": {"schema": by_type[repr(ProblemDocument)]}}
    for status, codes in sorted(_problem_statuses(endpoint).items()):
        responses[str(status)] = {"description": ", ".join(sorted(codes)), "content": problem}
    return responses


def _problem_statuses(endpoint: Endpoint) -> dict[int, set[str]]:
    codes = {*endpoint.codes, *(_EVERYWHERE if endpoint.role is not None else ())}
    statuses: dict[int, set[str]] = {}
    for code in codes:
        statuses.setdefault(STATUSES[code], set()).add(code)
    if endpoint.query.__struct_fields__ or endpoint.body is not None or endpoint.role is not None:
        statuses.setdefault(422, set()).add("invalid_request")
    if endpoint.body is not None:
        for status in (400, 415):
            statuses.setdefault(status, set()).add("invalid_request")
        statuses.setdefault(413, set()).add("too_large")
    if endpoint.name == "read_result":
        statuses.setdefault(416, set()).add("invalid_request")
    if "refused" in codes:
        statuses.setdefault(422, set()).add("refused")
    return statuses
