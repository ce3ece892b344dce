import os
from pathlib import Path

import pytest

from tests.conformance.execution.conformance_engine import Engine


@pytest.fixture
def engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Engine:
    for name in list(os.environ):
        if name.startswith("NOETL_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    return Engine(folder, capsysbinary)
