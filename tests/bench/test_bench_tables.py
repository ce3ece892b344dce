from pathlib import Path

import pytest

from bench.protocol import Report
from bench.results import Results, read_results
from bench.run import report_lines
from bench.tables import (
    Table,
    memory_table,
    notes,
    ratio_table,
    render_markdown,
    render_plain,
    served_table,
    time_table,
)
from bench.workload_table import BARE, NEW, RUN
from tests.bench.bench_reports import report_of, results_of


def line_of(table: Table, workload: str, ending: str = "") -> dict[str, str]:
    """The cells of a line by their heads; those of fsyncs follow their side's, as `SIDE fsyncs`."""
    (line,) = [line for line in table.lines if line[0] == workload and line[1].endswith(ending)]
    sides = ["", *table.head]
    heads = [f"{sides[n]} fsyncs" if head == "fsyncs" else head for n, head in enumerate(table.head)]
    return dict(zip(heads, line, strict=True))


def two_sides() -> Results:
    return results_of(
        {
            "w1": {
                "noetl": [report_of("w1", 10.0, 20.0, 30.0, waits=False)],
                "peer": [report_of("w1", 50.0)],
            },
            "w1b": {
                "noetl": [report_of("w1b", 10.0), report_of("w1b", 20.0)],
                "peer": [report_of("w1b", 35.0), report_of("w1b", 50.0)],
                "loose": [report_of("w1b", 10.0, waits=False), report_of("w1b", 20.0, waits=False)],
            },
        }
    )


def test_a_time_has_its_quartiles_and_says_whether_steps_wait_for_the_disk() -> None:
    table = time_table(two_sides())
    assert line_of(table, "w1", "steps")["noetl"] == "20.0 [15.0-25.0] *"
    assert line_of(table, "w1", "steps")["peer"] == "50.0 [50.0-50.0]"
    assert line_of(table, "w1", "steps")["loose"] == ""
    assert "2 rounds of 2 shots after 1 warm-up; * steps do not wait" in table.title


def test_a_new_document_has_a_line_of_its_own() -> None:
    report = Report("w1", {NEW: [[0.3]], RUN: [[0.1]]})
    table = time_table(results_of({"w1": {"noetl": [report], "peer": [report_of("w1", 5.0)]}}))
    assert line_of(table, "w1", "steps")["noetl"].startswith("100 ")
    assert line_of(table, "w1", "new document")["noetl"].startswith("300 ")
    assert line_of(table, "w1", "new document")["peer"] == ""


def test_fsyncs_stand_beside_their_side_where_they_were_counted() -> None:
    results = two_sides()
    assert "fsyncs" not in time_table(results).head
    results.sync_calls = {
        "w1b": {"noetl": {"fdatasync": 101.0}, "peer": {"fsync": 200.5, "sync_file_range": 9.0}}
    }
    line = line_of(time_table(results), "w1b", "write")
    assert (line["noetl fsyncs"], line["peer fsyncs"], line["loose fsyncs"]) == ("101", "200.5", "")
    assert line_of(time_table(results), "w1b", "new document")["noetl fsyncs"] == ""


def test_runs_of_many_laps_have_a_line_for_the_95th_percentile() -> None:
    report = Report("w4", {RUN: [[number / 1e3 for number in range(101)]]})
    table = time_table(results_of({"w4": {"noetl": [report]}}))
    assert line_of(table, "w4", "warm")["noetl"].startswith("50.0 ")
    assert line_of(table, "w4", "warm, p95")["noetl"].startswith("95.0 ")


def test_ratios_are_medians_of_rounds_and_goals_are_for_the_fastest_durable_peer() -> None:
    line = line_of(ratio_table(two_sides()), "w1b", "write")
    assert line["peer"] == "3.0x [2.5-3.5]"
    assert line["loose"] == "1.0x [1.0-1.0]"
    assert line["fastest durable"] == "peer 3.0x"
    assert line["goal"] == "3x: met"


def test_a_server_is_compared_with_peers_and_has_goals_of_its_own() -> None:
    results = results_of(
        {
            "w1b": {
                "noetl": [report_of("w1b", 10.0)],
                "noetl server": [report_of("w1b", 20.0)],
                "peer": [report_of("w1b", 50.0)],
            },
            "w7": {"noetl": [report_of("w7", 60.0)], "noetl server": [report_of("w7", 110.0)]},
        }
    )
    ours = line_of(ratio_table(results), "w1b", "write")
    assert (ours["noetl server"], ours["fastest durable"], ours["goal"]) == (
        "2.0x [2.0-2.0]",
        "peer 5.0x",
        "3x: met",
    )
    served = line_of(served_table(results), "w1b", "write")
    assert (served["peer"], served["fastest durable"], served["goal"]) == (
        "2.5x [2.5-2.5]",
        "peer 2.5x",
        "2x: met",
    )
    share = line_of(served_table(results), "w7")
    assert share["times those of noetl server"].endswith(": 55%")
    assert share["goal"] == "at least 60%: missed"


