"""Sessions of browsers: a signed cookie instead of the token, and codes for login links.

A cookie names its token by the hash that the store knows it by. So a session outlives the server, ends with
its token, and a stolen cookie is no token; what is kept is one key, and which sessions ended before their
time.
"""

import base64
import hashlib
import hmac
import secrets

from msgspec import Struct
from starlette.requests import HTTPConnection
from starlette.responses import Response

from noetl.model.timestamp import now_micros
from noetl.ports.store import Store
from noetl.server.http.problems import ApiProblem

SESSION_SECONDS = 30 * 24 * 3_600
LINK_SECONDS = 3_600
"""How long the link may wait that a server prints when it starts."""
KEY_BYTES = 32
_MOST_CODES = 1_000
_ENDED = "ended-session/"
"""Before the names of the blobs that say which sessions ended; results have the id of an execution there."""
_SECOND = 1_000_000
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class BrowserSessions:
    """Makes and reads the cookies of one server, and the codes of its login links."""

    def __init__(self, key: bytes, store: Store) -> None:
        self._key = key
        self._store = store
        # Browsers do not keep the cookies of two ports of a host apart: servers of one machine must.
        self.cookie_name = f"noetl_session_{hashlib.sha256(b'name' + key).hexdigest()[:12]}"
        self._codes: dict[str, _LoginCode] = {}

    async def token_hash_of(self, connection: HTTPConnection) -> str | None:
        """The hash of the token whose session a request comes with; None without a valid one."""
        session = self._session_of(connection)
        if session is None or await self._store.blob(session.end_name) is not None:
            return None
        return session.token_hash

    def open(self, response: Response, token_hash: str, *, secure: bool) -> None:
        expires = str(now_micros() // _SECOND + SESSION_SECONDS)
        # Without a number of its own, another session of the same second would end with it.
        signed = f"{token_hash}.{secrets.token_urlsafe(9)}.{expires}"
        self._set_cookie(response, f"{signed}.{self._sign(signed)}", SESSION_SECONDS, secure=secure)

    async def close(self, connection: HTTPConnection, response: Response, *, secure: bool) -> None:
        """Ends the session that a request comes with, if there is one: its cookie is worth nothing more."""
        session = self._session_of(connection)
        if session is not None:
            await self._store.put_blob(session.end_name, b"")
            now = _end_name(now_micros() // _SECOND)
            await self._store.delete_blobs([name for name in await self._store.blobs(_ENDED) if name < now])
        self._set_cookie(response, "", 0, secure=secure)

    def _session_of(self, connection: HTTPConnection) -> "_BrowserSession | None":
        """That of a cookie which was signed here and has not expired; it may have ended since."""
        signed, _, signature = connection.cookies.get(self.cookie_name, "").rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(signed).encode()):
            return None
        parts = signed.split(".")
        if len(parts) != 3:  # of an earlier release
            return None
        session = _BrowserSession(parts[0], parts[1], int(parts[2]))
        return session if session.expires > now_micros() // _SECOND else None

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

    def _sign(self, text: str) -> str:
        digest = hmac.digest(self._key, text.encode(), "sha256")
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


class _BrowserSession(Struct, frozen=True):
    """`expires` is in seconds since 1970."""

    token_hash: str
    session_id: str
    expires: int

    @property
    def end_name(self) -> str:
        """That of the blob that says that it has ended."""
        return f"{_end_name(self.expires)}.{self.session_id}"


def _end_name(expires: int) -> str:
    """In the order of time, so that what has expired anyway is found and not kept."""
    return f"{_ENDED}{expires:012}"


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
