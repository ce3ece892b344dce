"""SQL tasks in whole executions."""

from pathlib import Path
from typing import Any

import pytest

import noetl
from tests.playbooks import document_of

MEMORY = "sqlite:///:memory:"


def ran(text: str, **workload: Any) -> noetl.Execution:
    return noetl.run(document_of(text), workload, store=MEMORY)


FLAKY = """\
workload: { dsn: "" }
workflow:
  - step: start
    tool:
      - name: prepare
        kind: postgres
        dsn: "{{ workload.dsn }}"
        command: |
          CREATE SEQUENCE tries;
          CREATE TABLE done (n int);
          CREATE FUNCTION flaky() RETURNS int LANGUAGE plpgsql AS $$
          BEGIN
            IF nextval('tries') < 3 THEN RAISE EXCEPTION 'busy' USING ERRCODE = '40001'; END IF;
            RETURN 42;
          END $$;
      - name: work
        kind: postgres
        dsn: "{{ workload.dsn }}"
        command: INSERT INTO done VALUES (1); SELECT flaky() AS answer
        spec:
          policy:
            rules:
              - when: "{{ outcome.pg.sqlstate == '40001' and outcome.error.retryable }}"
                then: { do: retry, attempts: 5 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
      - name: count
        kind: postgres
        dsn: "{{ workload.dsn }}"
        query: SELECT count(*) AS n, :answer::int AS answer FROM done
        params: { answer: "{{ work.rows[0].answer }}" }
"""


def test_a_policy_retries_what_the_server_says_may_pass(dsn: str) -> None:
    execution = ran(FLAKY, dsn=dsn)
    assert (execution.status, execution.error) == ("completed", None)
    assert execution.result["rows"] == [{"n": 1, "answer": 42}]


ROUTED = """\
workload: { dsn: "" }
workflow:
  - step: start
    tool:
      - name: twice
        kind: postgres
        dsn: "{{ workload.dsn }}"
        command: CREATE TABLE t (a int CONSTRAINT only_once UNIQUE); INSERT INTO t VALUES (1), (1)
        spec:
          policy:
            rules:
              - when: "{{ outcome.pg.code == '23505' and outcome.pg.constraint == 'only_once' }}"
                then: { do: break, set_ctx: { seen: "{{ outcome.pg.detail }}" } }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop, args: { seen: "{{ ctx.seen }}" } }
"""


def test_a_policy_sees_the_constraint_that_was_violated(dsn: str) -> None:
    assert ran(ROUTED, dsn=dsn).result == {"seen": "Key (a)=(1) already exists."}


COMMANDS = """\
workflow:
  - step: start
    tool:
      - name: ask
        kind: sqlite
        credential: { database: ":memory:" }
        commands: ["SELECT 1 AS a", "SELECT 2 AS b"]
      - name: tell
        kind: noop
        args:
          first: "{{ ask.command_0.rows[0].a }}"
          second: "{{ ask.command_1.rows[0].b }}"
          last: "{{ ask.rows }}"
"""


def test_every_statement_has_its_number_and_credential_means_auth() -> None:
    assert ran(COMMANDS).result == {"first": 1, "second": 2, "last": [{"b": 2}]}


LARGE = """\
workload: { dsn: "" }
workflow:
  - step: start
    tool:
      - name: big
        kind: postgres
        dsn: "{{ workload.dsn }}"
        query: |
          SELECT g AS id, jsonb_build_object('n', g) AS doc, ARRAY[g] AS list, TIMESTAMPTZ '2026-01-01 00:00Z' AS at,
              (g / 8.0)::numeric(9, 3) AS part
          FROM generate_series(1, 3000) g
      - name: create
        kind: sqlite
        command: CREATE TABLE copy (id, doc, list, at, part)
      - name: load
        kind: sqlite
        rows: "{{ big.rows }}"
        into: copy
      - name: sum
        kind: sqlite
        query: SELECT count(*) AS n, sum(id) AS total, max(json_extract(doc, '$.n')) AS doc, min(list) AS list FROM copy
      - name: all
        kind: noop
        args:
          sum: "{{ sum.rows[0] }}"
          length: "{{ big.rows | length }}"
          count: "{{ big.row_count }}"
          third: "{{ big.rows[2] }}"
"""


