"""What Docker and Podman are told: both take the same command line."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from noetl.model.outcome import ToolError
from noetl.tools.container.kind import ContainerInputs, ContainerSpec, Mount, parse_mount
from noetl.tools.host.input_rules import byte_count, input_text

_OWN_VARIABLES = re.compile(
    r"PATH|HOME|TMPDIR|LD_.*|GO.*|XDG_.*|DOCKER_.*|BUILDKIT_.*|CONTAINERS?_.*|PODMAN_.*|BUILDAH_.*|STORAGE_.*"
    r"|REGISTRY_.*|SSL_.*|DBUS_.*|(HTTPS?|NO|ALL)_PROXY",
    re.IGNORECASE,
)
"""Names of variables that mean something to the runtime itself."""


def variables(inputs: ContainerInputs) -> dict[str, str]:
    """The environment of the container. A name alone stands for what the worker has, if it has that."""
    match inputs.env:
        case None:
            return {}
        case dict() as mapping:
            return {name: input_text(value) for name, value in mapping.items()}
        case items:
            pairs = (item.partition("=") for item in items)
            return {
                name: value if equals else os.environ[name]
                for name, equals, value in pairs
                if equals or name in os.environ
            }


def passed_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Those that the runtime takes from its own environment, so that no list of processes shows them."""
    return {name: value for name, value in env.items() if not _OWN_VARIABLES.fullmatch(name)}


def run_arguments(
    inputs: ContainerInputs, spec: ContainerSpec, env: Mapping[str, str], folder: Path, name: str
) -> list[str]:
    """The arguments of the runtime. It keeps the container: afterwards it says how that ended."""
    # Quiet: otherwise fetching the image prints among what the container does.
    options = ["run", f"--name={name}", "--label=noetl", "--quiet", f"--pull={spec.pull or 'missing'}"]
    if inputs.stdin is not None:
        options.append("--interactive")
    passed = passed_variables(env)
    options += [f"--env={name}" if name in passed else f"--env={name}={value}" for name, value in env.items()]
    options += [f"--mount={_mount_text(mount, folder)}" for mount in inputs.mounts or ()]
    knobs = {
        "entrypoint": inputs.entrypoint,
        "workdir": inputs.cwd,
        "user": inputs.user,
        "memory": f"{byte_count(spec.memory)}b" if spec.memory is not None else None,
        # Otherwise it may use as much again of swap before it is out of memory.
        "memory-swap": f"{byte_count(spec.memory)}b" if spec.memory is not None else None,
        "cpus": f"{spec.cpus:g}" if spec.cpus is not None else None,
        "pids-limit": spec.processes,
        "network": spec.network,
    }
    options += [f"--{knob}={value}" for knob, value in knobs.items() if value is not None]
    match inputs.command:
        case None:
            command = []
        case str() as text:
            command = ["sh", "-c", text]
        case parts:
            command = [input_text(part) for part in parts]
    return [*options, inputs.image, *command]


def _mount_text(mount: str | Mount, folder: Path) -> str:
    if isinstance(mount, str):
        text = mount
        parsed = parse_mount(text)
        if parsed is None:
            raise ToolError("input", f"`{text}` is no mount: write `source:target` or `source:target:ro`")
        mount = parsed
    source = mount.volume if mount.source is None else str((folder / mount.source).resolve())
    mode = ",readonly" if mount.read_only else ""
    return f"type={'volume' if mount.source is None else 'bind'},source={source},target={mount.target}{mode}"
