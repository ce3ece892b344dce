from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind, TaskSpec
from noetl.tools.host.input_rules import Inputs, Scalar, Size, exactly_one, literal_text


class Mount(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder, a file or a volume that the container sees."""

    target: Annotated[str, Meta(description="Where it is in the container: an absolute path.")]
    source: Annotated[
        str | None, Meta(description="Folder or file on the worker's machine, relative to the playbook.")
    ] = None
    volume: Annotated[str | None, Meta(description="A volume of the runtime, instead of `source`.")] = None
    read_only: Annotated[bool | None, Meta(description="Whether it can only be read. Default `false`.")] = (
        None
    )


class ContainerInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One container, which is removed when it has ended."""

    image: Annotated[str, Meta(description="The image, with its tag or digest.", min_length=1)]
    command: Annotated[
        Annotated[str, Meta(min_length=1)] | Annotated[list[str | int | float], Meta(min_length=1)] | None,
        Meta(
            description="A list is what the image's entrypoint gets, or a program and its arguments; a text "
            "is run by `sh -c`. Default: that of the image."
        ),
    ] = None
    entrypoint: Annotated[
        str | None, Meta(description="Program instead of the image's; an empty text is none.")
    ] = None
    env: Annotated[
        dict[str, Scalar] | list[str] | None,
        Meta(
            description="Environment variables: a mapping, or a list of `NAME=value` and, for the "
            "worker's own, `NAME`."
        ),
    ] = None
    mounts: Annotated[
        list[str | Mount] | None,
        Meta(description="What it sees: `source:target` or `source:target:ro`, or mappings."),
    ] = None
    cwd: Annotated[str | None, Meta(description="Working directory in the container.")] = None
    user: Annotated[str | int | None, Meta(description="User in the container, `UID` or `UID:GID`.")] = None
    stdin: Annotated[
        Scalar | dict[str, Any] | list[Any] | None,
        Meta(description="Standard input: text, a reference, or a value that is written as JSON."),
    ] = None


class ContainerSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The runtime and the limits of a container."""

    runtime: Annotated[
        Literal["docker", "podman"] | None,
        Meta(description="Command that runs it. Default: the first of them that is installed."),
    ] = None
    memory: Annotated[
        Size | None, Meta(description="Most memory it may use: bytes, or text such as `512MB`.")
    ] = None
    cpus: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Processors it may use, such as `0.5`.")
    ] = None
    processes: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Processes it may have at once.")
    ] = None
    network: Annotated[
        str | None, Meta(description="Network it is in; `none` cuts it off. Default: the runtime's.")
    ] = None
    pull: Annotated[
        Literal["missing", "always", "never"] | None,
        Meta(description="When the image is fetched. Default `missing`."),
    ] = None


def parse_mount(text: str) -> Mount | None:
    """A mount as the runtimes write it: what has no `/` and is not `.` is a volume. None if it is none."""
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target or mode not in ("", "ro", "rw"):
        return None
    is_path = "/" in source or source in (".", "..")
    return Mount(
        target=target,
        source=source if is_path else None,
        volume=None if is_path else source,
        read_only=mode == "ro",
    )


def _check_mounts(mounts: Any) -> Iterator[Fault]:
    for mount in mounts if isinstance(mounts, list) else ():
        match mount:
            case str() if (text := literal_text(mount)) is not None:
                parsed = parse_mount(text)
                if parsed is None:
                    hint = "write `source:target` or `source:target:ro`"
                    yield Fault(f"`{text}` is no mount", key="mounts", hint=hint)
                    continue
                fields: dict[str, Any] = {"target": parsed.target, "source": parsed.source or parsed.volume}
            case dict():
                fields = mount
                for fault in exactly_one(mount, "source", "volume"):
                    yield Fault(fault.message, key="mounts", hint=fault.hint)
            case _:
                continue
        target = literal_text(fields.get("target"))
        if target is not None and not target.startswith("/"):
            yield Fault(f"the target `{target}` is no absolute path", key="mounts")
        for path in map(literal_text, map(fields.get, ("source", "volume", "target"))):
            if path is not None and set(path) & set(',"\n'):
                yield Fault(f"`{path}` has a comma, a quote or a line end", key="mounts")


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """Variables have names, mounts two ends, and the image is no option of the runtime."""
    image = literal_text(inputs.get("image"))
    if image is not None and (image.startswith("-") or any(map(str.isspace, image))):
        yield Fault(f"`{image}` is no image", key="image")
    env = inputs.get("env")
    for variable in env if isinstance(env, dict | list) else ():
        name = variable if isinstance(env, dict) else str(variable).partition("=")[0]
        if not name or "=" in str(name):
            yield Fault(f"`{variable}` cannot name an environment variable", key="env")
    yield from _check_mounts(inputs.get("mounts"))


EXAMPLE = """\
name: count_lines
kind: container
image: debian:stable-slim
command: [wc, -l, /data/orders.csv]
mounts: ["./data:/data:ro"]
spec: { memory: 64MB, network: none }
"""

KIND = Kind(
    name="container",
    summary="Runs a container with Docker or Podman.",
    result="`{exit_code, stdout, stderr}`; of long output the tail, and `stdout_ref` stands for the whole.",
    example=EXAMPLE,
    inputs=ContainerInputs,
    spec=ContainerSpec,
    defaults={"pull": "missing"},
    check=check,
    reads=frozenset(),
    implementation="noetl.tools.container.tool:ContainerTool",
)
