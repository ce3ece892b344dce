"""The web application: all endpoints, and the routes that others add."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

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
_ROUTE = "noetl.route"
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

    all_routes = [*routes, Route("/api/openapi.json", read_openapi), *_routes(resources)]
    return Starlette(
        routes=[FixedPaths(all_routes), *all_routes, PageRoute(RESERVED_PATHS)],
        middleware=[*checks, access],
        exception_handlers={HTTPException: _on_http_exception, Exception: _on_error},
    )


def _routes(resources: ServerResources) -> list[BaseRoute]:
    """One route for each path: a method that it does not know is 405, and not another path's."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(path, _PathEndpoints(methods, resources), methods=list(methods))
        for path, methods in by_path.items()
    ]


class _PathEndpoints:
    """Those of one path, by method.

    An application, and not a function, around which each request would have one more layer for errors: what
    answers all others has that, too.
    """

    def __init__(self, methods: Mapping[str, Endpoint], resources: ServerResources) -> None:
        self._methods = methods
        self._resources = resources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        response = await self._methods[method].respond(Request(scope, receive, send), self._resources)
        await response(scope, receive, send)


class FixedPaths(BaseRoute):
    """The fast path of routes whose path has no parts: one look, where else each would be tried in its turn.

    What it does not know is left to the routes, which give the same answers.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._routes: dict[tuple[str, str], Route] = {}
        for route in routes:
            if isinstance(route, Route) and "{" not in route.path:
                for method in route.methods or ():
                    self._routes.setdefault((method, route.path), route)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http":
            route = self._routes.get((scope["method"], scope["path"]))
            if route is not None:
                return Match.FULL, {"endpoint": route.endpoint, "path_params": {}, _ROUTE: route}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[_ROUTE].handle(scope, receive, send)


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
