import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from bench import compare as comparing
from bench.against import OTHER, THIS, against_table
from bench.compare import Comparison, read_report
from bench.noetl_side import NoetlSide
from bench.peers import PEERS
from bench.peers.peer import environment
from bench.protocol import Plan, Report
from bench.resumption import Resumption
from bench.run import main as run_main
from bench.run import peer_names, workload_names
from bench.side import Unavailable, Worker, Wrap
from bench.workload_table import END, FIRST_STEP, RUN
from tests.bench.bench_reports import report_of, results_of

PRINTS = """
import json, os, sys
with open(os.environ["TURNS"], "a") as file:
    print(*sys.argv[1:], file=file)
if sys.argv[2] == "w3":
    sys.exit("no third workload")
print("a greeting of the peer")
shots = [[0.5]] * int(sys.argv[4])
print(json.dumps({"workload": sys.argv[2], "seconds": {"run": shots}, "durability": "none", "peak": 7}))
"""


class Printing:
    """A side whose worker notes that it was called, and prints a report."""

    DURABLE = True

    def __init__(self, name: str, turns: Path) -> None:
        self.NAME, self._turns = name, turns

    def install(self, folder: Path) -> None:
        folder.mkdir(parents=True)

    def versions(self, folder: Path) -> dict[str, str]:
        return {"printing": str(folder.is_dir())}

    @contextmanager
    def serve(self, folder: Path, data: Path, wrap: Wrap) -> Iterator[Worker]:
        assert folder != data
        command = wrap([sys.executable, "-c", PRINTS, self.NAME])
        yield Worker(command, environment(TURNS=str(self._turns)))

    def resume(self, folder: Path, data: Path, steps: int) -> Resumption:
        assert data.is_dir()
        assert folder != data
        return Resumption(float(steps), 2.0 * steps)


class Missing(Printing):
    def install(self, folder: Path) -> None:
        raise Unavailable(f"nothing to put into {folder.name}")


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    return tmp_path / "turns.txt"


def comparison_of(turns: Path, names: list[str], plan: Plan, sides: str = "ab") -> Comparison:
    return Comparison([Printing(name, turns) for name in sides], turns.parent / "peers", plan, names)


def test_sides_take_turns_within_a_round_and_another_is_first_in_the_next(turns: Path) -> None:
    comparison = comparison_of(turns, ["w1", "w2"], Plan(2, 1, 3, 4))
    comparison.measure()
    assert turns.read_text().splitlines() == [
        "a w1 1 3 4",
        "b w1 1 3 4",
        "a w2 1 3 4",
        "b w2 1 3 4",
        "b w1 1 3 4",
        "a w1 1 3 4",
        "b w2 1 3 4",
        "a w2 1 3 4",
    ]


def test_each_round_keeps_its_report(turns: Path) -> None:
    comparison = comparison_of(turns, ["w1"], Plan(2, 1, 3), "a")
    comparison.measure()
    report = Report("w1", {RUN: [[0.5]] * 3}, durability="none", peak=7)
    assert comparison.results.reports == {"w1": {"a": [report, report]}}
    assert comparison.results.versions == {"a": {"printing": "True"}}


def test_a_workload_that_fails_says_why_and_is_not_tried_again(turns: Path) -> None:
    comparison = comparison_of(turns, ["w3"], Plan(2, 1, 3), "a")
    comparison.measure()
    assert comparison.results.reasons == {"a w3": "no third workload"}
    assert comparison.results.reports_of("w3", "a") == []
    assert len(turns.read_text().splitlines()) == 1


def test_a_side_that_cannot_be_installed_is_left_out(turns: Path) -> None:
    comparison = Comparison([Missing("missing", turns)], turns.parent, Plan(), ["w1"])
    comparison.measure()
    assert comparison.results.reports == {}
    assert comparison.results.reasons == {"missing": "not installed: nothing to put into missing"}


def test_a_workload_that_takes_too_long_is_ended(turns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "SECONDS", 0)
    comparison = comparison_of(turns, ["w1"], Plan(1, 1, 1), "a")
    comparison.measure()
    assert comparison.results.reasons == {"a w1": "took longer than 0 s"}


def test_workloads_of_ours_alone_are_not_asked_of_peers(turns: Path) -> None:
    comparison = comparison_of(turns, ["w6", "w7"], Plan(1, 1, 1))
    comparison.measure()
    assert not turns.exists()


def test_a_killed_run_is_measured_as_often_as_everything_else(turns: Path) -> None:
    comparison = comparison_of(turns, ["w10"], Plan(1, 1, 2, 10), "a")
    comparison.measure()
    (report,) = comparison.results.reports_of("w10", "a")
    assert report.seconds == {FIRST_STEP: [[10.0], [10.0]], END: [[20.0], [20.0]]}


def test_a_line_that_is_no_report_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        read_report('hello\n{"workload": "w1", "seconds": {"run": [0.5]}}\n')


def test_another_checkout_is_compared_round_by_round() -> None:
    results = results_of(
        {
            "w1": {
                OTHER: [report_of("w1", 10.0), report_of("w1", 20.0)],
                THIS: [report_of("w1", 5.0), report_of("w1", 15.0)],
            }
        }
    )
    assert list(against_table(results).lines) == [["w1", RUN, "15.00", "10.00", "0.625", "0.500 … 0.750"]]


def test_names_on_the_command_line_are_checked_and_put_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert workload_names("w2b,w1b") == ["w1b", "w2b"]
    assert peer_names("dbos,restate") == ["restate", "dbos"]
    with pytest.raises(SystemExit):
        run_main(["--only", "w1,w0"])
    assert "w0 is none of w1, w1b" in capsys.readouterr().err


def test_a_peer_that_has_no_database_is_refused_on_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_main(["--postgres", "--peers", "restate,dbos"])
    assert "restate cannot keep its state in PostgreSQL" in capsys.readouterr().err


def test_every_side_has_a_name_of_its_own() -> None:
    assert len({side.NAME for side in (NoetlSide(), *PEERS)}) == 4
