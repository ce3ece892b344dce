"""Where the code of a `python` task comes from."""

from pathlib import Path
from typing import Literal, NamedTuple

from noetl.model import NoetlError
from noetl.model.outcome import ErrorKind
from noetl.tools.python import PythonInputs, Script, ScriptSource

MAX_SCRIPT = 16 * 1024 * 1024
"""Bytes of one script."""


class ScriptUnread(NoetlError):
    """The code cannot be had."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Source(NamedTuple):
    """Code, its name in tracebacks, and the file it came from."""

    code: str
    name: str = "<code>"
    path: Path | None = None


def source_of(inputs: PythonInputs, folder: Path) -> Source:
    """The code of the inputs; a relative path starts at the folder. ScriptUnread if there is none."""
    if inputs.code is not None:
        return Source(inputs.code)
    script = inputs.script
    if script is None:
        raise ScriptUnread("input", "neither `code` nor `script` is given")
    if isinstance(script, str):
        script = Script(uri=script)
    source = script.source or ScriptSource(type=_place(script.uri or ""))
    match source.type:
        case "inline":
            return Source(source.code or "")
        case "file":
            return _read((script.uri or source.endpoint or "").removeprefix("file://"), folder)
        case place:
            raise ScriptUnread("not_found", f"scripts of type `{place}` cannot be fetched here: use a file")


def _place(uri: str) -> Literal["file", "http", "catalog"]:
    if uri.startswith(("http://", "https://")):
        return "http"
    return "catalog" if uri.startswith("catalog:") else "file"


def _read(name: str, folder: Path) -> Source:
    path = folder / name
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SCRIPT + 1)
        if len(data) > MAX_SCRIPT:
            raise ScriptUnread("limit", f"the script `{name}` has more than {MAX_SCRIPT:,} bytes")
        return Source(data.decode("utf-8-sig"), name, path.absolute())
    except FileNotFoundError:
        raise ScriptUnread("not_found", f"there is no script `{name}` in {folder}") from None
    except PermissionError as error:
        raise ScriptUnread("permission", f"the script `{name}` cannot be read: {error.strerror}") from None
    except OSError as error:
        raise ScriptUnread("input", f"the script `{name}` cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScriptUnread("input", f"the script `{name}` is not UTF-8") from None
