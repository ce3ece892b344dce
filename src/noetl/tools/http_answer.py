"""What came back to an `http` task."""

import base64
import codecs
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import msgspec
from aiohttp import ClientResponse
from aiohttp.helpers import parse_mimetype

from noetl.model import Json
from noetl.model.normal import NotJson, normalise
from noetl.model.outcome import ToolError

MAX_BINARY = 64 * 1024
"""Bytes of a body that is not text."""

_MASKED = frozenset({"authorization", "cookie", "set-cookie"})
_TEXTS = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/jsonl",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)

_NOT_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})
"""Codecs of Python that no server means; some take very long."""


class Content(NamedTuple):
    """The body as a value, and what was odd about it."""

    data: Json
    warning: str = ""


async def body_of(response: ClientResponse, limit: int) -> bytes:
    """The whole body, unpacked. ToolError of kind `limit` if it is longer."""
    length = response.content_length or 0
    body = bytearray()
    if length <= limit or response.method == "HEAD":
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                break
        else:
            return bytes(body)
    raise ToolError("limit", f"the body is longer than {limit:,} bytes")


def headers_of(response: ClientResponse) -> dict[str, str]:
    """The headers by their names in lower case; what comes twice is joined by commas."""
    found: dict[str, str] = {}
    for raw_name, raw in response.raw_headers:
        name, value = _ascii(raw_name).lower(), _ascii(raw)
        if name in _MASKED:
            found[name] = "***"
        else:
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def content_of(body: bytes, content_type: str) -> Content:
    """The body as its content type says: JSON, text, or base64 of anything else; null if it is empty.

    Never fails on what a server may call JSON or text: what is not JSON stays text.
    """
    if not body:
        return Content(None)
    about = parse_mimetype(content_type)
    kind, charset = f"{about.type}/{about.subtype}", about.parameters.get("charset", "")
    if about.suffix:
        kind += f"+{about.suffix}"
    if charset.lower() == "binary":  # as some servers say that there is none
        charset = ""
    if kind == "application/json" or about.suffix == "json" or kind == "text/json":
        return _json(body, charset)
    if about.type == "text" or about.suffix in ("xml", "yaml") or kind in _TEXTS or charset:
        return _text(body, charset)
    if not content_type:
        try:
            return Content(body.decode("utf-8-sig"))
        except UnicodeDecodeError:
            kind = "application/octet-stream"
    return _binary(body, kind)


def retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a `Retry-After` asks for, given as a number or as a date; None if it says neither."""
    if text is None:
        return None
    if text.strip().isdecimal() and text.isascii():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, round((moment - (now or datetime.now(UTC))).total_seconds(), 3))


def _ascii(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _json(body: bytes, charset: str) -> Content:
    text = _text(body, charset)
    assert isinstance(text.data, str)  # noqa: S101  # what `_text` gives
    try:
        return Content(normalise(msgspec.json.decode(text.data)), text.warning)
    except (msgspec.DecodeError, UnicodeError, RecursionError, NotJson) as error:
        return Content(text.data, f"the body is not the JSON that its content type says: {error}")


def _text(body: bytes, charset: str) -> Content:
    encoding, warning = _codec(charset)
    try:
        return Content(_checked(body.decode(encoding)), warning)
    except UnicodeError:
        pass
    if charset and not warning:
        text = body.decode(encoding, errors="replace").encode(errors="replace").decode()
        return Content(text, f"the body is not the {charset} that it says: what is not was replaced")
    return Content(body.decode("latin-1"), warning or "the body is not UTF-8: it was read as latin-1")


def _codec(charset: str) -> tuple[str, str]:
    """The name of the codec, and a warning if it is not the one asked for."""
    try:
        name = codecs.lookup(charset or "utf-8").name
        "".encode(name)  # not every codec makes text
    except (LookupError, ValueError):
        name = ""
    if not name or name in _NOT_CHARSETS:
        return "utf-8-sig", f"the charset `{charset}` of the body is unknown"
    return ("utf-8-sig" if name == "utf-8" else name), ""


def _checked(text: str) -> str:
    text.encode()  # some codecs give what UTF-8 cannot hold
    return text


def _binary(body: bytes, kind: str) -> Content:
    if len(body) > MAX_BINARY:
        raise ToolError(
            "limit", f"the body is {len(body):,} bytes of {kind}: a result holds {MAX_BINARY:,} bytes of it"
        )
    content = base64.b64encode(body).decode()
    return Content({"encoding": "base64", "content_type": kind, "size": len(body), "content": content})
