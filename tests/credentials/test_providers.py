"""Where the values of keychain entries come from, and what is said when they do not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from noetl.credentials.credential import Credential
from noetl.credentials.providers import CredentialRequest, Providers
from noetl.ports.credentials import CredentialError, StoredCredential

ENVIRONMENT = {"TOKEN": "from the environment", "EMPTY": ""}
STORED = {
    "kept": StoredCredential("kept", "bearer", {"token": "kept token"}),
    "pg": StoredCredential(
        "pg", "postgres_credential", {"db_host": "h", "db_password": "p", "db_port": 5432}
    ),
    "free": StoredCredential("free", "static", {"one": 1, "two": "2"}),
    "odd": StoredCredential("odd", "bearer", {"scope": "x"}),
}


class Kept:
    """Credentials in memory."""

    async def find(self, name: str) -> StoredCredential | None:
        return STORED.get(name)


def resolve(name: str, kind: str, folder: Path | str = ".", **fields: Any) -> Credential:
    providers = Providers(Kept(), ENVIRONMENT)
    return asyncio.run(providers.resolve(CredentialRequest(name, kind, fields, str(folder))))


@pytest.mark.parametrize(
    ("name", "kind", "fields", "expected"),
    [
        ("e", "env", {"env": "TOKEN"}, {"value": "from the environment"}),
        ("TOKEN", "env", {}, {"value": "from the environment"}),
        ("f", "file", {"path": "text"}, {"value": "in a file"}),
        ("f", "file", {"path": "json", "format": "json"}, {"user": "u", "key": "k"}),
        ("s", "static", {"value": 7}, {"value": 7}),
        ("s", "static", {"data": {"a": "b"}}, {"a": "b"}),
        ("free", "static", {}, {"one": 1, "two": "2"}),
        ("b", "bearer", {"token": "t"}, {"token": "t", "value": "t"}),
        ("b", "bearer", {"env": "TOKEN"}, {"token": "from the environment", "value": "from the environment"}),
        ("b", "bearer", {"path": "text"}, {"token": "in a file", "value": "in a file"}),
        ("kept", "bearer", {}, {"token": "kept token", "value": "kept token"}),
        ("kept", "", {}, {"token": "kept token", "value": "kept token"}),
        ("b", "basic", {"username": "u", "password": "p"}, {"username": "u", "password": "p"}),
        ("b", "basic", {"username": "u", "path": "text"}, {"username": "u", "password": "in a file"}),
        ("k", "api_key", {"value": "k", "query": "q"}, {"value": "k", "query": "q"}),
        ("k", "api_key", {"env": "TOKEN", "header": "H"}, {"value": "from the environment", "header": "H"}),
        ("own", "mysql_credential", {"host": "h"}, {"host": "h"}),
        ("pg", "postgres_credential", {"user": "u"}, {
            "db_host": "h", "db_password": "p", "db_port": 5432, "user": "u", "host": "h", "password": "p", "port": 5432,
        }),
    ],
)  # fmt: skip
def test_entries_have_the_fields_of_their_kind(
    name: str, kind: str, fields: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("in a file\n")
    (tmp_path / "json").write_text(json.dumps({"user": "u", "key": "k"}))
    assert resolve(name, kind, tmp_path, **fields).fields == expected


def test_tools_get_each_field_under_one_name() -> None:
    assert resolve("pg", "postgres_credential").auth_fields == {
        "kind": "postgres_credential",
        "host": "h",
        "password": "p",
        "port": 5432,
    }


@pytest.mark.parametrize(
    ("name", "kind", "fields", "message"),
    [
        ("e", "env", {"env": "ABSENT"}, "the environment variable ABSENT is not set"),
        ("e", "env", {"env": "EMPTY"}, "the environment variable EMPTY is empty"),
        ("f", "file", {"path": "absent"}, "absent cannot be read: No such file"),
        ("f", "file", {"path": "binary"}, "binary is no UTF-8 text"),
        ("f", "file", {"path": "empty"}, "empty is empty"),
        ("f", "file", {"path": "text", "format": "json"}, "text is no JSON"),
        ("f", "file", {"path": "list", "format": "json"}, "list holds no mapping"),
        ("f", "file", {}, "the credential store has no `f`"),
        ("s", "static", {}, "the credential store has no `s`"),
        ("b", "bearer", {}, "the credential store has no `b`"),
        ("odd", "bearer", {}, "it has no `token`"),
        ("b", "basic", {"password": "p"}, "it has no `username`"),
        ("o", "oauth2", {"client_secret": "s", "client_id": "c"}, "it has no `token_url`"),
        ("v", "vault", {}, "there is no address of Vault"),
        ("v", "vault", {"url": "http://127.0.0.1:9"}, "there is no token for Vault"),
        ("m", "secret_manager", {}, "it has no `provider`"),
        ("m", "secret_manager", {"provider": "moon"}, "no client for the secret manager of `moon`"),
        ("pg2", "postgres_credential", {}, "the credential store has no `pg2`"),
        ("none", "", {}, "the credential store has no `none`"),
    ],
)
def test_what_cannot_be_had_is_told(
    name: str, kind: str, fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("in a file\n")
    (tmp_path / "list").write_text("[]")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CredentialError, match=message) as caught:
        resolve(name, kind, tmp_path, **fields)
    assert caught.value.hint or kind == "file"


def test_without_a_credential_store_that_is_said() -> None:
    with pytest.raises(CredentialError, match="there is no credential store here"):
        asyncio.run(Providers(None, {}).resolve(CredentialRequest("x")))
