"""Arguments that may name a file instead of holding their value."""

import sys
from typing import BinaryIO

from noetl.cli.command_failure import CommandFailure

MAX_BYTES = 64 * 1024 * 1024
"""What a workload or ctx may be long: larger data belongs into files that the playbook reads."""

_STDIN = "@-"


def read_argument(argument: str, option: str) -> str:
    """The argument itself, the content of FILE for `@FILE`, or standard input for `@-`. Raises CommandFailure."""
    if not argument.startswith("@"):
        return argument
    name = argument[1:]
    if argument == _STDIN:
        if sys.stdin is None:
            raise CommandFailure("unreadable", f"{option}: standard input is closed")
        return _decoded(sys.stdin.buffer, f"{option}: standard input")
    if not name:
        raise CommandFailure(
            "unreadable", f"{option}: there is no name after the @", hint="@FILE, or @- for standard input"
        )
    try:
        with open(name, "rb") as file:
            return _decoded(file, f"{option}: {name}")
    except OSError as error:
        hint = "@FILE names a file that holds JSON; without the @ the value itself is given"
        raise CommandFailure("unreadable", f"{option}: {name}: {error.strerror}", hint=hint) from None


def reads_stdin(argument: str | None) -> bool:
    return argument == _STDIN


def _decoded(file: BinaryIO, name: str) -> str:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise CommandFailure("unreadable", f"{name} is longer than {MAX_BYTES // 1024**2} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandFailure("unreadable", f"{name} is not UTF-8 text (byte {error.start})") from None
