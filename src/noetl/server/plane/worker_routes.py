"""The worker plane over HTTP: a WebSocket for each worker, and the same messages in requests of their own."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from noetl.ports.control import (
    SESSION_HEADER,
    SUBPROTOCOL,
    ClaimCredit,
    Message,
    MessageMalformed,
    Register,
    WorkerReport,
    decode_from_worker,
    encode_message,
)
from noetl.ports.store import StoreError
from noetl.server.plane.plane_problem import plane_problem
from noetl.server.plane.result_routes import WorkerResults
from noetl.server.plane.sessions import Outgoing, WorkerSession
from noetl.server.plane.worker_plane import WorkerPlane

Authenticate: TypeAlias = Callable[[HTTPConnection], str | None]
"""The name of the token that a connection acts as a worker with; None if it may not."""

CountRequest: TypeAlias = Callable[[str, str, int], None]
"""Gets the method, the path of the route, and the status of an answer."""

LONG_POLL = 20.0
"""Seconds that a request for work waits for some."""
MAX_BODY = 64 << 20
JSON = "application/json"
RESULT_PATH = "/api/results/{execution_id}/{key}"
CLOSE_MALFORMED = 4400
CLOSE_UNKNOWN = 4404
"""The session is over, or another connection has taken its part: register again."""
CLOSE_REJECTED = 4406
CLOSE_LATER = 1013


def worker_routes(
    plane: WorkerPlane, authenticate: Authenticate, count: CountRequest = lambda *_: None
) -> list[BaseRoute]:
    """All of `/api/worker`. For each, `authenticate` is asked first; `count` hears what was answered."""
    endpoints = _Endpoints(plane)

    def guarded(
        endpoint: Callable[[Request], Awaitable[Response]], path: str
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            response = await answer(request)
            count(request.method, path, response.status_code)
            return response

        async def answer(request: Request) -> Response:
            if (token := authenticate(request)) is None:
                return plane_problem(403, "forbidden", "this is for workers: it needs a token of theirs")
            request.state.token = token
            try:
                return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it
            except MessageMalformed as error:
                endpoints.distrust(request)
                if isinstance(error, _MessageTooLarge):
                    return plane_problem(413, "too_large", str(error))
                return plane_problem(400, "invalid_request", str(error))
            except StoreError as error:
                return plane_problem(503, "store_unavailable", str(error), {"Retry-After": "1"})

        return respond

    async def stream(websocket: WebSocket) -> None:
        if (token := authenticate(websocket)) is not None:
            await endpoints.stream(websocket, token)
        else:
            await websocket.close(1008, "forbidden")

    async def want_upgrade(_request: Request) -> Response:
        detail = f"this is a WebSocket with the subprotocol {SUBPROTOCOL}"
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        return plane_problem(426, "unsupported_protocol", detail, headers)

    names = ("register", "claim", "report", "heartbeat", "release", "fetch")
    posts = [f"/api/worker/{name}" for name in names]
    return [
        WebSocketRoute("/api/worker/stream", stream),
        Route("/api/worker/stream", guarded(want_upgrade, "/api/worker/stream"), methods=["GET"]),
        *(Route(path, guarded(endpoints.post, path), methods=["POST"]) for path in posts),
        _RouteOfWorkers("GET", RESULT_PATH, guarded(endpoints.results.get, RESULT_PATH), authenticate),
        _RouteOfWorkers("PUT", RESULT_PATH, guarded(endpoints.results.put, RESULT_PATH), authenticate),
    ]


class _MessageTooLarge(MessageMalformed):
    def __init__(self) -> None:
        super().__init__(f"the message is larger than {MAX_BODY >> 20} MiB")


class _RouteOfWorkers(Route):
    """Of a path that the API has for others, too, who are left to that."""

    def __init__(
        self, method: str, path: str, endpoint: Callable[..., Any], authenticate: Authenticate
    ) -> None:
        super().__init__(path, endpoint, methods=[method])
        self._authenticate = authenticate

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        if match is not Match.FULL or self._authenticate(HTTPConnection(scope)) is None:
            return Match.NONE, {}
        return match, child_scope


class _Endpoints:
    def __init__(self, plane: WorkerPlane) -> None:
        self._plane = plane
        self.results = WorkerResults(lambda: plane.results, self._session_of)

    # The stream.

    async def stream(self, websocket: WebSocket, token: str) -> None:
        """One worker, until it leaves or is to register again."""
        if SUBPROTOCOL not in websocket.scope.get("subprotocols", ()):
            await websocket.close(CLOSE_REJECTED, f"the subprotocol is {SUBPROTOCOL}")
            return
        await websocket.accept(SUBPROTOCOL)
        connection = await self._greet(websocket, token)
        if connection is None:
            return
        session = connection.session
        tasks = [
            asyncio.create_task(self._receive(websocket, connection)),
            asyncio.create_task(self._send(websocket, connection.outgoing)),
            asyncio.create_task(connection.superseded.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        if any(isinstance(end, WebSocketDisconnect) for end in ends):
            self._plane.disconnected(session, connection.outgoing)
        code, reason = CLOSE_UNKNOWN, "register again"
        if any(isinstance(end, MessageMalformed) for end in ends):
            self._plane.sessions.end(session)
            code, reason = CLOSE_MALFORMED, "malformed message"
        with suppress(RuntimeError, WebSocketDisconnect):  # it may be closed already
            await websocket.close(code, reason)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, MessageMalformed | WebSocketDisconnect):
                raise end

    async def _greet(self, websocket: WebSocket, token: str) -> "_Connection | None":
        try:
            message = decode_from_worker(await _frame(websocket))
        except (MessageMalformed, WebSocketDisconnect):
            message = None
        if not isinstance(message, Register):
            with suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(CLOSE_MALFORMED, "a worker registers first")
            return None
        try:
            session, answer = await self._plane.register(message, token)
        except StoreError:
            with suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(CLOSE_LATER, "the store does not answer: try again")
            return None
        # Before anything is awaited: the worker may come back over another connection.
        connection = (
            _Connection(session, session.outgoing, session.superseded) if session is not None else None
        )
        with suppress(WebSocketDisconnect):
            await websocket.send_bytes(encode_message(answer))
            if session is None:
                await websocket.close(CLOSE_REJECTED, "rejected")
        return connection

    async def _receive(self, websocket: WebSocket, connection: "_Connection") -> None:
        while True:
            message = decode_from_worker(await _frame(websocket))
            answer = await self._plane.answer(connection.session, message)
            if answer is not None:
                connection.outgoing.put(answer)

    async def _send(self, websocket: WebSocket, outgoing: Outgoing) -> None:
        while True:
            for message in await outgoing.take():
                await websocket.send_bytes(encode_message(message))

    # The same by requests.

    async def post(self, request: Request) -> Response:
        """One message. The answer is a list of messages, which may be empty."""
        message = decode_from_worker(await _body(request))
        if isinstance(message, Register):
            registered, welcome = await self._plane.register(message, request.state.token)
            return _messages([welcome], 200 if registered is not None else 409)
        session = self._session_of(request)
        if session is None:
            return plane_problem(404, "lost", "this session is over: register again")
        answer = await self._plane.answer(session, message)
        # Who has another request waiting gets the acknowledgement there: this one would wait for nothing.
        if isinstance(message, ClaimCredit) or (
            isinstance(message, WorkerReport) and not session.outgoing.awaited
        ):
            with suppress(TimeoutError):
                return _messages(await asyncio.wait_for(session.outgoing.take(), LONG_POLL))
        return _messages([answer] if answer is not None else [])

    def distrust(self, request: Request) -> None:
        """Whoever sends what is no message has lost its leases."""
        if (session := self._session_of(request)) is not None:
            self._plane.sessions.end(session)

    def _session_of(self, request: Request) -> WorkerSession | None:
        session = self._plane.sessions.get(request.headers.get(SESSION_HEADER, ""))
        return session if session is not None and session.token == request.state.token else None


class _Connection(NamedTuple):
    """What a session had when it connected: a later connection has others."""

    session: WorkerSession
    outgoing: Outgoing
    superseded: asyncio.Event


async def _frame(websocket: WebSocket) -> bytes | str:
    received = await websocket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1000))
    return received.get("bytes") or received.get("text") or b""


async def _body(request: Request) -> bytes:
    """Raises MessageMalformed."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY:
        raise _MessageTooLarge
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_BODY:
            raise _MessageTooLarge
        pieces.append(piece)
    return b"".join(pieces)


def _messages(messages: list[Message], status: int = 200) -> Response:
    return Response(b"[" + b",".join(map(encode_message, messages)) + b"]", status, media_type=JSON)
