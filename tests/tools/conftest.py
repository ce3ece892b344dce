"""What holds for all tests of tools."""

import pytest


@pytest.fixture(autouse=True)
def forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds live as long as the process: no other test shall see those of this one."""
    monkeypatch.setattr("noetl.tools.registry._declared", {})
