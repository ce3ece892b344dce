"""What the tests of `noetl run` share."""

from pathlib import Path

import pytest

from tests.cli.command_line import BROKEN
from tests.cli.run_playbooks import FAILING, GREET, SLOW


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    for name, text in (("greet", GREET), ("failing", FAILING), ("slow", SLOW), ("broken", BROKEN)):
        (place / f"{name}.yaml").write_text(text)
    return place
