"""What the parts of a run took, in a project of two tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_run_with_workers_says_what_its_parts_took(tmp_path: Path) -> None:
    for folder in ("kernel", "server"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text("def test_nothing(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.part_times"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    alone, shared = (
        subprocess.run(
            [*command, *options], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True
        ).stdout
        for options in ([], ["-n", "1"])
    )
    part = r"^tests of ([\w ]+): 0 min \d\d s$"
    assert re.findall(part, shared, re.MULTILINE) == ["engine", "server and processes"]
    assert not re.findall(part, alone, re.MULTILINE)
