"""What can be set, and where each value comes from.

In this order: flags, `NOETL_*` in the environment, `.env`, `noetl.toml`, defaults. The two files are
looked for in the working directory, then in its parents, stopping before the home directory. Nothing
else reads the environment; a new setting is a new field of `Settings`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from noetl.model.errors import NoetlError
from noetl.model.store_url import is_database_url

Output: TypeAlias = Literal["text", "json"]
LogFormat: TypeAlias = Literal["text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
SettingSource: TypeAlias = Literal["flag", "env", ".env", "noetl.toml", "default"]


class Settings(Struct, frozen=True):
    """Every setting with its default. `x` is `NOETL_X` in the environment and `x` in noetl.toml."""

    allow_kinds: tuple[str, ...] = ()
    """Kinds of tools that a playbook may use although nothing here knows them."""
    output: Output = "text"
    color: bool = True
    """Colour on a terminal. The environment's `NO_COLOR` and `TERM=dumb` turn it off, too."""
    debug: bool = False
    """Show the traceback of an error that is ours."""
    home: str = ""
    """The folder of the embedded store and what belongs to it. Empty: the nearest `.noetl`."""
    store: str = ""
    """The URL of the store. Empty: the one in `home`."""
    key: str = ""
    """The key that seals stored credentials. It is never shown."""
    key_file: str = ""
    """The file of that key. Empty: `key` in `home`, made when the first credential is stored."""
    result_store: str = ""
    """The URL of where large results are kept. Empty: files in `home`."""
    result_stores: tuple[str, ...] = ()
    """More places for results, each `NAME=URL`, for `spec.result.store` and artifacts."""
    feed: str = ""
    """The URL of the stream that a server publishes events to. Empty: none."""
    read_store: str = ""
    """The URL of a replica that a server asks for lists, searches and histories. Empty: its store answers."""
    server: str = ""
    """The URL of the server that commands ask. Empty: they work on the embedded store."""
    token: str = ""
    """The token for that server. It is never shown. Empty: that of a server of this home."""
    slots: Annotated[int, Meta(ge=1)] = 32
    """How many step runs are worked on at the same time."""
    lease_ttl: Annotated[int, Meta(ge=1)] = 10
    """Seconds after its last heartbeat for which a worker of a server keeps its runs."""
    keep_days: Annotated[int, Meta(ge=0)] = 30
    """How long executions are kept after their end; 0 is for ever."""
    log_format: LogFormat = "text"
    """How servers and workers write their log: text for people, or a JSON document on each line."""
    log_level: LogLevel = "info"
    """The least that stands in that log."""


class SettingOrigin(Struct, frozen=True):
    """Where a value came from; `where` names the variable or the file."""

    source: SettingSource
    where: str = ""


class Configuration(Struct, frozen=True):
    """The settings, and where each of them came from."""

    settings: Settings
    origins: Mapping[str, SettingOrigin]
    """By the name of the setting; every setting has one."""
    directory: Path = Path()
    """Where relative values start."""
    user_home: str = ""
    """The user's home directory, empty if there is none: looking upwards ends before it."""
    traced: bool = False
    """Whether the standard variables of OpenTelemetry (`OTEL_…`) ask for traces."""


class SettingsWrong(NoetlError):
    """A setting cannot have its value, or does not exist."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


_NAMES = Settings.__struct_fields__
_VARIABLES = {f"NOETL_{name.upper()}": name for name in _NAMES}
_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
_Layer: TypeAlias = Iterator[tuple[str, object, SettingOrigin]]


def read_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Configuration:
    """The settings as flags, environment and files give them. A flag that is None or empty is unset.

    `home` and `store` both say where executions are: the one that is said nearer takes the other's place. But
    a database has no home: there `home` says where the rest is.
    Raises SettingsWrong; OSError if a file that exists cannot be read.
    """
    environment = os.environ if environment is None else environment
    directory = directory or _working_directory()
    values: dict[str, object] = {}
    origins: dict[str, SettingOrigin] = {name: SettingOrigin("default") for name in _NAMES}
    for layer in (
        _from_toml(_nearest("noetl.toml", directory, environment)),
        _from_dotenv(_nearest(".env", directory, environment)),
        _from_environment(environment),
        (
            (name, value, SettingOrigin("flag"))
            for name, value in (flags or {}).items()
            if value not in (None, ())
        ),
    ):
        layer_values = {name: (_typed(name, value, origin), origin) for name, value, origin in layer}
        if "home" in layer_values and not is_database_url(str(values.get("store", ""))):
            values.pop("store", None)
            origins["store"] = SettingOrigin("default")
        for name, (value, origin) in layer_values.items():
            values[name], origins[name] = value, origin
    both = origins["home"].source == origins["store"].source == "flag"
    if both and not is_database_url(str(values["store"])):
        raise SettingsWrong("--home and --store exclude each other", "a store has its home beside it")
    settings = msgspec.convert(values, Settings)
    return Configuration(settings, origins, directory, environment.get("HOME", ""), _is_traced(environment))


def _is_traced(environment: Mapping[str, str]) -> bool:
    """An endpoint is enough, unless it is said that nothing is to be sent."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    endpoints = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return exporter == "otlp" or (not exporter and any(environment.get(name) for name in endpoints))


