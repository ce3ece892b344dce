"""fakesnow as a server for the driver of today, in a process of its own: `python fakesnow_server.py`.

It prints its port, and ends with its standard input. Beside what fakesnow does, it says at a login what the
driver asks for since version 5, knows one password, takes null in lists of values, and stops a statement that the driver has aborted.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import fakesnow.server
import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
PASSWORD = "winter"
LOGIN = {"masterToken": "m", "validityInSeconds": 3600, "masterValidityInSeconds": 14400, "sessionId": 7}

_from_binding = fakesnow.server.from_binding
fakesnow.server.from_binding = lambda binding: None if binding["value"] is None else _from_binding(binding)

running: dict[str, Any] = {}
"""The sessions whose statements run, by the id of the request."""
seen: list[dict[str, Any]] = []


async def body_of(receive: Receive) -> bytes:
    content = b""
    while True:
        message = await receive()
        content += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return content


async def answer(send: Send, value: Any) -> None:
    content = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def log_in(scope: Message, body: bytes, send: Send) -> None:
    data = json.loads(body)["data"]
    if data.get("PASSWORD") != PASSWORD:
        message = "Incorrect username or password was specified."
        await answer(send, {"success": False, "code": "390100", "message": message, "data": {}})
        return
    parts: list[bytes] = []

    async def keep(message: Message) -> None:
        parts.append(message.get("body", b""))

    await fakesnow.server.app(scope, again(body), keep)
    response = json.loads(b"".join(parts))
    response["data"].update(LOGIN)
    await answer(send, response)


def again(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def app(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        await fakesnow.server.app(scope, receive, send)
        return
    body = await body_of(receive)
    headers = dict(scope["headers"])
    if headers.get(b"content-encoding") == b"gzip":
        import gzip

        body = gzip.decompress(body)
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"content-encoding"]
    request_id = parse_qs(scope["query_string"].decode()).get("requestId", [""])[0]
    if scope["path"] == "/seen":
        await answer(send, {"running": len(running), "requests": seen})
        return
    if scope["path"] == "/forget":
        fakesnow.server.sessions.clear()
        await answer(send, {})
        return
    seen.append({"path": scope["path"], "body": json.loads(body) if body else None})
    match scope["path"]:
        case "/session/v1/login-request":
            await log_in(scope, body, send)
        case "/queries/v1/query-request":
            token = headers.get(b"authorization", b"")[17:-1].decode()
            running[request_id] = fakesnow.server.sessions.get(token)
            try:
                await fakesnow.server.app(scope, again(body), send)
            finally:
                del running[request_id]
        case "/queries/v1/abort-request":
            aborted = json.loads(body)["requestId"]
            while aborted in running:  # again and again: DuckDB is deaf before it has begun
                running[aborted]._duck_conn.interrupt()
                await asyncio.sleep(0.02)
            await answer(send, {"success": True, "data": None})
        case _:
            await fakesnow.server.app(scope, again(body), send)


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)  # noqa: T201 - who starts it waits for that
    threading.Thread(target=end_with_input, daemon=True).start()
    uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off")).run(sockets=[listener])
