"""Who may do what: tokens, roles, and the check of every request below `/api`."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from noetl.model.timestamp import now_micros
from noetl.ports.catalog import AccessStore
from noetl.ports.http_api import ROLES, Role
from noetl.server.http.problems import ApiProblem, problem_response
from noetl.stores.api_tokens import is_valid_token, token_hash

METRICS_PATH = "/metrics"
PUBLIC_PATHS = frozenset({"/api/openapi.json"})
_CALLER = "noetl.caller"


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


class Authentication:
    """Lets nobody below `/api`, or to the metrics, without a valid token: that is said first."""

    def __init__(self, app: ASGIApp, store: AccessStore) -> None:
        self._app = app
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_guarded = path.startswith("/api/") or path == METRICS_PATH
        if scope["type"] in ("http", "websocket") and is_guarded and path not in PUBLIC_PATHS:
            caller = await self._authenticate(HTTPConnection(scope).headers)
            if caller is None:
                await self._turn_away(scope, receive, send)
                return
            scope[_CALLER] = caller
        await self._app(scope, receive, send)

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
            await send({"type": "websocket.close", "code": 1008, "reason": "unauthenticated"})
            return
        problem = ApiProblem(
            "unauthenticated",
            "a valid token is needed",
            hint="`Authorization: Bearer TOKEN`; `noetl token create` makes one",
        )
        await problem_response(problem)(scope, receive, send)