@cache
def installed_release() -> str:
    """The release of this package, as servers and workers tell each other. Metadata are parsed once."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - few commands need it

    try:
        return version("noetl")
    except PackageNotFoundError:
        return "0"


@cache
def machine_zone() -> str:
    """The IANA name of this machine's time zone; `UTC` where it says none."""
    if name := os.environ.get("TZ", "").lstrip(":"):
        return name
    target = os.path.realpath("/etc/localtime")
    return target.rpartition("zoneinfo/")[2] if "zoneinfo/" in target else "UTC"


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        error.filename = "the working directory"
        raise


def _nearest(name: str, directory: Path, environment: Mapping[str, str]) -> Path | None:
    home = environment.get("HOME")
    for folder in (directory, *directory.parents):
        if home and folder == Path(home) and folder != directory:
            return None
        if (folder / name).is_file():
            return folder / name
    return None


def _from_environment(environment: Mapping[str, str]) -> _Layer:
    # NO_COLOR counts when it is not empty, whatever it says (no-color.org)
    if environment.get("NO_COLOR"):
        yield "color", False, SettingOrigin("env", "NO_COLOR")
    elif environment.get("TERM") == "dumb":
        yield "color", False, SettingOrigin("env", "TERM")
    for variable, name in _VARIABLES.items():
        if text := environment.get(variable):
            yield name, text, SettingOrigin("env", variable)


_ASSIGNMENT = re.compile(
    r"\s*(?:export\s+)?(NOETL_\w+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|(.*?))\s*(?:(?<=\s)#.*)?$"
)


def _from_dotenv(path: Path | None) -> _Layer:
    """The `NOETL_*` assignments of a `.env` file; whatever else stands there belongs to others."""
    if path is None:
        return
    for line in _text(path).splitlines():
        match = _ASSIGNMENT.match(line)
        if match is None or match[1] not in _VARIABLES:
            continue
        if text := match[2] or match[3] or match[4]:
            yield _VARIABLES[match[1]], text, SettingOrigin(".env", str(path))


def _from_toml(path: Path | None) -> _Layer:
    if path is None:
        return
    import tomllib  # noqa: PLC0415 - most have no such file, and every command asks for the settings

    try:
        document = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingsWrong(f"{path}: {error}") from None
    for name, value in document.items():
        if name not in _NAMES:
            from difflib import get_close_matches  # noqa: PLC0415 - likewise

            close = get_close_matches(name, _NAMES, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(_NAMES)}"
            raise SettingsWrong(f"{path}: there is no setting `{name}`", hint)
        yield name, value, SettingOrigin("noetl.toml", str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsWrong(f"{path}: not UTF-8") from None


def _typed(name: str, value: object, origin: SettingOrigin) -> object:
    """The value as its field's type; text from the environment is read as that type."""
    field = Settings.__annotations__[name]
    if isinstance(value, str) and field is bool:
        value = _WORDS.get(value.lower(), value)
    elif isinstance(value, str) and field == tuple[str, ...] and origin.source != "noetl.toml":
        value = tuple(part for item in value.split(",") if (part := item.strip()))
    elif isinstance(value, str) and _is_number(field) and origin.source != "noetl.toml":
        value = int(value) if re.fullmatch(r"\s*[0-9]{1,18}\s*", value) else value
    try:
        return msgspec.convert(value, field)
    except msgspec.ValidationError:
        location = f"{origin.where}: " if origin.where else ""
        raise SettingsWrong(f"{location}`{name}` cannot be {value!r}", _allowed(field)) from None


def _allowed(field: object) -> str:
    if field is bool:
        return "true or false"
    if _is_number(field):
        return f"a whole number, {get_args(field)[1].ge} or more"
    if choices := get_args(field):
        return "a list of names" if str in choices else f"one of: {', '.join(choices)}"
    return ""


def _is_number(field: object) -> bool:
    return get_args(field)[:1] == (int,)
