"""What went wrong with a request of a worker."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response


def plane_problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode({"title": code, "status": status, "code": code, "detail": detail})
    return Response(body, status, headers, "application/problem+json")
