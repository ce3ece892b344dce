"""A web server for tests: a thread of this process, so that playbooks and commands can call it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class WebRequest(NamedTuple):
    """A request; `body` is what its JSON says, else None."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class WebAnswer(NamedTuple):
    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - a default of a tuple's field, never written


class WebServer(NamedTuple):
    """Where it is and what it was asked so far."""

    url: str
    requests: list[WebRequest]


@contextmanager
def web_server(answer: Callable[[WebRequest], WebAnswer]) -> Iterator[WebServer]:
    """A server that answers everything with what `answer` says, as JSON unless it is bytes."""
    requests: list[WebRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            target = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
            value = json.loads(raw) if raw and not is_form else None
            requests.append(WebRequest(self.command, target.path, query, headers, value))
            reply = answer(requests[-1])
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _reply  # noqa: N815 - the names it looks for

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield WebServer(f"http://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
