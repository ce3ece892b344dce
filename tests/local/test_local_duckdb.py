"""Playbooks in which tables go from task to task."""

from pathlib import Path
from typing import Any

import pytest

import noetl
from tests.local.local_engine import HEAD

MEMORY = "sqlite:///:memory:"


def result_of(workflow: str, folder: Path, **workload: Any) -> Any:
    (folder / "p.yaml").write_text(HEAD + workflow)
    execution = noetl.run(folder / "p.yaml", workload, store=MEMORY)
    assert execution.error is None, execution.error
    return execution.result


def refuse(_: bytes) -> Any:
    raise AssertionError("a table was read as rows")


CHAIN = """
workflow:
- step: start
  tool:
    - name: orders
      kind: python
      code: |
        import pandas
        result = pandas.DataFrame({"id": range(30_000), "day": [i % 7 for i in range(30_000)]})
    - name: late
      kind: duckdb
      query: select id, day from ORDERS where day >= $day
      params: { day: 3 }
  next: { arcs: [{ step: report, args: { table: "{{ event.result.rows }}" } }] }
- step: report
  tool:
    - name: by_day
      kind: duckdb
      query: select day, count(*) as n from start group by day order by day
    - name: total
      kind: python
      args: { days: "{{ by_day.rows }}", late: "{{ args.table }}" }
      spec: { tables: arrow }
      code: |
        result = {"rows": late.num_rows, "days": len(days), "first": days[0]}
"""


def test_tables_go_from_python_to_duckdb_and_back_without_becoming_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.worker.value_cache.decode_value_or_table", refuse)
    assert result_of(CHAIN, tmp_path) == {"rows": 17_142, "days": 4, "first": {"day": 3, "n": 4_286}}


def test_small_and_large_results_of_tasks_and_steps_are_tables_by_their_labels(tmp_path: Path) -> None:
    workflow = """
workflow:
- step: start
  tool: { kind: python, code: "result = [{'id': i, 'name': 'n' * 100} for i in range(2000)]" }
  next: { arcs: [{ step: small-one }] }
- step: small-one
  tool: { kind: python, code: "result = [{'id': 7}]" }
  next: { arcs: [{ step: join }] }
- step: join
  tool:
    - name: extra
      kind: noop
      args: { rows: [{ id: 7, more: 1 }] }
    - kind: duckdb
      query: |
        select start.id, length(name) as n, more from "small-one" join start using (id) join extra using (id)
"""
    assert result_of(workflow, tmp_path)["rows"] == [{"id": 7, "n": 100, "more": 1}]


def test_a_step_that_did_not_run_is_no_table_and_says_so(tmp_path: Path) -> None:
    workflow = """
workflow:
- step: start
  tool: { kind: duckdb, query: select * from later }
- step: later
  tool: { kind: noop }
"""
    (tmp_path / "p.yaml").write_text(HEAD + workflow)
    execution = noetl.run(tmp_path / "p.yaml", store=MEMORY)
    assert execution.error is not None
    assert execution.error["kind"] == "sql"
    assert execution.error["message"].endswith("`later` is not a table here: nothing has set it")


def test_a_column_may_have_the_name_of_a_label(tmp_path: Path) -> None:
    workflow = """
workflow:
- step: start
  tool:
    - { name: day, kind: python, code: "result = 'a text'" }
    - { name: t, kind: duckdb, query: "select 1 as day, case when true then 2 end as none" }
    - { name: last, kind: duckdb, query: "select day from t" }
"""
    assert result_of(workflow, tmp_path)["rows"] == [{"day": 1}]


def test_the_iterations_of_a_loop_share_the_database_of_the_execution(tmp_path: Path) -> None:
    workflow = """
workload: { parts: [1, 2, 3, 4, 5, 6] }
workflow:
- step: start
  tool: { kind: duckdb, command: "create table parts(n int)" }
  next: { arcs: [{ step: load }] }
- step: load
  loop: { in: "{{ workload.parts }}", iterator: part, spec: { mode: parallel } }
  tool: { kind: duckdb, command: "insert into parts values ($n)", params: { n: "{{ iter.part }}" } }
  next: { arcs: [{ step: total, when: "{{ event.name == 'loop.done' }}" }] }
- step: total
  tool: { kind: duckdb, query: select sum(n) as total from parts }
"""
    assert result_of(workflow, tmp_path)["rows"] == [{"total": 21}]


def test_a_loop_runs_over_the_rows_of_a_large_table(tmp_path: Path) -> None:
    workflow = """
workflow:
- step: start
  tool: { kind: duckdb, query: "select range as id, repeat('x', 100) as pad from range(1500)" }
  next: { arcs: [{ step: each, args: { rows: "{{ event.result.rows }}" } }] }
- step: each
  loop: { in: "{{ args.rows }}", iterator: row, spec: { mode: parallel, max_in_flight: 50 } }
  tool: { kind: noop, args: { id: "{{ iter.row.id }}" } }
  next: { arcs: [{ step: end, when: "{{ event.name == 'loop.done' }}", args: { total: "{{ event.loop.total }}" } }] }
- step: end
  tool: { kind: duckdb, query: "select sum(id) as s, $n::int as n from each", params: { n: "{{ args.total }}" } }
"""
    assert result_of(workflow, tmp_path)["rows"] == [{"s": 1_124_250, "n": 1_500}]


def test_a_policy_sees_what_duckdb_says(tmp_path: Path) -> None:
    workflow = """
workflow:
- step: start
  tool:
    - name: load
      kind: duckdb
      command: create table t(a int primary key); insert into t values (1), (1)
      spec:
        policy:
          rules:
            - when: "{{ outcome.duckdb.type == 'Constraint' and outcome.error.kind == 'sql' }}"
              then: { do: continue, set_iter: { seen: "{{ outcome.duckdb.statement }}" } }
            - else: { then: { do: fail } }
    - { kind: noop, args: { statement: "{{ iter.seen }}" } }
"""
    assert result_of(workflow, tmp_path) == {"statement": 1}
