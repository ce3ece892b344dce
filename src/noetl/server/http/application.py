"""The web application: all endpoints, and the routes that others add."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from noetl.server.http.access import Authentication, HostCheck
from noetl.server.http.admin_endpoints import ADMIN_ENDPOINTS
from noetl.server.http.catalog_endpoints import CATALOG_ENDPOINTS
from noetl.server.http.editor_endpoints import EDITOR_ENDPOINTS, NET_ENDPOINT
from noetl.server.http.endpoint import JSON, Endpoint
from noetl.server.http.execution_endpoints import EXECUTION_ENDPOINTS
from noetl.server.http.execution_start import START_ENDPOINT
from noetl.server.http.history_endpoints import HISTORY_ENDPOINTS
from noetl.server.http.inbox_endpoints import INBOX_ENDPOINTS
from noetl.server.http.monitoring_endpoints import MONITORING_ENDPOINTS
from noetl.server.http.openapi import openapi_document
from noetl.server.http.operation_endpoints import OPERATION_ENDPOINTS
from noetl.server.http.overview_endpoints import OVERVIEW_ENDPOINTS
from noetl.server.http.problems import ApiProblem, problem_of, problem_response
from noetl.server.http.resources import ServerResources
from noetl.server.http.session_endpoints import session_endpoints
from noetl.server.http.statistics_endpoints import STATISTICS_ENDPOINT
from noetl.server.http.stream_endpoint import STREAM_ENDPOINT
from noetl.server.http.view_endpoints import VIEW_ENDPOINTS
from noetl.server.http.worker_endpoints import WORKER_ENDPOINTS
from noetl.web.assets import PageRoute

ENDPOINTS: tuple[Endpoint, ...] = (
    NET_ENDPOINT,
    STATISTICS_ENDPOINT,
    *CATALOG_ENDPOINTS,
    *EDITOR_ENDPOINTS,
    START_ENDPOINT,
    *EXECUTION_ENDPOINTS,
    *VIEW_ENDPOINTS,
    *OPERATION_ENDPOINTS,
    *HISTORY_ENDPOINTS,
    STREAM_ENDPOINT,
    *INBOX_ENDPOINTS,
    *OVERVIEW_ENDPOINTS,
    *session_endpoints(lambda: ENDPOINTS),
    *ADMIN_ENDPOINTS,
    *WORKER_ENDPOINTS,
    *MONITORING_ENDPOINTS,
)
"""In the order of the documentation; of two that match a path, the first is taken."""
RESERVED_PATHS = ("/api", "/healthz", "/readyz", "/metrics")
"""What is not the page's, whether there is something or not."""


def create_application(
    resources: ServerResources, routes: Sequence[BaseRoute] = (), hosts: frozenset[str] | None = None
) -> Starlette:
    """Everything below `/api` needs a token, the further `routes` too, unless it is made public there.

    With `hosts` it answers only to these names, and those of loopback.
    """
    checks = [Middleware(HostCheck, allowed=hosts)] if hosts is not None else []
    access = Middleware(Authentication, store=resources.store, sessions=resources.browser_sessions)
    document = msgspec.json.encode(openapi_document(ENDPOINTS))

    async def read_openapi(_request: Request) -> Response:
        return Response(document, media_type=JSON)

    return Starlette(
        routes=[
            *routes,
            Route("/api/openapi.json", read_openapi),
            *_routes(resources),
            PageRoute(RESERVED_PATHS),
        ],
        middleware=[*checks, access],
        exception_handlers={HTTPException: _on_http_exception, Exception: _on_error},
    )


def _routes(resources: ServerResources) -> list[BaseRoute]:
    """One route for each path: a method that it does not know is 405, and not another path's."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(path, _dispatch(methods, resources), methods=list(methods)) for path, methods in by_path.items()
    ]


def _dispatch(
    methods: dict[str, Endpoint], resources: ServerResources
) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await methods[method].respond(request, resources)

    return respond


async def _on_http_exception(_request: Request, error: Exception) -> Response:
    """What no endpoint has answered: there is no such path, or it does not take the method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for that
    if error.status_code == 405:
        detail = "the path does not take this method"
        problem = ApiProblem("method_not_allowed", detail, headers=error.headers)
    elif error.status_code == 404:
        problem = ApiProblem("not_found", "there is nothing by this path")
    else:
        problem = ApiProblem("invalid_request", error.detail, status=error.status_code)
    return problem_response(problem)


async def _on_error(_request: Request, error: Exception) -> Response:
    """A bug of ours: the log has the traceback, who asked gets no details."""
    problem: Any = problem_of(error)
    return problem_response(
        problem or ApiProblem("store_unavailable", "the server failed; its log says more", status=500)
    )
