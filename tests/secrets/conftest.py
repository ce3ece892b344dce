"""What the tests of the keychain share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.local_engine import Bench
from tests.secrets.keychain_runs import TOKEN
from tests.web_server import WebAnswer, WebRequest, WebServer, web_server


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("TOKEN", TOKEN)
    return Bench(tmp_path)


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    def answer(request: WebRequest) -> WebAnswer:
        return WebAnswer({"path": request.path}, 401 if request.path == "/closed" else 200)

    with web_server(answer) as web:
        yield web
