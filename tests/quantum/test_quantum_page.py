"""The page on the quantum tool shows what it does."""

import json
from pathlib import Path

import noetl
from tests.pages import block_of
from tests.playbooks import document_of

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "quantum.md").read_text("utf-8")


def test_the_example_gives_the_result_that_is_shown() -> None:
    execution = noetl.run(document_of(block_of(PAGE, "yaml")), store="sqlite:///:memory:")
    assert (execution.status, execution.result) == ("completed", json.loads(block_of(PAGE, "json")))


SHOTS = """\
- step: start
  tool:
    - name: bell
      kind: quantum
      action: run
      shots: 3000
      memory: true
      program: 'OPENQASM 3.0; include "stdgates.inc"; qubit[2] q; h q[0]; cx q[0], q[1];'
    - name: counted
      kind: duckdb
      query: SELECT bits, count(*) AS times FROM shots GROUP BY bits ORDER BY bits
      tables: { shots: "{{ bell.memory }}" }
    - name: both
      kind: noop
      args: { rows: "{{ counted.rows }}", counts: "{{ bell.counts }}" }
"""


def test_the_table_of_shots_can_be_queried() -> None:
    execution = noetl.run(document_of(SHOTS), store="sqlite:///:memory:").raise_for_status()
    rows, counts = execution.result["rows"], execution.result["counts"]
    assert {row["bits"]: row["times"] for row in rows} == counts
    assert sum(counts.values()) == 3000
