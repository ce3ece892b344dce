"""The worker plane over HTTP: a WebSocket for each worker, and the same messages in requests of their own."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from noetl.model.errors import ResultError
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
from noetl.ports.results import ResultMissing
from noetl.server.plane.sessions import WorkerSession
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.stores.results.result_key import split_store_key

Authenticate: TypeAlias = Callable[[HTTPConnection], bool]
"""Whether a connection may act as a worker."""

LONG_POLL = 20.0
"""Seconds that a request for work waits for some."""
MAX_BODY = 64 << 20
CHUNK = 1 << 20
JSON = "application/json"
OCTETS = "application/octet-stream"
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")
CLOSE_MALFORMED = 4400
CLOSE_UNKNOWN = 4404
"""The session is over, or another connection has taken its part: register again."""
CLOSE_REJECTED = 4406


def worker_routes(plane: WorkerPlane, authenticate: Authenticate) -> list[BaseRoute]:
    """All of `/api/worker`. For each, `authenticate` is asked first."""
    endpoints = _Endpoints(plane)

    def guarded(
        endpoint: Callable[[Request], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            if not authenticate(request):
                return _problem(403, "forbidden", "this is for workers: it needs a token of theirs")
            try:
                return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it
            except MessageMalformed as error:
                endpoints.distrust(request)
                return _problem(400, "invalid_request", str(error))

        return respond

    async def stream(websocket: WebSocket) -> None:
        if authenticate(websocket):
            await endpoints.stream(websocket)
        else:
            await websocket.close(1008, "forbidden")

    posts = ("register", "claim", "report", "heartbeat", "release", "fetch")
    return [
        WebSocketRoute("/api/worker/stream", stream),
        *(Route(f"/api/worker/{name}", guarded(endpoints.post), methods=["POST"]) for name in posts),
        Route("/api/worker/results/{key:path}", guarded(endpoints.get_result), methods=["GET"]),
        Route("/api/worker/results/{key:path}", guarded(endpoints.put_result), methods=["PUT"]),
    ]


class _Endpoints:
    def __init__(self, plane: WorkerPlane) -> None:
        self._plane = plane

    # The stream.

    async def stream(self, websocket: WebSocket) -> None:
        """One worker, until it leaves or is to register again."""
        if SUBPROTOCOL not in websocket.scope.get("subprotocols", ()):
            await websocket.close(CLOSE_REJECTED, f"the subprotocol is {SUBPROTOCOL}")
            return
        await websocket.accept(SUBPROTOCOL)
        session = await self._greet(websocket)
        if session is None:
            return
        tasks = [
            asyncio.create_task(self._receive(websocket, session)),
            asyncio.create_task(self._send(websocket, session)),
            asyncio.create_task(session.superseded.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        code, reason = CLOSE_UNKNOWN, "register again"
        if any(isinstance(end, MessageMalformed) for end in ends):
            self._plane.sessions.end(session)
            code, reason = CLOSE_MALFORMED, "malformed message"
        with suppress(RuntimeError, WebSocketDisconnect):  # it may be closed already
            await websocket.close(code, reason)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, MessageMalformed | WebSocketDisconnect):
                raise end

    async def _greet(self, websocket: WebSocket) -> WorkerSession | None:
        try:
            message = decode_from_worker(await _frame(websocket))
        except (MessageMalformed, WebSocketDisconnect):
            message = None
        if not isinstance(message, Register):
            with suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(CLOSE_MALFORMED, "a worker registers first")
            return None
        session, answer = self._plane.register(message)
        with suppress(WebSocketDisconnect):
            await websocket.send_bytes(encode_message(answer))
            if session is None:
                await websocket.close(CLOSE_REJECTED, "rejected")
        return session

    async def _receive(self, websocket: WebSocket, session: WorkerSession) -> None:
        while True:
            message = decode_from_worker(await _frame(websocket))
            answer = await self._plane.answer(session, message)
            if answer is not None:
                session.outgoing.put(answer)

    async def _send(self, websocket: WebSocket, session: WorkerSession) -> None:
        outgoing = session.outgoing
        while True:
            for message in await outgoing.take():
                await websocket.send_bytes(encode_message(message))

    # The same by requests.

    async def post(self, request: Request) -> Response:
        """One message. The answer is a list of messages, which may be empty."""
        message = decode_from_worker(await _body(request))
        if isinstance(message, Register):
            registered, welcome = self._plane.register(message)
            return _messages([welcome], 200 if registered is not None else 409)
        session = self._session_of(request)
        if session is None:
            return _problem(404, "lost", "this session is over: register again")
        answer = await self._plane.answer(session, message)
        if isinstance(message, WorkerReport | ClaimCredit):
            with suppress(TimeoutError):
                return _messages(await asyncio.wait_for(session.outgoing.take(), LONG_POLL))
        return _messages([answer] if answer is not None else [])

    def distrust(self, request: Request) -> None:
        """Whoever sends what is no message has lost its leases."""
        if (session := self._session_of(request)) is not None:
            self._plane.sessions.end(session)

    def _session_of(self, request: Request) -> WorkerSession | None:
        return self._plane.sessions.get(request.headers.get(SESSION_HEADER, ""))

    # Results.

    async def get_result(self, request: Request) -> Response:
        """The bytes under a key of what the session has claimed, in pieces; or a range of them."""
        key = request.path_params["key"]
        if (refusal := self._refuse_key(request, key)) is not None:
            return refusal
        try:
            if (part := _RANGE.fullmatch(request.headers.get("range", ""))) is not None:
                start, last = int(part[1]), part[2]
                data = await self._plane.results.read(key, start, int(last) + 1 if last else None)
                return Response(data, 206, media_type=OCTETS)
            context = self._plane.results.local(key)
            path = await context.__aenter__()
        except ResultMissing as error:
            return _problem(404, "not_found", str(error))
        except (ResultError, ValueError) as error:
            return _problem(409, "conflict", str(error))

        async def pieces() -> AsyncIterator[bytes]:
            try:
                with path.open("rb") as file:
                    while piece := await asyncio.to_thread(file.read, CHUNK):
                        yield piece
            finally:
                await context.__aexit__(None, None, None)

        headers = {"content-length": str(path.stat().st_size)}
        return StreamingResponse(pieces(), headers=headers, media_type=OCTETS)

    async def put_result(self, request: Request) -> Response:
        """Keeps the bytes of the request under their key; durable when it is answered."""
        key = request.path_params["key"]
        if (refusal := self._refuse_key(request, key)) is not None:
            return refusal
        compression = request.query_params.get("compression", "none")
        results = self._plane.results
        path = results.scratch(split_store_key(key)[1].partition("/")[0]) / f".upload-{uuid4().hex}"
        try:
            digest = await _receive_file(request, path)
            if digest != key.rpartition("/")[2]:
                return _problem(422, "invalid_request", f"`{key}` is not the key of these bytes")
            await results.put_file(key, path, compression)
        except ValueError as error:
            return _problem(422, "invalid_request", str(error))
        except ResultError as error:
            return _problem(503, "store_unavailable", str(error))
        finally:
            path.unlink(missing_ok=True)
        return Response(status_code=204)

    def _refuse_key(self, request: Request, key: str) -> Response | None:
        session = self._session_of(request)
        if session is None:
            return _problem(404, "lost", "this session is over: register again")
        execution_id = split_store_key(key)[1].partition("/")[0]
        if not session.owns_run_of(execution_id):
            return _problem(403, "forbidden", f"this worker has claimed nothing of {execution_id}")
        return None


async def _frame(websocket: WebSocket) -> bytes | str:
    received = await websocket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1000))
    return received.get("bytes") or received.get("text") or b""


async def _body(request: Request) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_BODY:
            raise MessageMalformed(f"a message of more than {MAX_BODY >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)


async def _receive_file(request: Request, path: Path) -> str:
    """The SHA-256 of what came."""
    digest = hashlib.sha256()
    with path.open("xb") as file:
        async for piece in request.stream():
            digest.update(piece)
            await asyncio.to_thread(file.write, piece)
    return digest.hexdigest()


def _messages(messages: list[Message], status: int = 200) -> Response:
    return Response(b"[" + b",".join(map(encode_message, messages)) + b"]", status, media_type=JSON)


def _problem(status: int, code: str, detail: str) -> Response:
    body = msgspec.json.encode({"title": code, "status": status, "code": code, "detail": detail})
    return Response(body, status, media_type="application/problem+json")
