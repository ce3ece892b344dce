"""Runs commands in this process, where a thousand of them cost what ten processes would."""

import os
from pathlib import Path

import pytest

from noetl.cli import main
from tests.cli.command_line import CompletedCommand


class InProcessCommand:
    """`noetl` in a working directory of its own, below a home directory that has nothing else."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[bytes]
    ) -> None:
        for name in list(os.environ):
            if name.startswith("NOETL_"):
                monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(folder.parent))
        monkeypatch.setenv("TZ", "UTC")
        monkeypatch.chdir(folder)
        self._capture = capture

    def __call__(self, *arguments: str) -> CompletedCommand:
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = self._capture.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return CompletedCommand(code, captured.out.decode(), captured.err.decode())
