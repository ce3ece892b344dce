"""What an `http` task sends."""

import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlencode

import msgspec
from aiohttp import FormData
from msgspec import structs
from multidict import CIMultiDict
from yarl import URL

from noetl.model.outcome import ToolError
from noetl.model.reference import StoredReference
from noetl.model.secret import MASK
from noetl.ports.tool import Call, TextMask
from noetl.tools.host.bounded_text import MARGIN
from noetl.tools.host.input_rules import Scalar, input_text
from noetl.tools.http.auth import Signature, signature_of
from noetl.tools.http.kind import HttpInputs, Upload

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH_HEADERS = ("Content-Length", "Transfer-Encoding")
_CHUNK = 1024 * 1024
_CHANGING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_PUBLIC_HEADER = re.compile(
    r"accept(-.+)?|cache-control|connection|content-.+|cookie|expect|idempotency-key|if-.+|range|user-agent",
    re.IGNORECASE,
)
"""Headers that follow a redirect to any host: they say what is wanted and sent. Others may hold a secret.

`Cookie` is among them because the client must see it to add those of its jar; it drops that one by itself."""


_SECRET_NAME = re.compile(r"key|token|secret|passw|sig|auth|cred|code", re.IGNORECASE)


class HttpRequest(NamedTuple):
    """One request, ready to be sent. `private_headers` are for the host that was asked alone."""

    method: str
    url: URL
    headers: CIMultiDict[str]
    private_headers: CIMultiDict[str]
    body: bytes | BinaryIO | FormData | None
    signature: Signature

    @property
    def label(self) -> str:
        """Method and address for messages, without user and fragment; secrets in its query are masked."""
        # What came from the keychain is masked in every message; a secret that stands in the playbook itself
        # is known by the name of its parameter alone.
        pairs = [
            (name, MASK if _SECRET_NAME.search(name) else value) for name, value in self.url.query.items()
        ]
        return f"{self.method} {self.mask_url(self.url.with_fragment(None).with_query(pairs))}"

    def may_tell(self, url: URL) -> bool:
        """Whether the private headers may go there: to the same host, and encrypted if they were before."""
        # Not by `origin()`, which tells `http://a` from `http://a:80`.
        if (url.scheme, url.host, url.port) == (self.url.scheme, self.url.host, self.url.port):
            return True
        if url.host != self.url.host or (self.url.scheme, url.scheme) != ("http", "https"):
            return False
        return self.url.is_default_port() and url.is_default_port()  # on others may be other servers

    def mask_url(self, url: URL) -> str:
        """The address without secrets."""
        if self.signature.query and self.signature.query[0] in url.query:
            url = url.update_query({self.signature.query[0]: MASK})
        return str(url.with_user(None))


async def build_request(call: Call, inputs: HttpInputs, open_files: AsyncExitStack) -> HttpRequest:
    """What the inputs ask for. ToolError if it cannot be sent; files it sends are left to `open_files`."""
    signature = signature_of(inputs.auth)
    headers = _headers(inputs.headers or {}, signature)
    method = inputs.method.upper()
    if method in _CHANGING_METHODS:
        headers.setdefault("Idempotency-Key", call.idempotency_key)
    if call.traceparent:
        headers.setdefault("traceparent", call.traceparent)
    body, content_type = await _body(call, inputs, open_files)
    if isinstance(body, FormData):
        headers.popall("Content-Type", None)  # only the form knows what separates its parts
    elif content_type:
        headers.setdefault("Content-Type", content_type)
    url = parse_http_url(inputs.url, "url").extend_query(_pairs(inputs.params or {}, "params"))
    if url.user is not None and (signature.header or "Authorization" in headers):
        raise ToolError("input", "`url` holds a user, and the request signs in otherwise: drop one of them")
    if signature.query:
        url = url.update_query([signature.query])
    private_headers = CIMultiDict(
        (name, headers.pop(name)) for name in tuple(headers) if not _PUBLIC_HEADER.fullmatch(name)
    )
    if signature.header:
        name, value = signature.header
        private_headers[name] = value
    return HttpRequest(method, url, headers, private_headers, body, signature)


def body_holds_secret(call: Call) -> bool:
    """Whether a secret is in what the call sends as its body; in files that it uploads, too.

    Not in stored objects, which were looked through when they were stored.
    """
    values = {name: call.inputs[name] for name in ("body", "json", "form", "files") if call.inputs.get(name)}
    if call.mask.contains_secret(msgspec.json.encode(values).decode()):
        return True
    uploads = call.inputs.get("files")
    parts = uploads.values() if isinstance(uploads, dict) else ()
    paths = [part.get("path") if isinstance(part, dict) else part for part in parts]
    return any(_file_holds_secret(call.folder / path, call.mask) for path in paths if isinstance(path, str))


def _file_holds_secret(path: Path, mask: TextMask) -> bool:
    overlap = ""
    with path.open(encoding="utf-8", errors="replace") as file:
        while text := file.read(_CHUNK):
            if mask.contains_secret(overlap + text):
                return True
            overlap = text[-MARGIN:]
    return False


