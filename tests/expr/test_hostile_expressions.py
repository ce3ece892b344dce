"""No source, however hostile, may crash, hang or exhaust the process, or reach beyond its values."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.expr.hostile_cases import HARMLESS, REFUSED_WHEN_EVALUATED, REFUSED_WHEN_READ, UNDEFINED

ROOT = Path(__file__).parents[2]
CHILD = [sys.executable, "-m", "tests.expr.hostile_child"]
CASES = [*REFUSED_WHEN_READ, *REFUSED_WHEN_EVALUATED, *UNDEFINED, *HARMLESS]
Fate = dict[str, Any]


@pytest.fixture(scope="module")
def fates() -> dict[str, Fate]:
    """What became of every case. A child that dies is charged to its case and the rest goes to another."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    results: dict[str, Fate] = {}
    waiting = list(CASES)
    while waiting:
        child = subprocess.run(
            CHILD,
            input=json.dumps(waiting),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
        )
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        assert lines, child.stderr
        results |= {line["end"]: line for line in lines if "end" in line}
        last = lines[-1].get("begin")
        if last is not None:
            results[last] = {
                "fate": "crashed",
                "detail": f"exit {child.returncode}: {child.stderr[-500:]}",
                "seconds": 0,
            }
        waiting = [name for name in waiting if name not in results]
    return results


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", REFUSED_WHEN_READ)
def test_is_refused_when_read(case: str, fates: dict[str, Fate]) -> None:
    assert fates[case]["fate"] == "refused when read", fates[case]["detail"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", REFUSED_WHEN_EVALUATED)
def test_is_refused_when_evaluated(case: str, fates: dict[str, Fate]) -> None:
    assert fates[case]["fate"] == "refused when evaluated", fates[case]["detail"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", UNDEFINED)
def test_finds_nothing_beyond_the_values(case: str, fates: dict[str, Fate]) -> None:
    assert fates[case]["fate"] == "refused when evaluated"
    assert "is undefined" in fates[case]["detail"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", HARMLESS)
def test_is_harmless(case: str, fates: dict[str, Fate]) -> None:
    assert fates[case]["fate"] == "value", fates[case]["detail"]


def test_refusals_when_read_are_quick(fates: dict[str, Fate]) -> None:
    assert {case: fates[case]["seconds"] for case in REFUSED_WHEN_READ if fates[case]["seconds"] > 2} == {}
