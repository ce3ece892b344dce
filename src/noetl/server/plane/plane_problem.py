"""What went wrong with a request of a worker."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from noetl.ports.http_api import RETRY_SECONDS, ProblemCode, ProblemDocument


def plane_problem(
    status: int, code: ProblemCode, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    document = ProblemDocument(
        type=f"urn:noetl:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
    )
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": str(RETRY_SECONDS), **(headers or {})}
    return Response(msgspec.json.encode(document), status, headers, "application/problem+json")