def wrap_file_references(call: Call) -> Call:
    """The call with every reference among its `files` in the place that typed inputs have for it."""
    files = call.inputs.get("files")
    if not isinstance(files, dict) or not any(isinstance(part, StoredReference) for part in files.values()):
        return call
    parts = {
        name: {"content": part} if isinstance(part, StoredReference) else part for name, part in files.items()
    }
    return structs.replace(call, inputs={**call.inputs, "files": parts})


def parse_http_url(text: str, input_name: str) -> URL:
    """The HTTP address that the text is. ToolError if it is none; `what` names the input."""
    try:
        url = URL(text.strip())
    except ValueError as error:
        raise ToolError("input", f"`{input_name}` is no address: {error}") from None
    if url.scheme not in ("http", "https"):
        raise ToolError(
            "input", f"`{input_name}` is no HTTP address: it must begin with `http://` or `https://`"
        )
    if not url.host or " " in url.host:
        raise ToolError("input", f"`{input_name}` names no host")
    return url


def _headers(values: Mapping[str, Scalar | None], signature: Signature) -> CIMultiDict[str]:
    """Without what is null, and without what says how long the body is: the body itself does."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in values.items():
        if value is not None:
            headers[name] = _check_header(name, input_text(value).strip())
    for name in _LENGTH_HEADERS:
        headers.popall(name, None)
    if signature.header:
        name, value = signature.header
        _check_header(name, value)
        if name in headers:
            raise ToolError("input", f"`auth` and `headers` both give `{name}`: drop one of them")
    return headers


def _check_header(name: str, value: str) -> str:
    """The value of the header, if HTTP can carry both."""
    if not _HEADER_NAME.fullmatch(name):
        raise ToolError("input", f"`{name}` is not the name of a header")
    if any(sign in value for sign in "\r\n\0"):
        raise ToolError("input", f"the header `{name}` holds a line break, which HTTP does not allow")
    return value


def _pairs(values: Mapping[str, Any], input_name: str) -> list[tuple[str, str]]:
    """Names and texts in order; a list repeats its name, and what is null is left out."""
    pairs = []
    for name, value in values.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict | list):
                raise ToolError(
                    "input", f"`{input_name}.{name}` must be text, a number or a list of such values"
                )
            if item is not None:
                pairs.append((name, input_text(item)))
    return pairs


async def _body(
    call: Call, inputs: HttpInputs, open_files: AsyncExitStack
) -> tuple[bytes | BinaryIO | FormData | None, str]:
    """The body and its media type."""
    raw_body = call.inputs.get("body")
    if inputs.files:
        return await _multipart(call, inputs, inputs.files, open_files), ""
    if inputs.form is not None:
        form = urlencode(_pairs(inputs.form, "form")).encode()
        return form, "application/x-www-form-urlencoded"
    if isinstance(raw_body, StoredReference):
        return await _open_reference(call, raw_body, open_files), raw_body["media_type"]
    if isinstance(inputs.body, str):
        return inputs.body.encode(), "text/plain; charset=utf-8"
    if inputs.body is not None:
        return msgspec.json.encode(inputs.body), "application/json"
    if "json" in call.inputs:  # which may be null
        return msgspec.json.encode(inputs.json), "application/json"
    return None, ""


async def _multipart(
    call: Call, inputs: HttpInputs, files: Mapping[str, str | Upload], open_files: AsyncExitStack
) -> FormData:
    form = FormData()
    for name, value in _pairs(inputs.form or {}, "form"):
        form.add_field(name, value)
    for name, part in files.items():
        upload = Upload(path=part) if isinstance(part, str) else part
        filename, content_type = upload.filename, upload.content_type
        content: Any
        if upload.path is not None:
            path = call.folder / upload.path
            content = open_files.enter_context(_open_upload(path, name))
            filename = filename or path.name
        elif isinstance(upload.content, StoredReference):
            content = await _open_reference(call, upload.content, open_files)
            content_type = content_type or upload.content["media_type"]
            filename = filename or upload.content.get("filename")
        elif isinstance(upload.content, str):
            content = upload.content.encode()
            content_type = content_type or "text/plain; charset=utf-8"
        else:
            content = msgspec.json.encode(upload.content)
            content_type = content_type or "application/json"
        form.add_field(
            name, content, filename=filename or name, content_type=content_type or "application/octet-stream"
        )
    return form


async def _open_reference(call: Call, reference: StoredReference, open_files: AsyncExitStack) -> BinaryIO:
    """The stored object as a file, sent as it is read. Raises ResultError."""
    path = await open_files.enter_async_context(call.objects.local(reference))
    return open_files.enter_context(path.open("rb"))


def _open_upload(path: Path, name: str) -> Any:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise ToolError("not_found", f"file `{name}`: there is no {path}") from None
    except PermissionError:
        raise ToolError("permission", f"file `{name}`: {path} may not be read") from None
    except OSError as error:
        raise ToolError("input", f"file `{name}`: {path} cannot be read: {error.strerror}") from None
