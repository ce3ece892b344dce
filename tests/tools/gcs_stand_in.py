"""A stand-in for Google Cloud Storage: the part of its XML interface that the client uses, for one token."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

TOKEN = "token-of-the-tests"
_MODIFIED = "Wed, 18 Nov 2026 10:00:00 GMT"


class GcsStandIn:
    """Buckets by name, each with its objects; what is not signed by `TOKEN` is refused."""

    def __init__(self, url: str, *buckets: str) -> None:
        self.url = url
        self.buckets: dict[str, dict[str, bytes]] = {name: {} for name in buckets}

    @property
    def auth(self) -> dict[str, Any]:
        return {"endpoint": self.url, "access_token": TOKEN}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: GcsStandIn

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _object(self, data: bytes) -> None:
        tag = f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
        self._answer(200, data, ETag=tag, Last_Modified=_MODIFIED)

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, name = unquote(parts.path).removeprefix("/").partition("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401)
        elif (objects := self.store.buckets.get(bucket)) is None:
            self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
        elif "list-type" in query:
            self._list(objects, query.get("prefix", [""])[0])
        elif self.command == "PUT":
            source = self.headers.get("x-goog-copy-source")
            data = body if source is None else objects[unquote(source).removeprefix("/").partition("/")[2]]
            objects[name] = data
            self._object(data if source is None else b"")
        elif name not in objects:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif self.command == "DELETE":
            del objects[name]
            self._answer(204)
        else:
            self._object(objects[name])

    do_GET = do_HEAD = do_PUT = do_DELETE = _serve  # noqa: N815 - the names that the base class looks for

    def _list(self, objects: dict[str, bytes], prefix: str) -> None:
        items = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>1</ETag>"
            "<LastModified>2026-11-18T10:00:00.000Z</LastModified></Contents>"
            for name, data in sorted(objects.items())
            if name.startswith(prefix)
        )
        self._answer(200, f"<ListBucketResult>{items}</ListBucketResult>".encode())


@contextmanager
def gcs_stand_in(*buckets: str) -> Iterator[GcsStandIn]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    store = GcsStandIn(f"http://127.0.0.1:{server.server_port}", *buckets)
    server.RequestHandlerClass = type("Handler", (_Handler,), {"store": store})
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
