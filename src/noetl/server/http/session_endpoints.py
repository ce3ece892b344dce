"""Who asks: the caller, and sessions of browsers."""

from collections.abc import Callable, Sequence

import msgspec
from starlette.responses import Response

from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.page_api import CallerAnswer, LoginLink, SessionRequest
from noetl.server.http.access import SESSION_PATH, Caller, caller_by_hash, may_act_as
from noetl.server.http.browser_sessions import LINK_SECONDS, require_same_origin
from noetl.server.http.endpoint import JSON, Answer, ApiCall, Endpoint
from noetl.server.http.problems import ApiProblem
from noetl.settings import installed_release, machine_zone
from noetl.stores.api_tokens import token_hash

Table = Callable[[], Sequence[Endpoint]]
"""All endpoints of the server: what a role may do follows from them."""


def session_endpoints(table: Table) -> tuple[Endpoint, ...]:
    async def read_caller(call: ApiCall) -> Answer:
        return Answer(_caller_answer(call.caller, table()))

    async def open_session(call: ApiCall) -> Response:
        """Sets the cookie."""
        hashed = await _log_in(call)
        body = msgspec.json.encode(_caller_answer(call.caller, table()))
        response = Response(body, 201, media_type=JSON)
        call.resources.browser_sessions.open(response, hashed, secure=_is_secure(call))
        return response

    return (
        Endpoint(
            name="open_session",
            method="POST",
            path=SESSION_PATH,
            role=None,
            summary="Open a session of a browser, with a token or the code of a login link: sets a cookie.",
            handler=open_session,
            answers=(CallerAnswer,),
            status=201,
            body=SessionRequest,
            codes=("unauthenticated", "forbidden", "invalid_request", "store_unavailable"),
        ),
        Endpoint(
            name="close_session",
            method="DELETE",
            path=SESSION_PATH,
            role=None,
            summary="End the session: its cookie is refused from now on. Sessions end with their token, too.",
            handler=_close_session,
            status=204,
            codes=("forbidden", "store_unavailable"),
        ),
        Endpoint(
            name="create_login_link",
            method="POST",
            path="/api/session/link",
            role="viewer",
            summary="A link that opens one session as who asks, within an hour.",
            handler=_create_login_link,
            answers=(LoginLink,),
            status=201,
        ),
        Endpoint(
            name="read_caller",
            method="GET",
            path="/api/me",
            role="viewer",
            summary="Who asks, with which role, and what that allows.",
            handler=read_caller,
            answers=(CallerAnswer,),
        ),
    )


async def _log_in(call: ApiCall) -> str:
    """The hash of the token that a session is asked for; the call is the caller's from now on."""
    request, body = call.request, call.body
    # A site could else log somebody in as somebody else; programs say neither header.
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        require_same_origin(request, request.method)
    if (body.token is None) == (body.code is None):
        raise ApiProblem("invalid_request", "a session wants a `token` or the `code` of a link")
    if body.token is not None:
        hashed: str | None = token_hash(body.token.strip())
    else:
        hashed = call.resources.browser_sessions.use_code(body.code)
    caller = await caller_by_hash(call.resources.store, hashed, by_session=True) if hashed else None
    if hashed is None or caller is None:
        if body.token is not None:
            raise ApiProblem("unauthenticated", "the token is not valid")
        hint = "`noetl server login` prints another one"
        raise ApiProblem("unauthenticated", "the link was used before, or is too old", hint=hint)
    if caller.role == "worker":
        raise ApiProblem("forbidden", "the token of a worker opens no session")
    call.caller = caller
    return hashed


async def _close_session(call: ApiCall) -> Response:
    require_same_origin(call.request, call.request.method)
    sessions, response = call.resources.browser_sessions, Response(status_code=204)
    hashed = await sessions.token_hash_of(call.request)
    caller = await caller_by_hash(call.resources.store, hashed, by_session=True) if hashed else None
    await sessions.close(call.request, response, secure=_is_secure(call))
    if caller is not None:
        call.caller = caller  # the audit has who left; without a session nobody did
    return response


async def _create_login_link(call: ApiCall) -> Answer:
    code = call.resources.browser_sessions.make_code(call.caller.token_hash)
    expires_at = iso_time(now_micros() + LINK_SECONDS * 1_000_000)
    return Answer(LoginLink(path=login_path(code), expires_at=expires_at), 201)


def login_path(code: str) -> str:
    """Where the page takes the code of a link."""
    return f"/login?code={code}"


def _is_secure(call: ApiCall) -> bool:
    return call.request.url.scheme == "https"


def _caller_answer(caller: Caller, table: Sequence[Endpoint]) -> CallerAnswer:
    return CallerAnswer(
        name=caller.name,
        role=caller.role,
        may=[row.name for row in table if row.role is None or may_act_as(caller.role, row.role)],
        session=caller.by_session,
        release=installed_release(),
        zone=machine_zone(),
    )
