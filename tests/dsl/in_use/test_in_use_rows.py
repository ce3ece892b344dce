"""Every row of the tables of docs/dialects.md: what a spelling becomes, and that it runs."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noetl.loader import examine, upgrade
from tests.dsl.in_use.spelling_rows import (
    CANONICAL,
    HEADER,
    SpellingRow,
    lower_text,
    rows_of,
    run_text,
    tables,
    values_of,
)
from tests.web_server import WebAnswer, WebRequest, WebServer, web_server

ROWS = [row for table in tables() for row in rows_of(table)]
TOKEN = "let-me-in-now"
NUMBER = {"id": 1, "n": 2, "items": [1, 2]}


def answer(request: WebRequest) -> WebAnswer:
    if request.path.startswith("/status/"):
        return WebAnswer({"id": 9}, int(request.path.removeprefix("/status/")))
    if request.path == "/moved":
        return WebAnswer(None, 302, {"Location": "/n"})
    if request.path == "/secret":
        known = request.headers.get("authorization") == f"Bearer {TOKEN}"
        return WebAnswer({"said": "welcome"}) if known else WebAnswer(None, 401)
    if request.path == "/token":
        return WebAnswer({"access_token": TOKEN, "token_type": "bearer", "expires_in": 60})
    if request.path == "/v1/projects/p/secrets/tok/versions/3:access":
        return WebAnswer({"payload": {"data": b64encode(TOKEN.encode()).decode()}})
    if request.path == "/echo":
        return WebAnswer({"query": request.query, "token": request.headers.get("x-token")})
    return WebAnswer(NUMBER)


@pytest.fixture(scope="module")
def api() -> Iterator[WebServer]:
    with web_server(answer) as server:
        yield server


@pytest.fixture
def workload(request: pytest.FixtureRequest, row: SpellingRow, tmp_path: Path) -> dict[str, Any]:
    """Addresses of what a row asks for in its workload."""
    names = set(values_of(row.source).get("workload", {}))
    values: dict[str, Any] = {"folder": str(tmp_path)}
    if "api" in names:
        values["api"] = request.getfixturevalue("api").url
    if "dsn" in names:
        values["dsn"] = request.getfixturevalue("dsn")
    return {name: value for name, value in values.items() if name in names}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_spelling_becomes(row: SpellingRow) -> None:
    lowered = lower_text(HEADER + row.source)
    assert lowered.document == values_of(CANONICAL + row.becomes)
    assert set(lowered.codes) == set(row.warns)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_upgrade_prints_is_canonical_and_the_document_that_runs(row: SpellingRow) -> None:
    text, allowed = HEADER + row.source, row.allows
    loaded = examine(text, "page.yaml", dialect="in_use", allow_kinds=allowed)
    assert [problem for problem in loaded.problems if problem.severity == "error"] == []
    upgraded = upgrade(text, "page.yaml", dialect="in_use", allow_kinds=allowed)
    again = examine(upgraded, "upgraded.yaml", allow_kinds=allowed)
    assert (again.dialect, again.document) == ("canonical", loaded.document)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.elsewhere], ids=str)
def test_a_spelling_runs_as_what_it_becomes(
    row: SpellingRow, workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = workload.get("api", "")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", f"{url}/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "of-the-machine")
    row.check(run_text(HEADER + row.source.replace("$api", url), workload, "in_use"))
    row.check(run_text(CANONICAL + row.becomes.replace("$api", url), workload, "canonical"))


def test_the_documentation_has_the_same_rows() -> None:
    text = (Path(__file__).parents[3] / "docs" / "dialects.md").read_text("utf-8")
    part = text.partition("### Data flow")[2].partition("## Draft")[0]
    cells = [line.split(" | ")[0].removeprefix("| ") for line in part.splitlines() if line.startswith("| ")]
    listed = {cell.removesuffix(" **H**") for cell in cells} - {"in use", "---"}
    assert listed == {row.spelling for row in ROWS}
