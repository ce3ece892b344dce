"""The fault benchmark, as small as it gets, on real processes."""

from pathlib import Path

import pytest

from bench.faults.__main__ import main
from bench.faults.fault_plan import SERVER, plan_faults

SEED = 12
FAULTS, WORKERS, TTL, GAP = 6, 3, 10, 0.8


@pytest.mark.timeout(300)
def test_executions_outlive_kills_and_stops_of_server_and_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_faults(SEED, FAULTS, WORKERS, TTL, GAP)
    assert {(fault.target == SERVER, fault.action) for fault in plan} >= {
        (True, "kill"),
        (False, "kill"),
        (False, "stop"),
    }
    sizes = ["--executions", "30", "--faults", str(FAULTS), "--workers", str(WORKERS), "--slots", "4"]
    code = main(
        [*sizes, "--ttl", str(TTL), "--gap", str(GAP), "--seed", str(SEED), "--keep", str(tmp_path / "kept")]
    )
    output = capsys.readouterr().out
    assert code == 0, output
    assert output.splitlines()[0] == f"seed {SEED}"
    assert "executions: 30 in the store, 30 completed" in output
    assert "verified: 30 histories" in output
    assert output.endswith("nothing lost, nothing recorded twice\n")
