"""What takes traces, and what asks to be told which trace a request belongs to: a small HTTP server."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class TraceReceiver:
    """Takes OTLP over HTTP at `/v1/traces`; all else it answers with the `traceparent` that came. A context manager."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self._changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.receive(ExportTraceServiceRequest.FromString(body))
                self._answer(b"")

            def do_GET(self) -> None:
                self._answer(self.headers.get("traceparent", "none").encode())

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/plain")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> "TraceReceiver":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def receive(self, request: ExportTraceServiceRequest) -> None:
        with self._changed:
            for resource in request.resource_spans:
                names = {entry.key: entry.value.string_value for entry in resource.resource.attributes}
                self.services.add(names["service.name"])
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self._changed.notify_all()
