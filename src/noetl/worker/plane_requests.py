"""Requests of a worker to its server, over HTTP."""

from collections.abc import Mapping

import aiohttp
import msgspec

from noetl.model.errors import NoetlError
from noetl.ports.control import SESSION_HEADER
from noetl.worker.server_link import FetchRefused, ServerUnavailable


class ServerAccess:
    """Requests in the name of one session, which may move from one server to another."""

    def __init__(self, http: aiohttp.ClientSession, headers: Mapping[str, str]) -> None:
        self.http = http
        self.url = ""
        self.headers = dict(headers)

    def join(self, url: str, session: str) -> None:
        """From here on it is this server and session."""
        self.url = url
        self.headers[SESSION_HEADER] = session

    async def post(self, endpoint: str, message: bytes, url: str = "") -> bytes:
        """The body of the answer. Raises ServerUnavailable and FetchRefused."""
        try:
            async with self.http.post(
                f"{url or self.url}/api/worker/{endpoint}", data=message, headers=self.headers
            ) as response:
                body = await response.read()
                # A worker that is rejected is told so with 409, in a message.
                if response.status != 200 and not (response.status == 409 and endpoint == "register"):
                    raise server_error_of(response.status, body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerUnavailable(f"the server does not answer: {error}") from error
        return body


def server_error_of(status: int, body: bytes) -> NoetlError:
    try:
        detail = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("detail", msgspec.Raw(b'""'))
        text = msgspec.json.decode(detail, type=str)
    except msgspec.DecodeError:
        text = body[:200].decode("utf-8", "replace")
    # 404 is of a session that ended: another one may be registered soon.
    kind = ServerUnavailable if status >= 500 or status == 404 else FetchRefused
    return kind(f"the server answers {status}: {text}")
