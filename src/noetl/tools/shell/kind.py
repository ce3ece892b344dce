from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.host.input_rules import Inputs, Scalar


class ShellInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One process."""

    command: Annotated[
        Annotated[str, Meta(min_length=1)] | Annotated[list[str | int | float], Meta(min_length=1)],
        Meta(description="A list is a program and its arguments; a text is run by `sh -c`."),
    ]
    env: Annotated[dict[str, Scalar] | None, Meta(description="Environment variables to add.")] = None
    cwd: Annotated[str | None, Meta(description="Working directory, relative to the playbook.")] = None
    stdin: Annotated[
        Scalar | dict[str, Any] | list[Any] | None,
        Meta(description="Standard input: text, a reference, or a value that is written as JSON."),
    ] = None


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """There is a program to run, and variables have names the system takes."""
    command, env = inputs.get("command"), inputs.get("env")
    program = command[0] if isinstance(command, list) and command else command
    if isinstance(program, str) and not program.strip():
        yield Fault("the command is empty", key="command", hint="name the program to run")
    for name in env if isinstance(env, dict) else ():
        if not name or "=" in name:
            yield Fault(f"`{name}` cannot name an environment variable", key="env")


EXAMPLE = """\
name: count
kind: shell
command: [wc, -l, orders.csv]
"""

KIND = Kind(
    name="shell",
    summary="Runs a program or a shell command.",
    result="`{exit_code, stdout, stderr}`; of long output the tail, and `stdout_ref` stands for the whole.",
    example=EXAMPLE,
    inputs=ShellInputs,
    check=check,
    reads=frozenset(),
    implementation="noetl.tools.shell.tool:ShellTool",
)
