"""The built page over HTTP: its files, and `index.html` for every path that is a place of the page."""

import re
from collections.abc import Iterable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

PAGE = Path(__file__).parent / "page"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}
_ASSET = re.compile(r"/assets/([\w-]+(\.js|\.css))")
_PREFIX = re.compile(r"(?:/[\w.~-]+)+/?")
_NOT_BUILT = """\
The page is not built; the API works, and /api/openapi.json says what it has.
In a checkout, scripts/web builds the page: it says what it needs.
"""


class PageRoute(Route):
    """Takes each GET that no route before it takes, but for the `reserved` paths and those below them."""

    def __init__(self, reserved: Iterable[str], folder: Path = PAGE) -> None:
        super().__init__("/{path:path}", self._respond, methods=["GET"])
        self._reserved = tuple(reserved)
        self._folder = folder

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """A path or method that is not the page's stays what the other routes make of it: 404, 405."""
        path = scope.get("path", "")
        if scope.get("method") not in ("GET", "HEAD") or any(
            path == reserved or path.startswith(f"{reserved}/") for reserved in self._reserved
        ):
            return Match.NONE, {}
        return super().matches(scope)

    async def _respond(self, request: Request) -> Response:
        """Files are small and in memory: to hand one to a thread would take longer than to read it."""
        if request.url.path.startswith("/assets/"):
            return self._asset(request)
        try:
            index = (self._folder / "index.html").read_text()
        except FileNotFoundError:
            return PlainTextResponse(_NOT_BUILT, 404, headers=_HEADERS)
        # Behind a proxy that serves it below a path, the links of the page begin there.
        prefix = request.headers.get("x-forwarded-prefix", "")
        if _PREFIX.fullmatch(prefix):
            index = index.replace('<base href="/">', f'<base href="{prefix.rstrip("/")}/">')
        return Response(index, media_type="text/html", headers={**_HEADERS, "Cache-Control": "no-cache"})

    def _asset(self, request: Request) -> Response:
        """Names have a hash of the content: what was read once is good for ever."""
        match = _ASSET.fullmatch(request.url.path)
        file = self._folder / "assets" / match[1] if match else None
        if match is None or file is None or not file.is_file():
            return PlainTextResponse(
                "there is no such file; the page may have been built anew: load it again\n", 404
            )
        headers = {
            **_HEADERS,
            "Cache-Control": "public, max-age=31536000, immutable",
            "Vary": "Accept-Encoding",
        }
        packed = file.with_name(f"{file.name}.gz")
        if "gzip" in request.headers.get("accept-encoding", "") and packed.is_file():
            headers["Content-Encoding"] = "gzip"
            file = packed
        return Response(file.read_bytes(), media_type=_MEDIA_TYPES[match[2]], headers=headers)