def test_a_large_table_goes_from_one_database_to_another_and_reads_as_rows(dsn: str) -> None:
    execution = ran(LARGE, dsn=dsn)
    assert execution.error is None
    assert execution.result == {
        "sum": {"n": 3000, "total": 4501500, "doc": 3000, "list": "[1000]"},
        "length": 3000,
        "count": 3000,
        "third": {"id": 3, "doc": {"n": 3}, "list": [3], "at": "2026-01-01T00:00:00+00:00", "part": 0.375},
    }


HUGE = """\
workload: { dsn: "" }
workflow:
  - step: start
    tool:
      - name: big
        kind: postgres
        dsn: "{{ workload.dsn }}"
        query: SELECT g AS id, repeat('x', 1000) AS text FROM generate_series(1, 300) g
      - { name: create, kind: sqlite, command: "CREATE TABLE copy (id, text)" }
      - { name: load, kind: sqlite, rows: "{{ big.rows }}", into: copy }
      - { name: back, kind: sqlite, query: SELECT * FROM copy }
      - { name: again, kind: postgres, dsn: "{{ workload.dsn }}", command: "CREATE TABLE copy (id int, text text)" }
      - { name: reload, kind: postgres, dsn: "{{ workload.dsn }}", rows: "{{ back.rows }}", into: copy }
"""


def test_a_table_that_is_not_read_as_rows_may_stand_before_any_sql_task(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.kernel.scopes.ROWS_BYTES", 100_000)
    execution = ran(HUGE, dsn=dsn)
    assert execution.error is None
    assert execution.result["row_count"] == 300


STORED = """\
workflow:
  - step: start
    tool:
      - name: make
        kind: python
        code: |
          result = [{"id": n, "text": "x" * 100} for n in range(2000)]
      - name: create
        kind: sqlite
        database: local.db
        command: CREATE TABLE t (id INTEGER, text TEXT)
      - name: load
        kind: sqlite
        database: local.db
        rows: "{{ make }}"
        into: t
"""


def test_rows_that_are_kept_beside_the_log_are_loaded_into_a_file_beside_the_playbook(tmp_path: Path) -> None:
    path = tmp_path / "stored.yaml"
    path.write_text(document_of(STORED), "utf-8")
    execution = noetl.run(path, store=f"sqlite:///{tmp_path / 'store' / 'runs.db'}")
    assert (execution.error, execution.result["row_count"]) == (None, 2000)
    assert (tmp_path / "local.db").exists()


LOOPED = """\
workload: { dsn: "" }
workflow:
  - step: start
    tool:
      - { name: create, kind: postgres, dsn: "{{ workload.dsn }}", command: "CREATE TABLE t (n int)" }
    next: { arcs: [{ step: fill, when: "{{ event.name == 'step.done' }}" }] }
  - step: fill
    loop: { in: "{{ range(100) | list }}", iterator: n, spec: { mode: parallel, max_in_flight: 50 } }
    tool:
      - name: insert
        kind: postgres
        dsn: "{{ workload.dsn }}"
        command: INSERT INTO t VALUES (:n)
        params: { n: "{{ iter.n }}" }
    next: { arcs: [{ step: sum, when: "{{ event.name == 'loop.done' }}" }] }
  - step: sum
    tool: { kind: postgres, dsn: "{{ workload.dsn }}", query: "SELECT sum(n) AS sum, count(*) AS n FROM t" }
"""


def test_a_parallel_loop_shares_the_connections(dsn: str) -> None:
    assert ran(LOOPED, dsn=dsn).result["rows"] == [{"sum": 4950, "n": 100}]


KEYCHAIN = """\
keychain:
  - { name: warehouse, kind: env, env: TEST_WAREHOUSE }
workflow:
  - step: start
    tool: { name: ask, kind: postgres, auth: warehouse, query: "SELECT current_user::text AS who" }
"""


def test_a_keychain_entry_may_hold_the_address(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_WAREHOUSE", dsn)
    assert ran(KEYCHAIN).result["rows"] == [{"who": "postgres"}]
