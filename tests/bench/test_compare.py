import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import compare as comparing
from bench.compare import Comparison, compare, notes, our_workloads, read_measurement, table
from bench.measurement import Measurement
from bench.peers import PEERS
from bench.peers.peer import Unavailable, Worker, environment

PRINTS = """
import json, sys
if sys.argv[1] == "w3":
    sys.exit("no third workload")
print("a greeting of the peer")
print(json.dumps({"workload": sys.argv[1], "seconds": 0.5, "n": 100, "durability": "none", "note": ""}))
"""


class Printing:
    """A peer whose worker prints what it is told to."""

    NAME = "printing"

    def install(self, folder: Path) -> None:
        folder.mkdir(parents=True)

    def versions(self, folder: Path) -> dict[str, str]:
        return {"printing": str(folder.is_dir())}

    @contextmanager
    def serve(self, folder: Path, data: Path) -> Iterator[Worker]:
        assert folder != data
        yield Worker([sys.executable, "-c", PRINTS], environment())


class Missing(Printing):
    NAME = "missing"

    def install(self, folder: Path) -> None:
        raise Unavailable(f"nothing to put into {folder.name}")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round, without workloads of ours."""
    monkeypatch.setattr(comparing, "ROUNDS", 1)
    monkeypatch.setattr(comparing, "our_workloads", list)


@pytest.mark.usefixtures("alone")
def test_a_peer_fills_its_column_and_a_failing_workload_says_why(tmp_path: Path) -> None:
    comparison = compare([Printing()], tmp_path)
    assert comparison.best["w1"]["printing"] == Measurement("w1", 500.0, "ms", n=100, durability="none")
    assert comparison.versions == {"printing": {"printing": "True"}}
    assert comparison.reasons == {"printing w3": "no third workload"}
    assert "w3" not in comparison.best


@pytest.mark.usefixtures("alone")
def test_a_peer_that_cannot_be_installed_is_left_out(tmp_path: Path) -> None:
    comparison = compare([Missing()], tmp_path)
    assert comparison == Comparison({}, {}, {"missing": "not installed: nothing to put into missing"})


@pytest.mark.usefixtures("alone")
def test_a_workload_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "SECONDS", 0)
    comparison = compare([Printing()], tmp_path)
    assert comparison.reasons["printing w1"] == "took longer than 0 s"


def test_the_best_of_the_rounds_is_kept() -> None:
    comparison = Comparison({}, {}, {})
    for value in (3.0, 1.0, 2.0):
        comparison.add("w1", "peer", Measurement("w1", value, "ms"))
    assert comparison.best["w1"]["peer"].value == 1.0


def test_factors_stand_where_both_sides_are_measured() -> None:
    cells = {"noetl": Measurement("w1", 10.0, "ms"), "peer": Measurement("w1", 25.0, "ms")}
    comparison = Comparison({"w1": cells, "w2": {"peer": Measurement("w2", 7.0, "ms")}}, {}, {})
    lines = {line.split()[0]: line for line in table(comparison, ["noetl", "peer"])}
    assert lines["w1"].split()[-3:] == ["10.0", "25.0", "(2.5x)"]
    assert lines["w2"].split()[-1] == "7.0"
    assert lines["w3"].endswith("at once")


def test_a_latency_has_a_line_for_each_percentile() -> None:
    cells = {"noetl": Measurement("w4", 1.0, "ms", p95=2.0), "peer": Measurement("w4", 3.0, "ms", p95=8.0)}
    lines = [
        line for line in table(Comparison({"w4": cells}, {}, {}), ["noetl", "peer"]) if "latency" in line
    ]
    assert [line.split()[-4:] for line in lines] == [
        ["p50", "1.0", "3.0", "(3.0x)"],
        ["p95", "2.0", "8.0", "(4.0x)"],
    ]


def test_a_workload_of_ours_alone_keeps_its_name_and_unit() -> None:
    comparison = Comparison({"w7": {"noetl": Measurement("replayed", 5.0, "events/s")}}, {}, {})
    assert [line.split() for line in table(comparison, ["noetl"])][-1] == [
        "w7",
        "replayed",
        "(events/s)",
        "5.0",
    ]


def test_rows_of_both_sides_are_read_in_milliseconds() -> None:
    ours = Measurement("w4", 2.0, "s", n=3, p95=4.0, durability="full")
    assert read_measurement(ours._asdict()) == Measurement(
        "w4", 2000.0, "ms", n=3, p95=4000.0, durability="full"
    )
    line = {"workload": "w4", "p50_ms": 1.5, "p95_ms": 2.5, "n": 9, "durability": "full", "note": "scaled"}
    assert read_measurement(line) == Measurement(
        "w4", 1.5, "ms", n=9, p95=2.5, durability="full", note="scaled"
    )


def test_notes_tell_durability_scale_and_reasons() -> None:
    row = Measurement("w3", 1.0, "ms", durability="fsync", note="100 of 500 measured, scaled")
    comparison = Comparison({"w3": {"peer": row}}, {}, {"peer w5": "took longer than 120 s"})
    assert list(notes(comparison)) == [
        "w3 peer: fsync; 100 of 500 measured, scaled",
        "peer w5: took longer than 120 s",
    ]


def test_workloads_of_ours_are_found_by_their_files() -> None:
    folder = Path(comparing.__file__).parent / "workloads"
    assert our_workloads() == sorted(path.stem for path in folder.iterdir() if path.stem.startswith("w"))


def test_every_peer_has_a_name_of_its_own() -> None:
    assert len({peer.NAME for peer in PEERS}) == len(PEERS) == 3
