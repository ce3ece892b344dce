from pathlib import Path

import pytest

from tests.executions.in_process_command import Commands
from tests.executions.recorded_executions import Recorded


@pytest.fixture
def noetl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Commands:
    return Commands(tmp_path, monkeypatch, capsysbinary)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)
