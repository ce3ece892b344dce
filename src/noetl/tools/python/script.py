"""Where the code of a `python` task comes from."""

import os
from pathlib import Path, PurePosixPath
from pkgutil import resolve_name
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import structs

from noetl.model.json import Json
from noetl.model.outcome import Outcome, ToolError
from noetl.model.reference import StoredReference
from noetl.ports.tool import Call, Tool
from noetl.tools.python.kind import PythonInputs, Script, ScriptSource

MAX_SCRIPT = 16 * 1024 * 1024
"""Bytes of one script."""

_HTTP_TOOL = "noetl.tools.http.tool:HttpTool"


class ScriptCode(NamedTuple):
    """Code, its name in tracebacks, and the file it came from."""

    code: str
    name: str = "<code>"
    path: Path | None = None


class ScriptLoader:
    """Gets the code of tasks. What fetches it from web servers is made when it is first needed."""

    def __init__(self) -> None:
        self._http: Tool | None = None

    async def load_code(self, call: Call, inputs: PythonInputs) -> ScriptCode:
        """The code of the inputs. ToolError if there is none."""
        if inputs.code is not None:
            return ScriptCode(inputs.code)
        script = inputs.script
        if script is None:
            raise ToolError("input", "neither `code` nor `script` is given")
        if isinstance(script, str):
            script = Script(uri=script)
        source = script.source or ScriptSource(type=_source_type(script.uri or ""))
        match source.type:
            case "inline":
                return ScriptCode(source.code or "")
            case "file":
                return _read_script(
                    (script.uri or source.endpoint or "").removeprefix("file://"), call.folder
                )
            case "http":
                return await self._fetch(call, source.endpoint or script.uri or "", source)
            case "catalog":
                raise ToolError("not_found", "there is no catalog of scripts here: use a file or an address")

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _fetch(self, call: Call, url: str, source: ScriptSource) -> ScriptCode:
        if (http := self._http) is None:
            # By its name, as the host gets tools: kinds do not import each other, and few scripts need it.
            http = self._http = resolve_name(_HTTP_TOOL)(max_body=MAX_SCRIPT, max_file=MAX_SCRIPT)
        inputs: dict[str, Json] = {
            "url": url,
            "method": source.method or "GET",
            "headers": dict(source.headers or {}),
            "auth": source.auth,
        }
        timeout = min(call.timeout, source.timeout or call.timeout)
        outcome: Outcome = await http.run(structs.replace(call, inputs=inputs, spec={}, timeout=timeout))
        if (error := outcome.error) is not None:
            message = f"the script cannot be fetched: {error.message}"
            raise ToolError(
                error.kind,
                message,
                retryable=error.retryable,
                retry_after=error.retry_after,
                details=error.details,
            )
        name = PurePosixPath(urlsplit(url).path).name or url
        match outcome.result["data"]:
            case None:
                return ScriptCode("", name)
            case str() as code:
                return ScriptCode(code, name)
            case StoredReference() as reference:  # many servers have no type for Python
                async with call.objects.local(reference) as path:
                    return ScriptCode(_decode(path.read_bytes(), name), name)
            case _:
                raise ToolError("input", f"the script `{url}` is JSON, and no Python")


def _source_type(uri: str) -> Literal["file", "http", "catalog"]:
    if uri.startswith(("http://", "https://")):
        return "http"
    return "catalog" if uri.startswith("catalog:") else "file"


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
