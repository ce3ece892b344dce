from pathlib import Path

import pytest

from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecutions


@pytest.fixture
def noetl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> InProcessCommand:
    return InProcessCommand(tmp_path, monkeypatch, capsysbinary)


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedExecutions:
    return RecordedExecutions(tmp_path)
