"""The example of a parameter sweep: it does what theory says, again and again, and after a crash, too."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from noetl.model.reference import ARROW_MEDIA_TYPE
from tests.cli.command_line import COMMAND, environment, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "quantum_sweep.yaml"


def ended(*arguments: str, cwd: Path) -> dict[str, Any]:
    ran = run(*arguments, "-q", "-o", "json", cwd=cwd)
    assert ran.code == 0, ran.err
    execution: dict[str, Any] = ran.json
    return execution


def test_a_sweep_measures_what_theory_says_and_survives_a_crash(tmp_path: Path) -> None:
    execution = ended("run", str(EXAMPLE), cwd=tmp_path)
    assert [point["angle"] for point in execution["result"]] == [0.0, 0.785, 1.571, 2.356, 3.142]
    for point in execution["result"]:
        assert point["measured"] == pytest.approx(point["expected"], abs=0.03)
    shots = execution["ctx"]["shots"]
    assert [(reference["media_type"], reference["length"]) for reference in shots] == [
        (ARROW_MEDIA_TYPE, 4096)
    ] * 5

    with subprocess.Popen(
        [*COMMAND, "run", str(EXAMPLE), "-v"],
        cwd=tmp_path,
        env=environment(tmp_path, {"TMPDIR": str(tmp_path)}),  # what a killed worker leaves stays there
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr
        assert any("task poll, attempt 1" in line for line in child.stderr)
        child.kill()
    resumed = ended("run", "--resume", "latest", cwd=tmp_path)
    assert resumed["execution_id"] != execution["execution_id"]
    assert resumed["result"] == execution["result"]
    assert [reference["hash"] for reference in resumed["ctx"]["shots"]] == [
        reference["hash"] for reference in shots
    ]
