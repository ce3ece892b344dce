"""Sessions in the documentation: commands after `$`, what they print, and Ctrl-C as `^C`."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.cli.command_line import environment

ROOT = Path(__file__).parents[2]
WHERE = "/srv/shop"
"""The folder in which the sessions in the documentation take place."""

_MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\d", "DATE"),
    (r"\d\d:\d\d:\d\d(\.\d+)?", "TIME"),
    (r"\d+ min \d+ s|\d+(\.\d+)? s\b", "LONG"),
    (r"\s+", " "),
)
_BEGINS = re.compile(r"TIME step \w+")
"""A step that begins is told only if it has not ended when there is time to tell it."""


class Command(NamedTuple):
    """One command of a session, and the lines that are shown after it."""

    text: str
    output: list[str]


def commands_of(page: str) -> Iterator[Command]:
    """The commands of a page in order. A session is indented by four blanks."""
    current: Command | None = None
    for line in page.splitlines():
        if line.startswith("    $ "):
            if current:
                yield current
            current = Command(line[6:], [])
        elif current and (line.startswith("    ") or not line):
            current.output.append(line[4:])
        elif current:
            yield current
            current = None
    if current:
        yield current


class SessionFolder:
    """A folder in which `noetl` and `scripts/noetl` are this release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for program in (folder.parent / "bin" / "noetl", folder / "scripts" / "noetl"):
            program.parent.mkdir(parents=True)
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m noetl "$@"\n')
            program.chmod(0o755)
        self.environment = environment(folder)
        self.environment["PATH"] = f"{folder.parent}/bin:{self.environment['PATH']}"

    def check(self, command: Command) -> None:
        """Runs it; what it prints must be what is shown, where `…` stands for any lines."""
        printed = self._printed(command)
        expected = [line for line in command.output if line != "^C"]
        assert re.fullmatch(_pattern(expected), _masked(printed)), f"$ {command.text}\n" + "\n".join(printed)

    def _printed(self, command: Command) -> list[str]:
        child = subprocess.Popen(
            ["sh", "-c", command.text if ">" in command.text else f"exec {command.text}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert child.stdout
        printed: list[str] = []
        with child:
            if "^C" in command.output:
                last = _mask(command.output[command.output.index("^C") - 1])
                for line in child.stdout:
                    printed.append(line.rstrip("\n"))
                    if _mask(printed[-1]) == last:
                        break
                child.send_signal(signal.SIGINT)
            printed += child.stdout.read().splitlines()
        return [line.replace(str(self.folder), WHERE) for line in printed]


def _mask(line: str) -> str:
    for pattern, name in _MASKS:
        line = re.sub(pattern, name, line)
    return line.strip()


def _masked(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in _without_beginnings(lines))


def _pattern(expected: list[str]) -> str:
    return "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(f"{line}\n") for line in _without_beginnings(expected)
    )


def _without_beginnings(lines: list[str]) -> list[str]:
    return [line for line in map(_mask, lines) if line and not _BEGINS.fullmatch(line)]
