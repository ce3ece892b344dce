"""The page on the kind `secrets` shows what it does."""

import hashlib
import hmac
import re
from pathlib import Path

import pytest

import noetl
from noetl.credentials.resolver import PROVIDERS
from tests.pages import block_of
from tests.playbooks import document_of

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "secrets.md").read_text("utf-8")


def test_the_example_uses_what_it_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "not used here")
    monkeypatch.setenv("SIGNING_KEY", "the signing key")
    done = noetl.run(document_of(block_of(PAGE, "yaml")), store="sqlite:///:memory:")
    assert done.result == hmac.new(b"the signing key", b"hello", hashlib.sha256).hexdigest()


def test_every_provider_is_there() -> None:
    assert [
        name for name in re.findall(r"^\| `(\w+)` \| [a-z]+ ", PAGE, re.MULTILINE) if name in PROVIDERS
    ] == [*PROVIDERS]
