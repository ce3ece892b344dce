"""What `noetl upgrade` prints runs as the old document does, and the command takes both."""

import json
from pathlib import Path
from typing import Any

import pytest

from noetl.loader import upgrade
from tests.cli.command_line import run
from tests.dialects.dialect_execution import V1, run_document
from tests.dialects.test_draft_execution import FAILING, PIPELINE
from tests.dialects.test_draft_loop_execution import LOOP as DRAFT_LOOP
from tests.dialects.test_v1_execution import HANDLED, ROUTES
from tests.dialects.test_v1_nested_execution import DIVIDE, LOOP
from tests.playbooks import HEADER

HANDLER = "- {step: error_handler, run: [{task: note}]}"
NESTED = LOOP.format(run=DIVIDE, tasks="[{task: first}, {task: each}]")


@pytest.mark.spec("003 §4.1")
@pytest.mark.spec("004 §1")
@pytest.mark.spec("004 §3")
@pytest.mark.spec("004 §4")
@pytest.mark.spec("004 §4.1")
@pytest.mark.parametrize(
    ("text", "dialect", "workload"),
    [
        (V1 + ROUTES, None, {"n": 20}),
        (V1 + ROUTES, None, {"n": 0}),
        (V1 + HANDLED % ("", HANDLER), None, {"n": 0}),
        (V1 + HANDLED % ("", ""), None, {"n": 0}),
        (V1 + NESTED, None, {}),
        (V1 + NESTED, None, {"items": [0]}),
        (HEADER + PIPELINE % "{else: {do: jump, to: three}}", "draft", {}),
        (
            HEADER
            + FAILING % ("1 / 0", ", eval: [{expr: \"{{ outcome.status == 'success' }}\", do: break}]"),
            "draft",
            {},
        ),
        (HEADER + DRAFT_LOOP % ("parallel", '{t: {sum: "{{ iter.item }}"}}'), "draft", {}),
        (HEADER + DRAFT_LOOP % ("sequential", '{t: "{{ iter.item }}"}'), "draft", {}),
    ],
)
def test_the_upgraded_document_does_the_same(
    text: str, dialect: str | None, workload: dict[str, Any]
) -> None:
    new = upgrade(text, "old.yaml", dialect=dialect)
    assert new != text
    assert run_document(new, workload) == run_document(text, workload, dialect)


@pytest.mark.spec("003 §1.1")
@pytest.mark.spec("004 §6")
def test_the_command_runs_all_three(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "v1.yaml").write_text(V1 + HANDLED % ("", HANDLER))
    (here / "draft.yaml").write_text(HEADER + PIPELINE % "{else: {do: continue}}")
    upgraded = run("upgrade", "draft.yaml", "--dialect", "draft", cwd=here)
    (here / "canonical.yaml").write_text(upgraded.out)
    results = [
        json.loads(run("run", *arguments, "-q", "-o", "json", cwd=here).out)["result"]
        for arguments in (["v1.yaml"], ["draft.yaml", "--dialect", "draft"], ["canonical.yaml"])
    ]
    assert results == ["handled", {"n": 3, "prev": 2}, {"n": 3, "prev": 2}]
