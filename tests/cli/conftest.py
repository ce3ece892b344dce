"""What the tests of `noetl run` share."""

from pathlib import Path

import pytest

from tests.cli.command_line import BROKEN
from tests.cli.run_playbooks import FAILING, GREET, SLOW


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    for name, text in (("greet", GREET), ("failing", FAILING), ("slow", SLOW), ("broken", BROKEN)):
        (folder / f"{name}.yaml").write_text(text)
    return folder
