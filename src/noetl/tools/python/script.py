"""Where the code of a `python` task comes from."""

import os
import re
from pathlib import Path, PurePosixPath
from pkgutil import resolve_name
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec import structs

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome, ToolError
from noetl.model.reference import StoredReference
from noetl.ports.tool import Call, Tool
from noetl.tools.host.extras import install_command
from noetl.tools.python.kind import PythonInputs, Script, ScriptSource, SourceType

MAX_SCRIPT = 16 * 1024 * 1024
"""Bytes of one script."""

_TOOLS = {"http": "noetl.tools.http.tool:HttpTool", "s3": "noetl.tools.s3.tool:S3Tool"}
"""What fetches scripts. By name, as the host gets tools: kinds do not import each other, and few scripts
need it."""
_CANNOT_BE_FETCHED = "the script cannot be fetched"
_SCHEMES: dict[str, SourceType] = {
    "http://": "http",
    "https://": "http",
    "catalog:": "catalog",
    "s3://": "s3",
    "gs://": "gcs",
}


class ScriptCode(NamedTuple):
    """Code, its name in tracebacks, and the file it came from."""

    code: str
    name: str = "<code>"
    path: Path | None = None


class BucketAddress(NamedTuple):
    bucket: str
    name: str


class ScriptLoader:
    """Gets the code of tasks. What fetches it from elsewhere is made when it is first needed."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    async def load_code(self, call: Call, inputs: PythonInputs) -> ScriptCode:
        """The code of the inputs. ToolError if there is none."""
        if inputs.code is not None:
            return ScriptCode(inputs.code)
        script = inputs.script
        if script is None:
            raise ToolError("input", "neither `code` nor `script` is location_fields")
        if isinstance(script, str):
            script = Script(uri=script)
        source = script.source or ScriptSource(type=_source_type(script.uri or ""))
        timeout = min(call.timeout, source.timeout or call.timeout)
        match source.type:
            case "inline":
                return ScriptCode(source.code or "")
            case "file":
                return _read_script(
                    (script.uri or source.endpoint or "").removeprefix("file://"), call.folder
                )
            case "http":
                return await self._from_web(call, source.endpoint or script.uri or "", source, timeout)
            case "s3" | "gcs":
                return await self._from_bucket(call, _bucket_address(script, source), source, timeout)
            case "catalog":
                raise ToolError("not_found", "there is no catalog of scripts here: use a file or an address")

    async def close(self) -> None:
        for tool in self._tools.values():
            await tool.close()

    async def _fetch(self, kind: str, call: Call, inputs: dict[str, Json], timeout: float) -> Any:
        """The result of a task of another kind, with which the script is fetched."""
        if (tool := self._tools.get(kind)) is None:
            limits = {"max_body": MAX_SCRIPT, "max_file": MAX_SCRIPT} if kind == "http" else {}
            tool = self._tools[kind] = _imported(_TOOLS[kind], kind)(**limits)
        outcome: Outcome = await tool.run(structs.replace(call, inputs=inputs, spec={}, timeout=timeout))
        if outcome.error is not None:
            raise _not_fetched(outcome.error)
        return outcome.result

    async def _from_web(self, call: Call, url: str, source: ScriptSource, timeout: float) -> ScriptCode:
        inputs: dict[str, Json] = {
            "url": url,
            "method": source.method or "GET",
            "headers": dict(source.headers or {}),
            "auth": source.auth,
        }
        answer = await self._fetch("http", call, inputs, timeout)
        name = PurePosixPath(urlsplit(url).path).name or url
        match answer["data"]:
            case None:
                return ScriptCode("", name)
            case str() as code:
                return ScriptCode(code, name)
            case StoredReference() as reference:  # many servers have no type for Python
                return await _stored_code(call, reference, name)
            case _:
                raise ToolError("input", f"the script `{url}` is JSON, and no Python")

    async def _from_bucket(
        self, call: Call, address: BucketAddress, source: ScriptSource, timeout: float
    ) -> ScriptCode:
        auth: Any = source.auth
        location = {"endpoint": source.endpoint, "region": source.region}
        location_fields = {name: value for name, value in location.items() if value is not None}
        if location_fields and not isinstance(auth, str):
            auth = {**(auth or {}), **location_fields}
        scheme = "gs" if source.type == "gcs" else "s3"
        inputs: dict[str, Json] = {
            "action": "get",
            "url": f"{scheme}://{address.bucket}/{address.name}",
            "auth": auth,
        }
        reference = await self._fetch("s3", call, inputs, timeout)
        return await _stored_code(call, reference, PurePosixPath(address.name).name)


def _not_fetched(error: ErrorInfo) -> ToolError:
    return ToolError(
        error.kind,
        f"{_CANNOT_BE_FETCHED}: {error.message}",
        retryable=error.retryable,
        retry_after=error.retry_after,
        details=error.details,
    )


async def _stored_code(call: Call, reference: StoredReference, name: str) -> ScriptCode:
    async with call.objects.local(reference) as path:
        if path.stat().st_size > MAX_SCRIPT:
            raise ToolError("limit", f"the script `{name}` has more than {MAX_SCRIPT:,} bytes")
        return ScriptCode(_decode(path.read_bytes(), name), name)


def _imported(name: str, extra: str) -> Any:
    try:
        return resolve_name(name)
    except ImportError as error:
        message = f"{_CANNOT_BE_FETCHED} without the package `{error.name}`: {install_command(extra)}"
        raise ToolError("input", message) from None


def _source_type(uri: str) -> SourceType:
    return next((kind for scheme, kind in _SCHEMES.items() if uri.startswith(scheme)), "file")


def _bucket_address(script: Script, source: ScriptSource) -> BucketAddress:
    uri = script.uri or ""
    if (scheme := re.match(r"(s3|gs|gcs)://", uri)) is None:
        bucket, name = source.bucket or "", uri
    else:
        bucket, _, name = uri[scheme.end() :].partition("/")
    if not bucket or not name.strip("/"):
        raise ToolError(
            "input", f"`{uri}` names no object in a bucket: write `gs://BUCKET/NAME`, or `bucket`"
        )
    return BucketAddress(bucket, name)


def _read_script(name: str, folder: Path) -> ScriptCode:
    """A script beside the playbook, or else in the working directory."""
    path = folder / name
    if not os.path.exists(path) and os.path.exists(name):
        path = Path(name)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SCRIPT + 1)
    except FileNotFoundError:
        raise ToolError(
            "not_found", f"there is no script `{name}` in {folder}, nor where the worker runs"
        ) from None
    except PermissionError as error:
        raise ToolError("permission", f"the script `{name}` cannot be read: {error.strerror}") from None
    except OSError as error:
        raise ToolError("input", f"the script `{name}` cannot be read: {error.strerror}") from None
    if len(data) > MAX_SCRIPT:
        raise ToolError("limit", f"the script `{name}` has more than {MAX_SCRIPT:,} bytes")
    return ScriptCode(_decode(data, name), name, path.absolute())


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ToolError("input", f"the script `{name}` is not UTF-8") from None
