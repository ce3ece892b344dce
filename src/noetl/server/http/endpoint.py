"""An endpoint: what it is called, who may use it, what comes in and what goes out.

One table of them makes the routes, the OpenAPI document, the page about it and the test of rights.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from noetl.engine.history.lookup import require_execution
from noetl.model.normalisation import MAX_DEPTH
from noetl.model.timestamp import now_micros
from noetl.ports.catalog import AuditEntry
from noetl.ports.http_api import ProblemCode, Role
from noetl.ports.store import ExecutionRecord, StoreError
from noetl.server.http.access import Caller, caller_of, require_role
from noetl.server.http.problems import ApiProblem, problem_of, problem_response, wrong_type
from noetl.server.http.resources import ServerResources

T = TypeVar("T")

SMALL_BODY = 1 << 20
DOCUMENT_BODY = 16 << 20
LARGE_BODY = 64 << 20
SMALLEST_PACKED = 1 << 10
"""Bytes of an answer below which nothing is gained by packing it."""
_QUICKLY_PACKED = 1 << 16
"""Bytes that take less time than to hand them to a thread."""
_PACKING_LEVEL = 5
JSON = "application/json"
_READING = ("validate", "evaluate_expression", "draw_net", "complete_text")
"""What changes nothing, though it takes a body."""
EVENT_STREAM = "text/event-stream"


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """An endpoint that takes no parameters."""


class Answer(NamedTuple):
    """`audited` says that the audit has it already: it was written with what was changed."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] | None = None
    audited: bool = False


class ApiCall:
    """One request to an endpoint, checked: query and body are of the types that the endpoint names."""

    def __init__(self, name: str, request: Request, resources: ServerResources) -> None:
        self.name = name
        """That of the endpoint."""
        self.request = request
        self.resources = resources
        self.caller = Caller("", "viewer")
        self.query: Any = None
        self.body: Any = None

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    async def execution(self) -> ExecutionRecord:
        """That of the path. Raises ExecutionUnknown."""
        return await require_execution(self.resources.store, self.part("execution_id"))

    def audit_entry(self, status: int) -> AuditEntry:
        """What the audit says of it when it is answered so."""
        request, caller = self.request, self.caller
        address = request.client.host if request.client else ""
        target = request.scope["path"].removeprefix("/api/")
        return AuditEntry(now_micros(), caller.name, caller.role, self.name, target, address, status)

    def require(self, role: Role) -> None:
        """Raises ApiProblem `forbidden`."""
        require_role(self.request.scope, role)


Handler: TypeAlias = Callable[[ApiCall], Awaitable[Answer | Response]]


