"""Who may do what: tokens, roles, and the check of every request below `/api`."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from noetl.model.timestamp import now_micros
from noetl.ports.catalog import AccessStore
from noetl.ports.http_api import ROLES, Role
from noetl.server.http.problems import ApiProblem, problem_response
from noetl.stores.api_tokens import is_valid_token, token_hash
from noetl.system import SYSTEM

METRICS_PATH = "/metrics"
PUBLIC_PATHS = frozenset({"/api/openapi.json"})
RECHECK_SECONDS = 1.0
_CALLER = "noetl.caller"
_UNAUTHENTICATED: dict[str, Any] = {"type": "websocket.close", "code": 1008, "reason": "unauthenticated"}


class Caller(NamedTuple):
    """Who asks, and as what."""

    name: str
    role: Role


def may_act_as(role: Role, needed: Role) -> bool:
    """Whether a role has the rights of another one. A worker has only its own."""
    if "worker" in (role, needed):
        return role == needed
    return ROLES.index(role) >= ROLES.index(needed)


def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """Who sent a request that `Authentication` let in."""
    caller: Caller = scope[_CALLER]
    return caller


def require_role(scope: MutableMapping[str, Any], needed: Role) -> Caller:
    """Who asks, if they may. Raises ApiProblem `forbidden`."""
    caller = caller_of(scope)
    if not may_act_as(caller.role, needed):
        detail = f"this needs the role `{needed}`, and the token `{caller.name}` has the role `{caller.role}`"
        raise ApiProblem("forbidden", detail)
    return caller


class _AccessEnded(Exception):
    """The token of what is being sent is not valid any more."""


class Authentication:
    """Lets nobody below `/api`, or to the metrics, without a valid token: that is said first.

    What stays open is looked at again: a stream before each piece of it, a worker's socket when
    something is said there and a second has passed. When the token was revoked, or has expired, nothing more
    is sent or taken.
    """

    def __init__(self, app: ASGIApp, store: AccessStore) -> None:
        self._app = app
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_guarded = path.startswith("/api/") or path == METRICS_PATH
        if scope["type"] in ("http", "websocket") and is_guarded and path not in PUBLIC_PATHS:
            headers = HTTPConnection(scope).headers
            caller = await self._authenticate(headers)
            if caller is None:
                await self._turn_away(scope, receive, send)
                return
            scope[_CALLER] = caller
            if scope["type"] == "websocket":
                await self._talk_while_valid(headers, scope, receive, send)
            else:
                await self._stream_while_valid(headers, scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _stream_while_valid(self, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        pieces = 0

        async def send_piece(message: Message) -> None:
            nonlocal pieces
            if message.get("more_body"):
                pieces += 1
                if pieces > 1 and await self._authenticate(headers) is None:
                    raise _AccessEnded
            await send(message)

        try:
            await self._app(scope, receive, send_piece)
        except _AccessEnded:
            await send({"type": "http.response.body", "body": b""})

    async def _talk_while_valid(self, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        checked = SYSTEM.monotonic()

        async def require_access() -> None:
            nonlocal checked
            if SYSTEM.monotonic() - checked < RECHECK_SECONDS:
                return
            checked = SYSTEM.monotonic()
            if await self._authenticate(headers) is None:
                await send(_UNAUTHENTICATED)
                raise WebSocketDisconnect(_UNAUTHENTICATED["code"])

        async def receive_message() -> Message:
            message = await receive()
            await require_access()
            return message

        async def send_message(message: Message) -> None:
            await require_access()
            await send(message)

        await self._app(scope, receive_message, send_message)

    async def _authenticate(self, headers: Headers) -> Caller | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        known = await self._store.api_token(token_hash(token.strip()))
        if known is None or not is_valid_token(known, now_micros()) or known.role not in ROLES:
            return None
        return Caller(known.name, known.role)

    async def _turn_away(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send(_UNAUTHENTICATED)
            return
        problem = ApiProblem(
            "unauthenticated",
            "a valid token is needed",
            hint="`Authorization: Bearer TOKEN`; `noetl token create` makes one",
        )
        await problem_response(problem)(scope, receive, send)
