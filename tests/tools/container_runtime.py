"""A program that speaks the command line of Docker, in a folder of its own."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from noetl.model.outcome import Outcome
from noetl.tools.container.tool import ContainerTool
from tests.tools.calls import call_of, quiet

STAND_IN = Path(__file__).with_name("container_stand_in.py")


class ContainerRuntime:
    """A folder with the stand-in under the name `docker`, and what it ran last."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.home, self.work = folder / "bin", folder / "containers", folder / "work"
        for path in (self.programs, self.home, self.work):
            path.mkdir()
        self.install("docker")

    def install(self, name: str) -> None:
        program = self.programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {STAND_IN} "$@"\n')
        program.chmod(0o755)

    @property
    def last_run(self) -> Any:
        return json.loads((self.home / "last.json").read_text())

    @property
    def last_removal(self) -> Any:
        """The options with which the last container was removed."""
        return json.loads((self.home / "removal.json").read_text())

    @property
    def containers(self) -> list[str]:
        return [path.name for path in self.home.iterdir() if path.is_dir()]

    def outcome(self, *, timeout: float = 30, spec: Any = None, log: Any = quiet, **inputs: Any) -> Outcome:
        async def run() -> Outcome:
            tool = ContainerTool()
            try:
                call = call_of(
                    "container",
                    {"image": "host", **inputs},
                    spec=spec,
                    timeout=timeout,
                    folder=self.work,
                    log=log,
                )
                return await tool.run(call)
            finally:
                await tool.close()

        return asyncio.run(run())

    def error(self, **inputs: Any) -> tuple[str, str, bool]:
        error = self.outcome(**inputs).error
        assert error is not None
        return error.kind, error.message, error.retryable
