"""The page on the snowflake tool shows what the tool does, and other documents find it."""

import json
from pathlib import Path
from typing import Any

import noetl
from tests.dialects.dialect_execution import MEMORY
from tests.dsl.in_use.spelling_rows import HEADER
from tests.pages import block_of
from tests.playbooks import document_of
from tests.snowflake.fakesnow_environment import Fakesnow

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "snowflake.md").read_text("utf-8")
TRANSFER = """\
workload: { snow: {} }
workflow:
- step: start
  tool:
  - {name: make, kind: snowflake, auth: "{{ snow }}", input: {}, command: "CREATE TABLE a (id int, label varchar)"}
  - {name: into, kind: transfer, source: {kind: sqlite, query: "SELECT 1 AS n, 'x' AS t"}, target: {kind: snowflake, auth: "{{ snow }}", table: a}, mapping: {id: n, label: t}, mode: replace}
  - {name: keep, kind: sqlite, database: copy.db, command: "CREATE TABLE c (ID int, LABEL text)"}
  - {name: out, kind: transfer, source: {kind: snowflake, auth: "{{ snow }}", query: "SELECT * FROM a"}, target: {kind: sqlite, database: copy.db, table: c}}
  - {name: look, kind: sqlite, database: copy.db, query: "SELECT * FROM c"}
"""


def test_the_example_gives_the_result_that_is_shown(snow: Fakesnow) -> None:
    entry = "{ name: snow, kind: snowflake_credential, account: org-shop, user: etl, database: shop, schema: public, warehouse: small }"
    text = block_of(PAGE, "yaml")
    assert entry in text
    fields: dict[str, Any] = {"name": "snow", "kind": "snowflake_credential", **snow.auth()}
    execution = noetl.run(document_of(text.replace(entry, json.dumps(fields))), store="sqlite:///:memory:")
    assert (execution.error, execution.result) == (None, json.loads(block_of(PAGE, "json")))


def test_a_transfer_in_use_reads_from_it_and_writes_to_it(snow: Fakesnow, tmp_path: Path) -> None:
    (tmp_path / "page.yaml").write_text(HEADER + TRANSFER, "utf-8")
    execution = noetl.run(tmp_path / "page.yaml", {"snow": snow.auth()}, store=MEMORY)
    assert execution.error is None
    assert execution.result["rows"] == [{"ID": 1, "LABEL": "x"}]
