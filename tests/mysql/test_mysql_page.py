"""The page on the mysql tool shows what the tool does, and other documents find it."""

import json
from pathlib import Path

import noetl
from tests.dialects.dialect_execution import MEMORY
from tests.dsl.in_use.spelling_rows import HEADER
from tests.pages import block_of
from tests.playbooks import document_of

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "mysql.md").read_text("utf-8")
TRANSFER = """\
workload: { dsn: "" }
workflow:
- step: start
  tool: {kind: mysql, dsn: "{{ dsn }}", input: {}, command: "CREATE TABLE a (id int, at datetime); CREATE TABLE b (number int, at datetime); INSERT INTO a VALUES (1, '2026-01-31 10:00:00'), (2, NULL); INSERT INTO b VALUES (9, NULL)"}
  next: {arcs: [{step: copy}]}
- step: copy
  tool:
  - {name: make, kind: sqlite, database: copy.db, command: "CREATE TABLE c (number int, at text)"}
  - {name: out, kind: transfer, source: {kind: mysql, dsn: "{{ dsn }}", query: "SELECT * FROM a"}, target: {kind: sqlite, database: copy.db, table: c}, mapping: {number: id, at: at}}
  - {name: back, kind: transfer, source: {kind: sqlite, database: copy.db, query: "SELECT * FROM c"}, target: {kind: mysql, dsn: "{{ dsn }}", table: b}, mode: replace}
  - {name: look, kind: mysql, dsn: "{{ dsn }}", pool: {max_size: 2, max_waiting: 9}, command: "SELECT * FROM b ORDER BY number"}
"""


def test_the_example_gives_the_result_that_is_shown(mysql_dsn: str) -> None:
    execution = noetl.run(document_of(block_of(PAGE, "yaml")), {"dsn": mysql_dsn}, store="sqlite:///:memory:")
    assert (execution.error, execution.result) == (None, json.loads(block_of(PAGE, "json")))


def test_a_transfer_in_use_reads_from_it_and_writes_to_it(mysql_dsn: str, tmp_path: Path) -> None:
    (tmp_path / "page.yaml").write_text(HEADER + TRANSFER, "utf-8")
    execution = noetl.run(tmp_path / "page.yaml", {"dsn": mysql_dsn}, store=MEMORY)
    assert execution.error is None
    assert execution.result["rows"] == [{"number": 1, "at": "2026-01-31T10:00:00"}, {"number": 2, "at": None}]
