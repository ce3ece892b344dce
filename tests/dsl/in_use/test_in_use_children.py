"""Spellings in use that need a file beside the playbook: agents, scripts, stored credentials."""

from pathlib import Path

import pytest

import noetl
from tests.dialects.dialect_execution import MEMORY
from tests.dsl.in_use.spelling_rows import HEADER, lower_text, values_of

CHILD = HEADER.replace("docs/page", "docs/child")
AGENT = """\
workflow:
- step: s
  tool: {kind: agent, framework: noetl, entrypoint: docs/child, payload: {n: 2}}
  next: {arcs: [{step: t, when: "{{ event.name == 'call.done' }}"}]}
- {step: t, tool: {kind: noop, input: {s: "{{ s }}"}}}
"""


def run_beside(folder: Path, text: str, **files: str) -> noetl.Execution:
    """Runs a document of a folder that has these files, too."""
    for stem, content in files.items():
        (folder / f"{stem}.yaml").write_text(content, "utf-8")
    page = folder / "page.yaml"
    page.write_text(HEADER + text, "utf-8")
    return noetl.run(page, store=MEMORY)


def test_an_agent_is_a_child_with_its_payload(tmp_path: Path) -> None:
    child = CHILD + 'workflow: [{step: c, tool: {kind: noop, args: {m: "{{ workload.n * 2 }}"}}}]\n'
    execution = run_beside(tmp_path, AGENT, child=child)
    assert (execution.status, execution.result) == ("completed", {"s": {"m": 4}})


def test_the_failure_of_an_agent_is_data(tmp_path: Path) -> None:
    child = CHILD + 'workflow: [{step: c, tool: {kind: python, code: "1/0"}}]\n'
    execution = run_beside(tmp_path, AGENT, child=child)
    assert (execution.status, execution.result) == ("completed", {"s": None})


def test_sql_of_a_relative_script_lies_beside_the_playbook(tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT 5 AS n", "utf-8")
    execution = run_beside(
        tmp_path, "workflow:\n- {step: s, tool: {kind: duckdb, input: {}, script: query.sql}}\n"
    )
    assert execution.result["rows"] == [{"n": 5}]


def test_sql_of_a_script_may_come_from_an_address() -> None:
    script = "{uri: 'https://host/q.sql', source: {type: http, method: GET, headers: {X-Token: abc}}}"
    source = f"workflow:\n- {{step: s, tool: {{name: q, kind: duckdb, script: {script}}}}}\n"
    assert lower_text(HEADER + source).document["workflow"][0]["tool"] == [
        {
            "name": "q__script",
            "kind": "http",
            "url": "https://host/q.sql",
            "method": "GET",
            "headers": {"X-Token": "abc"},
        },
        {"name": "q", "kind": "duckdb", "command": "{{ q__script.data }}"},
    ]


@pytest.mark.parametrize(
    ("entry", "becomes"),
    [
        ("{name: k, kind: credential, credential: shop}", "{name: k, kind: credential, credential: shop}"),
        ("{name: k, type: google_oauth, ref: shop}", "{name: k, kind: credential, credential: shop}"),
        ("{name: k, kind: google_oauth}", "{name: k, kind: credential}"),
    ],
)
def test_a_stored_credential_may_have_another_name_there(entry: str, becomes: str) -> None:
    document = lower_text(f"{HEADER}keychain: [{entry}]\nworkflow: []\n").document
    assert document["keychain"] == [values_of(becomes)]
