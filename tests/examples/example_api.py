"""The API that the HTTP examples ask: orders that are busy at first, receipts, and lists in pages."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

SIZE = 2
LISTS: dict[str, list[Any]] = {
    "users": [{"id": 1}, {"id": 2}, {"id": 3}],
    "orders": [{"id": 10}],
}

PRODUCTS = [{"id": 1, "name": " bolts", "price": 9.5}, {"id": 2, "name": "it's nuts", "price": 0.25}]


class ExampleApi(ThreadingHTTPServer):
    """Counts what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ExampleApi

    def do_GET(self) -> None:
        first = ("GET", self.path) not in self.server.requests
        self.server.requests.append(("GET", self.path))
        parts = urlsplit(self.path)
        if parts.path == "/products" and self.headers["Authorization"] == "Bearer let me in":
            self._answer(200, PRODUCTS)
        elif parts.path == "/orders/1001":
            self._answer(*((503, None) if first else (200, {"id": 1001, "amount": 42})))
        elif (items := LISTS.get(parts.path[1:])) is not None:
            end = int(parse_qs(parts.query)["page"][0]) * SIZE
            self._answer(200, {"items": items[end - SIZE : end], "has_more": end < len(items)})
        else:
            self._answer(404, {"message": "not here"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(("POST", self.headers["Idempotency-Key"]))
        self._answer(201, {"id": f"r-{body['order']}-{body['amount']}"})

    def _answer(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has there
        """Says nothing: standard error belongs to the tests."""


@contextmanager
def example_api() -> Iterator[ExampleApi]:
    with ExampleApi() as api:
        thread = Thread(target=api.serve_forever)
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()
