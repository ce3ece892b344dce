"""What came back to an `http` task."""

import codecs
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import msgspec
from aiohttp import ClientResponse
from aiohttp.helpers import parse_mimetype

from noetl.model.json import Json
from noetl.model.normalisation import NotJson, normalise
from noetl.model.timestamp import LAST_MOMENT

_SECRET_HEADERS = frozenset({"authorization", "cookie", "set-cookie"})
_TEXT_TYPES = frozenset(
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


class BodyContent(NamedTuple):
    """The body as a value, and what was odd about it."""

    data: Json
    warning: str = ""


def headers_of(response: ClientResponse) -> dict[str, str]:
    """The headers by their names in lower case; what comes twice is joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw in response.raw_headers:
        name, value = _header_text(raw_name).lower(), _header_text(raw)
        if name in _SECRET_HEADERS:
            headers[name] = "***"
        else:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def is_packed(response: ClientResponse) -> bool:
    """Whether the body is longer, unpacked, than what came."""
    return response.headers.get("Content-Encoding", "identity").strip().lower() != "identity"


def is_binary(content_type: str) -> bool:
    """Whether a body of this type is neither JSON nor text. What has no type may be either."""
    if not content_type:
        return False
    media_type = _parse_media_type(content_type)
    return not (media_type.is_json or media_type.is_text)


def decode_body(body: bytes, content_type: str) -> BodyContent:
    """The body as its content type says, JSON or text; null if it is empty.

    Never fails on what a server may call JSON or text: what is not JSON stays text.
    """
    if not body:
        return BodyContent(None)
    media_type = _parse_media_type(content_type)
    return (
        _decode_json(body, media_type.charset)
        if media_type.is_json
        else _decode_text(body, media_type.charset)
    )


def parse_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a `Retry-After` asks for, given as a number or as a date; None if it says neither."""
    if text is None:
        return None
    if text.strip().isdecimal() and text.isascii():
        return min(float(text), LAST_MOMENT / 1e6)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, round((moment - (now or datetime.now(UTC))).total_seconds(), 3))


class _MediaType(NamedTuple):
    charset: str
    is_json: bool
    is_text: bool


def _parse_media_type(content_type: str) -> _MediaType:
    """What a content type says."""
    parsed = parse_mimetype(content_type)
    kind, charset = f"{parsed.type}/{parsed.subtype}", parsed.parameters.get("charset", "")
    if charset.lower() == "binary":  # as some servers say that there is none
        charset = ""
    return _MediaType(
        charset,
        is_json=parsed.suffix == "json" or kind in ("application/json", "text/json"),
        is_text=parsed.type == "text"
        or parsed.suffix in ("xml", "yaml")
        or kind in _TEXT_TYPES
        or bool(charset),
    )


def _header_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _decode_json(body: bytes, charset: str) -> BodyContent:
    text = _decode_text(body, charset)
    assert isinstance(text.data, str)  # noqa: S101 - what `_decode_text` gives
    try:
        return BodyContent(normalise(msgspec.json.decode(text.data)), text.warning)
    except (msgspec.DecodeError, UnicodeError, RecursionError, NotJson) as error:
        return BodyContent(text.data, f"the body is not the JSON that its content type says: {error}")


def _decode_text(body: bytes, charset: str) -> BodyContent:
    encoding, warning = _codec(charset)
    try:
        return BodyContent(_require_utf8(body.decode(encoding)), warning)
    except UnicodeError:
        pass
    if charset and not warning:
        text = body.decode(encoding, errors="replace").encode(errors="replace").decode()
        return BodyContent(text, f"the body is not the {charset} that it says: what is not was replaced")
    return BodyContent(body.decode("latin-1"), warning or "the body is not UTF-8: it was read as latin-1")


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


def _require_utf8(text: str) -> str:
    text.encode()  # some codecs, such as UTF-7, give lone surrogates, which UTF-8 and JSON cannot hold
    return text
