"""The page about the HTTP API, made from the table of endpoints and the OpenAPI document."""

from typing import Any

from noetl.ports.http_api import ROLES, ProblemCode
from noetl.server.http.application import ENDPOINTS
from noetl.server.http.openapi import openapi_document
from noetl.server.http.problems import STATUSES

INTRODUCTION = """\
# The HTTP API

What a [server](server.md) answers. `GET /api/openapi.json` has the same for programs, with every field; `noetl.Client` has a
method for each. Requests and answers are JSON unless it says otherwise; times are UTC.

- A request below `/api` has `Authorization: Bearer TOKEN`, or the cookie of a [session](server.md#tokens-and-roles). The role that an endpoint names is the least that it takes.
- An error is a problem document (RFC 9457, `application/problem+json`): `{type, title, status, code, detail}`, and where there
  is one a `hint`, a `pointer` to what is wrong in the body, the `problems` of a playbook, and the `execution_id` of a request
  that was recorded.
- Lists are pages: `limit` and `cursor` go in, `next_cursor` comes out, null on the last page.
- A body that is no JSON is 400, a field of another type, or one that nobody knows, 422, a body that is too large 413, and one of
  another media type 415. 503 has `Retry-After`.

| code | status | means |
| --- | --- | --- |
"""
MEANINGS: dict[ProblemCode, str] = {
    "invalid_playbook": "the document has errors: `problems` has all",
    "invalid_request": "the request is not as it must be",
    "method_not_allowed": "the path does not take this method",
    "not_found": "there is no such thing",
    "refused": "it does not apply as things are; a request to start what cannot run is 422",
    "conflict": "a name or an idempotency key is taken",
    "lost": "a worker reports what is no longer its own",
    "too_large": "the body is larger than the server takes",
    "unsupported_protocol": "a worker speaks a version that the server does not",
    "unauthenticated": "there is no valid token",
    "forbidden": "the role of the token does not allow it",
    "overloaded": "too much is going on: try again later",
    "store_unavailable": "the store does not answer: try again later",
}


def api_page() -> str:
    document = openapi_document(ENDPOINTS)
    lines = [INTRODUCTION.rstrip("\n")]
    lines += [f"| `{code}` | {STATUSES[code]} | {MEANINGS[code]} |" for code in MEANINGS]
    lines += _roles()
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace(":path}", "}")
        operation = document["paths"][path][endpoint.method.lower()]
        lines += ["", f"## `{endpoint.method} {path}`", "", endpoint.summary]
        facts = [f"Role: `{endpoint.role}`." if endpoint.role else "Needs no token."]
        query = [part["name"] for part in operation["parameters"] if part["in"] == "query"]
        if query:
            facts.append(f"Parameters: {', '.join(f'`{name}`' for name in query)}.")
        if "requestBody" in operation:
            facts.append(f"Body: {_body(operation, document)}.")
        facts.append(f"Answer: {_answer(operation, document)}.")
        problems = sorted(status for status in operation["responses"] if int(status) >= 400)
        facts.append(f"Errors: {', '.join(problems)}." if problems else "")
        lines += ["", " ".join(fact for fact in facts if fact)]
    return "\n".join(lines) + "\n"


def _roles() -> list[str]:
    """Which endpoints each role adds to those before it."""
    rows = []
    for role in (None, *ROLES):
        names = [
            f"`{endpoint.method} {endpoint.path.replace(':path}', '}')}`"
            for endpoint in ENDPOINTS
            if endpoint.role == role
        ]
        if role is None:
            names.append("`GET /api/openapi.json`")
        if role == "worker":
            names.append("all below `/api/worker`, for what it has claimed")
        rows.append(f"| {f'`{role}`' if role else 'without a token'} | {', '.join(names)} |")
    head = [
        "",
        "## Roles",
        "",
        "Each of `viewer`, `operator`, `author` and `admin` may all that those before it may.",
    ]
    return [*head, "", "| who | may |", "| --- | --- |", *rows]


def _body(operation: dict[str, Any], document: dict[str, Any]) -> str:
    content = operation["requestBody"]["content"]
    media_types = [kind for kind in content if kind != "application/json"]
    if media_types:
        return "the document, " + " or ".join(f"`{kind}`" for kind in content)
    return _shape(content["application/json"]["schema"], document)


def _answer(operation: dict[str, Any], document: dict[str, Any]) -> str:
    statuses = [status for status in operation["responses"] if int(status) < 400]
    content = operation["responses"][statuses[0]].get("content", {})
    parts = [
        _shape(media["schema"], document) if kind == "application/json" else f"`{kind}`"
        for kind, media in content.items()
    ]
    return f"{' or '.join(statuses)}, {' or '.join(parts)}"


def _shape(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """The names of the fields; optional ones have a question mark."""
    if "anyOf" in schema:
        return " or ".join(_shape(choice, document) for choice in schema["anyOf"])
    if "$ref" in schema:
        return _shape(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    required = schema.get("required", [])
    names = [name if name in required else f"{name}?" for name in schema.get("properties", {})]
    return f"`{{{', '.join(names)}}}`" if names else "an object"
