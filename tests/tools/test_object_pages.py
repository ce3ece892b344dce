"""The pages on files and on S3 show what the tools do."""

import json
import re
from pathlib import Path

import pytest

import noetl
from bench.s3_server import S3Server
from tests.playbooks import document_of

DOCS = Path(__file__).parents[2] / "docs" / "tools"


def playbook_and_result(page: str, name: str) -> tuple[str, object]:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    match = re.search(r"^```yaml\n(.*?)^```\n\n^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert match
    return document_of(match[1].replace("s3://reports/", f"s3://{name}/")), json.loads(match[2])


def test_the_example_on_files_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    playbook, result = playbook_and_result("file", "")
    assert noetl.run(playbook, store="sqlite:///:memory:").result == result
    assert json.loads((tmp_path / "out" / "report.json").read_bytes()) == result


def test_the_example_on_s3_works(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**s3.environment, "AWS_ENDPOINT": s3.endpoint, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    playbook, result = playbook_and_result("s3", s3.bucket)
    execution = noetl.run(playbook, store="sqlite:///:memory:")
    assert (execution.error, execution.result) == (None, result)
