"""Nothing lost when the power goes: only what was synced is left, and of the rest whatever the disk likes."""

from pathlib import Path

import pytest

from noetl.stores.sqlite import writer
from noetl.testing.crash import Crashes
from tests.crash.crash_scenarios import SCENARIOS


@pytest.mark.parametrize("name", ["children", "stored_fork"])
def test_the_loss_of_power_at_any_sync_loses_nothing(
    name: str, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder without a home on; the log is emptied, and begins again, every few commits."""
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 24)
    monkeypatch.setattr(writer, "LOG_ROOM", 64 << 10)
    assert Crashes(SCENARIOS[name], memory_folder).at_every_sync() > 20