class Endpoint(Struct, frozen=True, kw_only=True):
    """`path` has its parts in braces, `{name:path}` for one with slashes. `also` are other good statuses.

    `answers` are the types that a good answer in JSON may have.
    """

    name: str
    method: str
    path: str
    role: Role | None
    summary: str
    handler: Handler
    answers: tuple[Any, ...] = ()
    status: int = 200
    also: tuple[int, ...] = ()
    answer_type: str = JSON
    query: type[Struct] = NoQuery
    body: Any = None
    body_types: tuple[str, ...] = (JSON,)
    largest: int = SMALL_BODY
    codes: tuple[ProblemCode, ...] = ()

    @property
    def audited(self) -> bool:
        return self.method not in ("GET", "HEAD") and self.name not in _READING

    async def respond(self, request: Request, resources: ServerResources) -> Response:
        """The answer to a request: errors are answers, too, and every write stands in the audit."""
        call = ApiCall(self.name, request, resources)
        audited = not self.audited
        try:
            if self.role is not None:
                call.caller = caller_of(request.scope)
                require_role(request.scope, self.role)
            call.query = self._read_query(request)
            call.body = await self._read_body(request) if self.body is not None else None
            answer = await self.handler(call)
            if isinstance(answer, Response):
                response = answer
            else:
                response = _json_response(answer)
                audited = audited or answer.audited
                await _pack(response, request.headers.get("accept-encoding", ""))
        except ClientDisconnect:
            response = Response(status_code=499)  # nobody reads it
        except Exception as error:  # raised again unless it is the caller's, or the store's
            problem = problem_of(error)
            if problem is None:
                resources.observer.measures.count_request(self.method, self.path, 500)
                raise
            response = problem_response(problem)
        resources.observer.measures.count_request(self.method, self.path, response.status_code)
        # Nobody without a name can fill the audit.
        if not audited and call.caller.name and not getattr(call.query, "dry_run", False):
            try:
                await resources.audit_log.write(call.audit_entry(response.status_code))
            except StoreError as error:
                # What was refused stays so. What was done is not confirmed: nobody could see who did it.
                if response.status_code < 400:
                    return problem_response(
                        ApiProblem("store_unavailable", f"the audit cannot be written: {error}")
                    )
        return response

    def _read_query(self, request: Request) -> Struct:
        if not request.scope["query_string"]:
            return _no_parameters(self.query)
        values: dict[str, Any] = {}
        for name, text in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
            is_list = name in _list_parameters(self.query)
            if name in values and not is_list:
                detail = f"the parameter `{name}` is given twice"
                raise ApiProblem("invalid_request", detail, pointer=f"/{name}")
            values[name] = [*values.get(name, ()), text] if is_list else text
        try:
            return msgspec.convert(values, self.query, strict=False)
        except msgspec.ValidationError as error:
            raise wrong_type(error) from None

    async def _read_body(self, request: Request) -> Any:
        media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if media_type not in self.body_types:
            detail = f"a body of the type `{media_type}` is not taken here"
            raise ApiProblem(
                "invalid_request", detail, status=415, hint=f"send {' or '.join(self.body_types)}"
            )
        data = await read_limited(request, self.largest)
        if self.body is bytes:
            return data
        return decode_json_body(data or b"{}", self.body)


@lru_cache
def _list_parameters(query: type[Struct]) -> frozenset[str]:
    """Those that may be given more than once."""
    return frozenset(name for name, hint in get_type_hints(query).items() if get_origin(hint) is tuple)


@lru_cache
def _no_parameters(query: type[Struct]) -> Struct:
    """What an endpoint is asked that is given none. Raises ApiProblem."""
    try:
        return msgspec.convert({}, query)
    except msgspec.ValidationError as error:
        raise wrong_type(error) from None


async def read_limited(request: Request, largest: int) -> bytes:
    """The body, read no further than it may be long. Raises ApiProblem `too_large`."""
    too_large = ApiProblem("too_large", f"the body is larger than {largest >> 20} MiB")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > largest:
        raise too_large
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise too_large
        pieces.append(piece)
    return b"".join(pieces)


def decode_json_body(data: bytes, body: type[T]) -> T:
    """The body as its type. Raises ApiProblem: 400 if it is no JSON, else 422 with a pointer."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(data, type=body)
    # Again, to say what is wrong: if it is JSON at all, and then where it is of another type.
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = f"it has more than {MAX_DEPTH} levels" if isinstance(error, RecursionError) else error
        raise ApiProblem("invalid_request", f"the body is not JSON: {reason}", status=400) from None
    try:
        return msgspec.convert(value, body)
    except msgspec.ValidationError as error:
        raise wrong_type(error) from None


def _json_response(answer: Answer) -> Response:
    return Response(msgspec.json.encode(answer.value), answer.status, answer.headers, JSON)


async def _pack(response: Response, accepted: str) -> None:
    """Compresses the body of an answer, if it is worth it and who asked takes gzip."""
    body = response.body
    if len(body) < SMALLEST_PACKED or not _takes_gzip(accepted):
        return
    if len(body) < _QUICKLY_PACKED:
        packed = gzip.compress(body, _PACKING_LEVEL, mtime=0)
    else:
        packed = await asyncio.to_thread(gzip.compress, body, _PACKING_LEVEL, mtime=0)
    response.body = packed
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(packed))
    response.headers.append("Vary", "Accept-Encoding")


def _takes_gzip(accepted: str) -> bool:
    for choice in accepted.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
