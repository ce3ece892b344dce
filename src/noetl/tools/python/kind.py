import re
import warnings
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from noetl.dsl.document.kinds import Auth, Code, Fault, Kind, Seconds, TaskSpec
from noetl.guest.code import compile_code
from noetl.guest.frame import TableForm
from noetl.model.json import Json
from noetl.tools.host.input_rules import Inputs, Scalar, Size, exactly_one, literal_text, present_names
from noetl.tools.python.side_effects import is_side_effect_free

SourceType = Literal["file", "http", "s3", "gcs", "inline", "catalog"]


class ScriptSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a script is kept."""

    type: Annotated[SourceType, Meta(description="Kind of place the script is in.")]
    code: Annotated[Code | None, Meta(description="The script itself, for `inline`.")] = None
    endpoint: Annotated[
        str | None,
        Meta(
            description="Address, for `http`; `uri` will do as well. For `s3` and `gcs`, that of the store."
        ),
    ] = None
    bucket: Annotated[
        str | None,
        Meta(description="Bucket in which `uri` is the name, for `s3` and `gcs`; or it is in the `uri`."),
    ] = None
    region: Annotated[str | None, Meta(description="Region of the bucket, for `s3`.")] = None
    method: Annotated[
        Literal["GET", "POST"] | None, Meta(description="Request method, for `http`. Default `GET`.")
    ] = None
    headers: Annotated[dict[str, Scalar] | None, Meta(description="Request headers, for `http`.")] = None
    timeout: Annotated[Seconds | None, Meta(description="Seconds that fetching may take.")] = None
    auth: Annotated[Auth | None, Meta(description="Keychain entry or stored credential to sign in with.")] = (
        None
    )


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A script kept outside the task."""

    uri: Annotated[str | None, Meta(description="Path, address or catalog path of the script.")] = None
    source: Annotated[
        ScriptSource | None, Meta(description="Where it is kept. Default: told by the `uri`.")
    ] = None


class Lib(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`from MODULE import NAME`."""

    from_: Annotated[str, Meta(description="Module.")] = field(name="from")
    import_: Annotated[str | None, Meta(description="Name in the module. Default: the module itself.")] = (
        field(default=None, name="import")
    )


class PythonInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Python code; its variables come from `args`."""

    code: Annotated[
        Code | None,
        Meta(description="Python code, never rendered. Assign `result`, define `main`, or `return` a value."),
    ] = None
    script: Annotated[
        str | Script | None,
        Meta(description="A script instead of `code`: file, address or `catalog:PATH`, or a mapping."),
    ] = None
    libs: Annotated[
        dict[str, str | Lib] | None,
        Meta(description="Imports made before the code runs: name to module, or `{from, import}`."),
    ] = None


class PythonSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of Python code."""

    isolation: Annotated[
        Literal["pool", "fork", "inline"] | None,
        Meta(
            description="`pool` (default): a warm process; `fork`: a fresh one; `inline`: the worker's own."
        ),
    ] = None
    memory: Annotated[
        Size | None, Meta(description="Most memory the code may use: bytes, or text such as `512MB`.")
    ] = None
    env: Annotated[dict[str, Scalar] | None, Meta(description="Environment variables to add.")] = None
    tables: Annotated[
        TableForm | None,
        Meta(
            description="What a stored table among the args is: a list of `rows` (default), a table of"
            " `arrow`, or a frame of `pandas`."
        ),
    ] = None


def syntax_error(code: str, key: str) -> Fault | None:
    """Why the code of the input `key` does not compile, with the line inside it; None if it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compile(code)
    except SyntaxError as error:
        message = f"the code does not compile: {error.msg}"
        return Fault(message, key=key, hint=_syntax_hint(error.msg, code), line=error.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as error:
        return Fault(f"the code does not compile: {str(error) or 'it is nested too deeply'}", key=key)
    return None


def _compile(code: str) -> None:
    """Compiles the code as it is, and only if it has a `return` of its own by `compile_code`.

    That parses it three times and builds another tree; a test holds the two equal.
    """
    try:
        compile(code, "<code>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.msg != "'return' outside function":
            raise
        compile_code(code, "<code>")


def _syntax_hint(message: str, code: str) -> str:
    if re.match("'(await|async )|asynchronous", message):
        return "put it into `async def main(...)`, which is awaited"
    if "{{" in code or "{%" in code:
        return "code is never rendered: pass values with `args`"
    return ""


def _check_script(script: Json) -> Iterator[Fault]:
    if not isinstance(script, dict):
        return
    source = script.get("source")
    source_fields = source if isinstance(source, dict) else {}
    code = source_fields.get("code")
    if isinstance(code, str) and (fault := syntax_error(code, "script")):
        yield fault
    source_type = source_fields.get("type")
    if source_type == "inline":
        if code is None:
            yield Fault("an inline script needs `source.code`", key="script")
    elif not present_names(script, "uri") and (
        source_type in ("s3", "gcs") or not present_names(source_fields, "endpoint")
    ):
        yield Fault("the script has no `uri`", key="script", hint="say where it is, for example `./clean.py`")


def _check_libs(libs: Json) -> Iterator[Fault]:
    for name, lib in libs.items() if isinstance(libs, dict) else ():
        module = literal_text(lib.get("from") if isinstance(lib, dict) else lib)
        if not name.isidentifier():
            yield Fault(f"`{name}` is not a name in Python", key="libs")
        elif module is not None and not all(part.isidentifier() for part in module.split(".")):
            yield Fault(f"`{module}` is not the name of a module", key="libs")


def _check_limits(spec: Inputs) -> Iterator[Fault]:
    if spec.get("isolation") != "inline":
        return
    for knob in present_names(spec, "timeout", "memory"):
        yield Fault(
            f"`spec.{knob}` cannot be kept with `isolation: inline`",
            key=knob,
            hint="inline code cannot be stopped: use `pool` or `fork`, or drop the limit",
        )


def check(inputs: Inputs, spec: Inputs) -> Iterator[Fault]:
    """One piece of code that compiles, importable libs, and no limits that `inline` cannot keep."""
    yield from exactly_one(inputs, "code", "script", hint="write `code` here, or name a `script`")
    code = inputs.get("code")
    if isinstance(code, str) and (fault := syntax_error(code, "code")):
        yield fault
    yield from _check_script(inputs.get("script"))
    yield from _check_libs(inputs.get("libs"))
    yield from _check_limits(spec)


def repeatable(inputs: Inputs) -> bool:
    """Code that stands in the task, imports nothing by `libs`, and touches nothing but its own values."""
    code = inputs.get("code")
    return isinstance(code, str) and not inputs.get("libs") and is_side_effect_free(code)


EXAMPLE = """\
name: mean
kind: python
args: { values: [1, 2, 6] }
code: |
  result = sum(values) / len(values)
"""

KIND = Kind(
    name="python",
    summary="Runs Python code in a process of its own.",
    result="The value of `return`, else of `result`, else of `main`.",
    helpers={"py": "`exception_type`, `message` and `traceback` of an exception."},
    example=EXAMPLE,
    inputs=PythonInputs,
    spec=PythonSpec,
    defaults={"isolation": "pool"},
    check=check,
    repeatable=repeatable,
    takes_references=frozenset({"args"}),
    reads=frozenset({"args"}),
    implementation="noetl.tools.python.tool:PythonTool",
)
