"""Who may do what: tokens, sessions, roles, and the check of every request below `/api`."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from noetl.model.timestamp import now_micros
from noetl.ports.catalog import AccessStore
from noetl.ports.http_api import ROLES, Role
from noetl.server.http.browser_sessions import BrowserSessions, require_same_origin
from noetl.server.http.http_server import is_loopback
from noetl.server.http.problems import ApiProblem, problem_response
from noetl.stores.api_tokens import is_valid_token, token_hash
from noetl.system import SYSTEM

METRICS_PATH = "/metrics"
SESSION_PATH = "/api/session"
PUBLIC_PATHS = frozenset({"/api/openapi.json", SESSION_PATH})
RECHECK_SECONDS = 1.0
_CALLER = "noetl.caller"
_POLICY_VIOLATION = 1008
"""The code with which a WebSocket ends that may not go on."""


class Caller(NamedTuple):
    """Who asks, and as what; `by_session`: a browser did, with a cookie. The hash is that of their token."""

    name: str
    role: Role
    by_session: bool = False
    token_hash: str = ""


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


async def caller_by_hash(store: AccessStore, hashed: str, *, by_session: bool = False) -> Caller | None:
    """Who has the token with this hash; None if it is not valid. Raises StoreError."""
    known = await store.api_token(hashed)
    if known is None or not is_valid_token(known, now_micros()) or known.role not in ROLES:
        return None
    return Caller(known.name, known.role, by_session, known.hash)


class _AccessEnded(Exception):
    """The token of what is being sent is not valid any more."""


class Authentication:
    """Lets nobody below `/api`, or to the metrics, without a valid token or session: that is said first.

    What stays open is looked at again: a stream before each piece of it, a worker's socket when
    something is said there and a second has passed. When the token was revoked, or has expired, nothing more
    is sent or taken.
    """

    def __init__(self, app: ASGIApp, store: AccessStore, sessions: BrowserSessions) -> None:
        self._app = app
        self._store = store
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_guarded = path.startswith("/api/") or path == METRICS_PATH
        if scope["type"] in ("http", "websocket") and is_guarded and path not in PUBLIC_PATHS:
            connection = HTTPConnection(scope)
            try:
                scope[_CALLER] = await self._authenticate(connection)
            except ApiProblem as problem:
                await _turn_away(problem, scope, receive, send)
                return
            if scope["type"] == "websocket":
                await self._talk_while_valid(connection, receive, send)
            else:
                await self._stream_while_valid(connection, receive, send)
            return
        await self._app(scope, receive, send)

    async def _stream_while_valid(self, connection: HTTPConnection, receive: Receive, send: Send) -> None:
        pieces = 0

        async def send_piece(message: Message) -> None:
            nonlocal pieces
            if message.get("more_body"):
                pieces += 1
                if pieces > 1 and not await self._is_valid(connection):
                    raise _AccessEnded
            await send(message)

        try:
            await self._app(connection.scope, receive, send_piece)
        except _AccessEnded:
            await send({"type": "http.response.body", "body": b""})

    async def _talk_while_valid(self, connection: HTTPConnection, receive: Receive, send: Send) -> None:
        checked = SYSTEM.monotonic()

        async def require_access() -> None:
            nonlocal checked
            if SYSTEM.monotonic() - checked < RECHECK_SECONDS:
                return
            checked = SYSTEM.monotonic()
            if not await self._is_valid(connection):
                await send(_closing("unauthenticated"))
                raise WebSocketDisconnect(_POLICY_VIOLATION)

        async def receive_message() -> Message:
            message = await receive()
            await require_access()
            return message

        async def send_message(message: Message) -> None:
            await require_access()
            await send(message)

        await self._app(connection.scope, receive_message, send_message)

    async def _is_valid(self, connection: HTTPConnection) -> bool:
        try:
            await self._authenticate(connection)
        except ApiProblem:
            return False
        return True

    async def _authenticate(self, connection: HTTPConnection) -> Caller:
        """Raises ApiProblem."""
        authorization = connection.headers.get("authorization")
        if authorization is None and connection.scope["type"] == "http":
            caller = await self._caller_of_session(connection)
        else:
            scheme, _, token = (authorization or "").partition(" ")
            is_bearer = scheme.lower() == "bearer" and bool(token.strip())
            caller = await caller_by_hash(self._store, token_hash(token.strip())) if is_bearer else None
        if caller is None:
            hint = "`Authorization: Bearer TOKEN`; `noetl token create` makes one"
            raise ApiProblem("unauthenticated", "a valid token is needed", hint=hint)
        return caller

    async def _caller_of_session(self, connection: HTTPConnection) -> Caller | None:
        hashed = await self._sessions.token_hash_of(connection)
        if hashed is None:
            return None
        caller = await caller_by_hash(self._store, hashed, by_session=True)
        if caller is not None:
            require_same_origin(connection, connection.scope["method"])
        return caller


class HostCheck:
    """On loopback: answers only requests to a name of this machine, or one that was allowed.

    A page of another site may have its own name lead to loopback (DNS rebinding), and then is same-origin.
    """

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            host = HTTPConnection(scope).headers.get("host", "")
            name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
            if name.lower() not in self._allowed and not is_loopback(name.lower()):
                detail = f"this server is not called `{name[:200]}`"
                hint = "`noetl server start --allow-host NAME` lets a proxy pass its own name on"
                await _turn_away(ApiProblem("forbidden", detail, hint=hint), scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _turn_away(problem: ApiProblem, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send(_closing(problem.code))
        return
    await problem_response(problem)(scope, receive, send)


def _closing(reason: str) -> Message:
    return {"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason}
