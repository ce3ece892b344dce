"""A stand-in for Google Cloud Storage: what obstore asks of its XML interface, and nothing else.

No emulator was found that obstore accepts (they send no ETag). So this shows that we speak as obstore does, not that
Google answers so.
"""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

BUCKET = "noetl-tests"
FORBIDDEN = "noetl-forbidden"
"""A bucket that nobody may use."""


class StoredObject(NamedTuple):
    data: bytes
    generation: int
    written: datetime

    @property
    def headers(self) -> dict[str, str]:
        return {
            "ETag": f'"{hashlib.md5(self.data).hexdigest()}"',  # noqa: S324 - as that server does
            "Last-Modified": format_datetime(self.written, usegmt=True),
            "x-goog-generation": str(self.generation),
        }


class GcsServer:
    """The objects by `BUCKET/NAME`, and what was asked: method, path and headers."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.objects: dict[str, StoredObject] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.failing = False
        """Whether it answers 503 to everything."""
        self.forbids_signed = False
        """Whether it answers 403 to a signed URL."""
        self.cuts_signed = False
        """Whether it ends the connection of who comes with a signed URL."""
        self.refused = threading.Event()
        """It has done so."""
        self._generation = 0
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)

    @property
    def environment(self) -> dict[str, str]:
        private_key = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        account = {
            "type": "service_account",
            "client_email": "tests@noetl.iam.gserviceaccount.com",
            "private_key": private_key,
            "private_key_id": "1",
        }
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": msgspec.json.encode(account).decode()}

    def location(self, folder: str, bucket: str = BUCKET) -> str:
        return f"gs://{bucket}/{quote(folder)}?endpoint={self.url}"

    def put(self, name: str, data: bytes) -> StoredObject:
        self._generation += 1
        stored = self.objects[name] = StoredObject(data, self._generation, datetime.now(UTC))
        return stored


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gcs: GcsServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the class above
        pass

    def __getattr__(self, name: str) -> Any:
        """The class above calls `do_` and the method."""
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        name, query = unquote(parts.path).lstrip("/"), parse_qs(parts.query, keep_blank_values=True)
        with self.gcs.lock:
            self.gcs.requests.append((self.command, self.path, dict(self.headers)))
            bucket, _, key = name.partition("/")
            if self.gcs.cuts_signed and "X-Goog-Signature" in query:
                self.close_connection = True
            elif self.gcs.failing:
                self.gcs.refused.set()
                self._answer(503)
            elif (
                (self.gcs.forbids_signed and "X-Goog-Signature" in query)
                or not self._is_signed_in(query)
                or bucket == FORBIDDEN
            ):
                self._answer(403)
            elif bucket != BUCKET:
                self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            elif not key:
                self._list(query)
            elif "uploadId" in query or "uploads" in query:
                self._upload(name, query, body)
            else:
                self._object(name, body)

    def _is_signed_in(self, query: dict[str, list[str]]) -> bool:
        """With a token that the account signed, or a signed URL. Who signed it is not looked at."""
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        return token.count(".") == 2 or bool(query.get("X-Goog-Signature"))

    def _object(self, name: str, body: bytes) -> None:
        if self.command == "PUT":
            self._put(name, body)
        elif self.command == "DELETE":
            self._answer(204 if self.gcs.objects.pop(name, None) is not None else 404)
        else:
            self._get(name)

    def _put(self, name: str, body: bytes) -> None:
        wanted = self.headers.get("x-goog-if-generation-match")
        there = self.gcs.objects.get(name)
        if wanted is not None and int(wanted) != (there.generation if there else 0):
            self._answer(412)
            return
        if source := self.headers.get("x-goog-copy-source"):
            copied = self.gcs.objects.get(unquote(source).lstrip("/"))
            if copied is None:
                self._answer(404)
                return
            body = copied.data
        self._answer(200, headers=self.gcs.put(name, body).headers)

    def _get(self, name: str) -> None:
        stored = self.gcs.objects.get(name)
        if stored is None:
            self._answer(404)
            return
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        if span is None:
            self._answer(200, stored.data, stored.headers)
            return
        start, end = int(span[1]), int(span[2] or len(stored.data)) + 1
        if start >= len(stored.data):
            self._answer(416)
            return
        part = stored.data[start:end]
        content_range = f"bytes {start}-{start + len(part) - 1}/{len(stored.data)}"
        self._answer(206, part, {**stored.headers, "Content-Range": content_range})

    def _upload(self, name: str, query: dict[str, list[str]], body: bytes) -> None:
        """In parts: begun, sent, put together or given up."""
        if "uploads" in query:
            upload = str(len(self.gcs.uploads) + 1)
            self.gcs.uploads[upload] = {}
            xml = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, xml.encode())
            return
        upload = query["uploadId"][0]
        if self.command == "PUT":
            number = int(query["partNumber"][0])
            self.gcs.uploads[upload][number] = body
            self._answer(200, headers={"ETag": f'"{number}"'})
        elif self.command == "DELETE":
            del self.gcs.uploads[upload]
            self._answer(204)
        else:
            parts = self.gcs.uploads.pop(upload)
            stored = self.gcs.put(name, b"".join(parts[number] for number in sorted(parts)))
            tag = escape(stored.headers["ETag"])
            xml = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
            self._answer(200, xml.encode(), {"x-goog-generation": str(stored.generation)})

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        contents, folders = "", set[str]()
        for name, stored in sorted(self.gcs.objects.items()):
            key = name.partition("/")[2]
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            written = stored.written.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            tag = escape(stored.headers["ETag"])
            contents += (
                f"<Contents><Key>{escape(key)}</Key><Size>{len(stored.data)}</Size>"
                f"<LastModified>{written}</LastModified><ETag>{tag}</ETag></Contents>"
            )
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        self._answer(200, f"<ListBucketResult>{contents}{prefixes}</ListBucketResult>".encode())

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def gcs_server() -> Iterator[GcsServer]:
    """On a port that the system chooses, in a thread of this process."""

    class Handler(_Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.gcs = GcsServer(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Handler.gcs
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """The stand-in of this process."""
    with gcs_server() as server:
        yield server