def test_on_one_database_goals_are_for_the_faster_peer_durable_or_not() -> None:
    results = results_of(
        {
            "w3": {
                "noetl server": [report_of("w3", 10.0)],
                "peer": [report_of("w3", 60.0)],
                "loose": [report_of("w3", 40.0, waits=False)],
            }
        },
        database="18.6, fsync=on",
    )
    line = line_of(served_table(results), "w3", "at once")
    assert (line["peer"], line["fastest"], line["goal"]) == ("6.0x [6.0-6.0]", "loose 4.0x", "5x: missed")
    lines = report_lines(results, markdown=False)
    assert "PostgreSQL: 18.6, fsync=on" in lines
    assert "Ratios" not in lines


def test_a_goal_that_a_server_misses_says_what_its_messages_and_decisions_alone_would_reach() -> None:
    results = results_of(
        {
            "w1": {
                "noetl": [report_of("w1", 10.0)],
                "noetl server": [report_of("w1", 150.0)],
                "bare plane": [report_of("w1", 80.0)],
                "peer": [report_of("w1", 100.0)],
            }
        }
    )
    served = line_of(served_table(results), "w1", "no-op steps")
    assert served["fastest durable"] == "peer 0.7x"
    assert served["goal"] == "2x: missed, messages and decisions alone 1.1x"


def test_a_goal_that_is_missed_says_so() -> None:
    reports: dict[str, dict[str, list[Report | None]]] = {
        "w2b": {"noetl": [report_of("w2b", 10.0)], "peer": [report_of("w2b", 49.0)]}
    }
    assert line_of(ratio_table(results_of(reports)), "w2b", "flight")["goal"] == "5x: missed"


@pytest.mark.parametrize(("bare", "verdict"), [(0.02, "at most 20x: met"), (0.01, "at most 20x: missed")])
def test_hello_world_is_compared_with_the_bare_interpreter(bare: float, verdict: str) -> None:
    report = Report("w6", {RUN: [[0.4]], BARE: [[bare]]})
    (line,) = ratio_table(results_of({"w6": {"noetl": [report]}})).lines
    assert line[1].startswith(f"noetl run to python -c pass: {0.4 / bare:.1f}x")
    assert line[-1] == verdict


def test_memory_is_the_most_of_all_rounds() -> None:
    rounds: list[Report | None] = [Report("w1", peak=50_000_000), None, Report("w1", peak=70_000_000)]
    table = memory_table(results_of({"w1": {"noetl": rounds, "peer": [Report("w1")]}}))
    assert line_of(table, "w1") == {"": "a chain of 100 no-op steps", "noetl": "70", "peer": ""}


def test_notes_tell_machine_versions_promises_scale_and_reasons() -> None:
    report = Report("w3", {RUN: [[1.0]]}, durability="no fsync", note="20 of 500 runs measured, scaled")
    results = results_of(
        {"w3": {"peer": [report]}, "w3b": {"peer": [report]}},
        machine={"processor": "fast"},
        versions={"noetl": {}, "peer": {"server": "1.2"}},
        reasons={"peer w5": "took longer than 300 s"},
    )
    lines = list(notes(results))
    assert lines[:2] == ["processor: fast", "peer: server 1.2"]
    assert "peer w3: 20 of 500 runs measured, scaled" in lines
    assert "peer w3, w3b: no fsync" in lines
    assert lines[-1] == "peer w5: took longer than 300 s"


def test_tables_are_plain_or_markdown() -> None:
    table = Table("Times", ["", "what", "noetl"], [["w1", "a chain", "1.0"], ["w10", "killed", "10.0"]])
    assert list(render_plain(table)) == [
        "Times",
        "",
        "     what     noetl",
        "w1   a chain    1.0",
        "w10  killed    10.0",
        "",
    ]
    assert list(render_markdown(table))[2:5] == [
        "|  | what | noetl |",
        "| --- | --- | ---: |",
        "| w1 | a chain | 1.0 |",
    ]


@pytest.mark.parametrize("markdown", [False, True])
def test_what_was_written_prints_the_same_tables(tmp_path: Path, markdown: bool) -> None:
    path = tmp_path / "results.json"
    results = two_sides()
    results.reports["w1b"]["peer"].insert(0, None)
    results.write(path)
    lines = report_lines(results, markdown=markdown)
    assert report_lines(read_results(path), markdown=markdown) == lines
    assert any("| w1b |" in line for line in lines) == markdown
