"""Sessions of browsers: a signed cookie instead of the token, and codes for login links.

A cookie names its token by the hash that the store knows it by. So a session outlives the server, ends with
its token, and a stolen cookie is no token; what is kept is one key.
"""

import base64
import hashlib
import hmac
import secrets

from msgspec import Struct
from starlette.requests import HTTPConnection
from starlette.responses import Response

from noetl.model.timestamp import now_micros
from noetl.server.http.problems import ApiProblem

SESSION_SECONDS = 30 * 24 * 3_600
LINK_SECONDS = 3_600
"""How long the link may wait that a server prints when it starts."""
KEY_BYTES = 32
_MOST_CODES = 1_000
_SECOND = 1_000_000
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class BrowserSessions:
    """Makes and reads the cookies of one server, and the codes of its login links."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        # Browsers do not keep the cookies of two ports of a host apart: servers of one machine must.
        self.cookie_name = f"noetl_session_{hashlib.sha256(b'name' + key).hexdigest()[:12]}"
        self._codes: dict[str, _LoginCode] = {}

    def token_hash_of(self, connection: HTTPConnection) -> str | None:
        """The hash of the token whose session a request comes with; None without a valid one."""
        cookie = connection.cookies.get(self.cookie_name, "")
        token_hash, _, rest = cookie.partition(".")
        expires, _, signature = rest.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(token_hash, expires).encode()):
            return None
        return token_hash if int(expires) > now_micros() // _SECOND else None

    def open(self, response: Response, token_hash: str, *, secure: bool) -> None:
        expires = str(now_micros() // _SECOND + SESSION_SECONDS)
        value = f"{token_hash}.{expires}.{self._sign(token_hash, expires)}"
        self._set_cookie(response, value, SESSION_SECONDS, secure=secure)

    def close(self, response: Response, *, secure: bool) -> None:
        self._set_cookie(response, "", 0, secure=secure)

    def make_code(self, token_hash: str) -> str:
        """A code that opens one session of a token, within the next hour."""
        now = now_micros()
        self._codes = {code: entry for code, entry in self._codes.items() if entry.expires_at > now}
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[code] = _LoginCode(token_hash, now + LINK_SECONDS * _SECOND)
        return code

    def use_code(self, code: str) -> str | None:
        """The hash of the token that a code stands for; from now on it stands for none."""
        entry = self._codes.pop(code, None)
        return entry.token_hash if entry is not None and entry.expires_at > now_micros() else None

    def _sign(self, token_hash: str, expires: str) -> str:
        digest = hmac.digest(self._key, f"{token_hash}.{expires}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _set_cookie(self, response: Response, value: str, seconds: int, *, secure: bool) -> None:
        response.set_cookie(
            self.cookie_name,
            value,
            max_age=seconds,
            path="/",
            secure=secure,
            httponly=True,
            samesite="strict",
        )


class _LoginCode(Struct, frozen=True):
    token_hash: str
    expires_at: int


def require_same_origin(connection: HTTPConnection, method: str) -> None:
    """Raises ApiProblem `forbidden` for a change that another site's page may have asked a browser for.

    Browsers say where a request is from: in `Sec-Fetch-Site`, but over plain HTTP only to loopback; else in
    `Origin`. What says neither is refused.
    """
    if method in _SAFE_METHODS:
        return
    site = connection.headers.get("sec-fetch-site")
    if site is not None:
        is_same = site == "same-origin"
    else:
        origin = connection.headers.get("origin", "")
        is_same = origin == f"{connection.url.scheme}://{connection.headers.get('host', '')}"
    if not is_same:
        detail = "a session changes things only from the server's own page"
        raise ApiProblem("forbidden", detail, hint="programs send `Authorization: Bearer TOKEN`")
