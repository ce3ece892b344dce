from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Auth, Fault, Kind, Seconds, TaskSpec
from noetl.model.json import Json
from noetl.tools.host.input_rules import Inputs, Scalar, Size, at_most_one, exactly_one, literal_text

Method = Literal[
    "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS",
    "get", "post", "put", "patch", "delete", "head", "options",
]  # fmt: skip

Status = (
    Annotated[int, Meta(ge=100, le=599)]
    | Annotated[
        str, Meta(pattern="^[1-5]xx$", description="A status such as `404`, or a class such as `2xx`.")
    ]
)


class Upload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of a multipart request."""

    path: Annotated[str | None, Meta(description="File to send, relative to the playbook.")] = None
    content: Annotated[Any, Meta(description="What to send instead of a file: text or a reference.")] = None
    filename: Annotated[str | None, Meta(description="File name told to the server.")] = None
    content_type: Annotated[str | None, Meta(description="Media type, for example `text/csv`.")] = None


class HttpInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One HTTP request."""

    url: Annotated[str, Meta(description="Address, with `http://` or `https://`.")]
    method: Annotated[Method, Meta(description="Request method, in upper or lower case.")] = "GET"
    params: Annotated[
        dict[str, Any] | None, Meta(description="Query parameters; a list repeats its name.")
    ] = None
    headers: Annotated[
        dict[str, Scalar | None] | None, Meta(description="Request headers; `null` leaves one out.")
    ] = None
    json: Annotated[Any, Meta(description="Body, sent as JSON.")] = None
    body: Annotated[
        str | dict[str, Any] | list[Any] | None,
        Meta(description="Body as text, or a reference; a mapping or a list is sent as JSON."),
    ] = None
    form: Annotated[dict[str, Any] | None, Meta(description="Body as form fields.")] = None
    files: Annotated[
        dict[str, str | Upload] | None,
        Meta(description="Files to upload by field name: a path, a reference, or a mapping; beside `form`."),
    ] = None
    auth: Annotated[
        Auth | None,
        Meta(description="Keychain entry to sign in with: bearer, basic, API key or OAuth2."),
    ] = None


class HttpTimeout(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of connecting and of waiting for data, apart."""

    connect: Annotated[Seconds | None, Meta(description="Seconds to connect.")] = None
    read: Annotated[Seconds | None, Meta(description="Seconds without any data.")] = None


class Certificate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the client shows of itself."""

    cert: Annotated[str, Meta(description="PEM file with the certificate, relative to the playbook.")]
    key: Annotated[
        str | None, Meta(description="PEM file with its key, not encrypted. Default: in the same file.")
    ] = None


class HttpSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a request."""

    timeout: Annotated[
        Seconds | HttpTimeout | None,
        Meta(description="Seconds one attempt may take, or `{connect, read}`."),
    ] = None  # type: ignore[assignment]  # wider than every kind's: the mapping is from 001 §2
    verify: Annotated[
        bool | str | None, Meta(description="Whether to check the certificate, or a file of authorities.")
    ] = None
    cert: Annotated[
        str | Certificate | None,
        Meta(description="Certificate of the client: a PEM file that holds its key, too, or `{cert, key}`."),
    ] = None
    follow_redirects: Annotated[bool | None, Meta(description="Whether to follow redirects.")] = None
    proxy: Annotated[str | None, Meta(description="Address of a proxy.")] = None
    success: Annotated[
        list[Status] | None,
        Meta(description="Statuses that count as success, such as `404` or `2xx`. Default 2xx and 3xx."),
    ] = None
    save_as: Annotated[
        Literal["file"] | None, Meta(description="`file`: store the body and give a reference to it.")
    ] = None
    max_size: Annotated[
        Size | None,
        Meta(description="Most bytes of a stored body, unpacked, or text such as `2GB`. Default 1 GiB."),
    ] = None


def content(value: Json) -> str:
    """The input that `payload` and `data` stand for."""
    return "json" if isinstance(value, dict | list) else "body"


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """One body at most, an address with its scheme, and something in every uploaded part."""
    yield from at_most_one(inputs, "json", "body", "form", hint="a request has one body")
    yield from at_most_one(inputs, "files", "json", hint="send the other fields with `form`")
    yield from at_most_one(inputs, "files", "body", hint="send the other fields with `form`")
    url = literal_text(inputs.get("url"))
    if url is not None and not url.lower().startswith(("http://", "https://")):
        yield Fault(f"`{url}` is not an HTTP address", key="url", hint="begin it with `https://`")
    files = inputs.get("files")
    for name, part in files.items() if isinstance(files, dict) else ():
        if isinstance(part, dict):
            for fault in exactly_one(part, "path", "content"):
                yield Fault(f"file `{name}`: {fault.message}", key="files", hint=fault.hint)


EXAMPLE = """\
name: order
kind: http
method: POST
url: https://api.example.com/orders
json: { article: 7, count: 2 }
"""

KIND = Kind(
    name="http",
    summary="Sends an HTTP request.",
    result="`{status, headers, url, elapsed_ms, data}`; `data` is the JSON value, the text, or a reference.",
    helpers={"http": "`status` and `headers` of the answer, of a refused request, too."},
    example=EXAMPLE,
    inputs=HttpInputs,
    spec=HttpSpec,
    defaults={"verify": True, "follow_redirects": True},
    spellings={"endpoint": "url", "payload": content, "data": content, "credential": "auth"},
    check=check,
    reads=frozenset(),
    implementation="noetl.tools.http.tool:HttpTool",
)
