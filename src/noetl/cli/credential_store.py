"""Stored credentials, for the command line: what goes in, what is shown, what is said when it fails."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from noetl.cli.command_failure import CommandFailure
from noetl.cli.store_access import has_store
from noetl.credentials.credential import secrets_of
from noetl.credentials.credential_rules import (
    CredentialRefused,
    check_credential_fields,
    check_credential_kind,
    mask_credential_fields,
)
from noetl.credentials.masker import MIN_TEXT_LENGTH
from noetl.home import home_of, key_location, store_url
from noetl.model.normalisation import NotJson, normalise
from noetl.model.timestamp import iso_time
from noetl.ports.credentials import CredentialError, CredentialUnknown, KeyWrong, StoredCredential
from noetl.settings import Configuration
from noetl.stores import is_memory_url, open_store
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import generate_key, read_key_file, write_key_file

T = TypeVar("T")

_PORT_FIELDS = ("port", "db_port")


def credential_fields(
    name: str, kind: str, fields: tuple[str, ...], variables: tuple[str, ...], *, stdin: bool
) -> dict[str, Any]:
    """The fields of a credential to store. Raises CommandFailure."""
    if not name.strip() or not name.isprintable():
        raise CommandFailure("usage", "the name of a credential is text of one line, and not empty")
    with _as_usage():
        check_credential_kind(kind)
    written: dict[str, Any] = {}
    for assignment in fields:
        field, value = _parse_assignment(assignment, "--field", written)
        written[field] = int(value) if field in _PORT_FIELDS and value.isdecimal() else value
    for assignment in variables:
        field, variable = _parse_assignment(assignment, "--field-from-env", written)
        if variable not in os.environ:
            raise CommandFailure("usage", f"--field-from-env: the variable {variable} is not set")
        written[field] = os.environ[variable]
    for field, value in written.items():
        if value == "":
            raise CommandFailure("usage", f"the field `{field}` would be empty", hint="leave it out")
    values = {**(_read_stdin() if stdin else {}), **written}
    if not values:
        hint = "--field FIELD=VALUE, --field-from-env FIELD=VARIABLE or --stdin"
        raise CommandFailure("usage", f"`{name}` would have no fields", hint=hint)
    with _as_usage():
        check_credential_fields(kind, values)
    return values


@contextmanager
def _as_usage() -> Iterator[None]:
    try:
        yield
    except CredentialRefused as error:
        raise CommandFailure("usage", str(error), hint=error.hint) from None


def short_secrets(fields: Mapping[str, Any]) -> list[str]:
    """The fields that hold secrets too short to be masked inside of texts."""
    return [
        ".".join(map(str, path))
        for path, value in secrets_of(fields)
        if isinstance(value, str) and len(value) < MIN_TEXT_LENGTH
    ]


def store_credential(configuration: Configuration, name: str, kind: str, fields: dict[str, Any]) -> str:
    """Keeps it; the file of the key, if that had to be made. Raises CommandFailure, StoreError, OSError."""
    location = key_location(configuration)

    async def work(credentials: EncryptedCredentials) -> str:
        existed = location.file is None or location.file.exists()
        await credentials.set(StoredCredential(name, kind, fields))
        return "" if existed else str(location.file)

    home_of(configuration).make()
    return _with_credentials(configuration, work)


def list_credentials(configuration: Configuration) -> list[dict[str, Any]]:
    """All credentials without their fields."""

    async def work(credentials: EncryptedCredentials) -> list[dict[str, Any]]:
        return [
            {
                "name": credential.name,
                "kind": credential.kind,
                "created_at": iso_time(credential.created_at),
                "updated_at": iso_time(credential.updated_at),
            }
            for credential in await credentials.list()
        ]

    return _with_credentials(configuration, work) if has_store(configuration) else []


def show_credential(configuration: Configuration, name: str, *, reveal: bool) -> dict[str, Any]:
    """One credential. Raises CommandFailure."""
    _check_store_exists(configuration, name)

    async def work(credentials: EncryptedCredentials) -> dict[str, Any]:
        sealed, opened = await credentials.show(name)
        fields = opened.fields if reveal else mask_credential_fields(opened.fields)
        return {
            "name": name,
            "kind": sealed.kind,
            "fields": fields,
            "created_at": iso_time(sealed.created_at),
            "updated_at": iso_time(sealed.updated_at),
        }

    return _with_credentials(configuration, work)


def delete_credential(configuration: Configuration, name: str) -> None:
    """Raises CommandFailure."""
    _check_store_exists(configuration, name)
    _with_credentials(configuration, lambda credentials: credentials.delete(name))


def rotate_credential_key(configuration: Configuration, new_key_file: str | None) -> tuple[int, str]:
    """Replaces the key; how many credentials there are, and the file of the new key.

    Raises CommandFailure, StoreError, OSError.
    """
    if not has_store(configuration):
        raise CommandFailure("no-credentials", "there are no credentials here yet")
    location = key_location(configuration)
    path = configuration.directory / Path(new_key_file).expanduser() if new_key_file else None

    async def work(credentials: EncryptedCredentials) -> tuple[int, str]:
        if path is None:
            return await credentials.rotate(), str(location.file)
        key = read_key_file(path)
        if key is None:
            key = generate_key(str(path))
            write_key_file(key, path)
        return await credentials.rotate(key), str(path)

    return _with_credentials(configuration, work)


def _with_credentials(
    configuration: Configuration, work: Callable[[EncryptedCredentials], Awaitable[T]]
) -> T:
    url = store_url(configuration)
    if is_memory_url(url):
        raise CommandFailure(
            "store-url", "a store in memory keeps no credentials", hint="name a file with --store"
        )

    async def play() -> T:
        store = open_store(url)
        try:
            return await work(EncryptedCredentials(store, key_location(configuration)))
        finally:
            await store.close()

    try:
        return asyncio.run(play())
    except CredentialUnknown as error:
        raise CommandFailure("unknown-credential", str(error), hint=error.hint) from None
    except KeyWrong as error:
        raise CommandFailure("key", str(error), hint=error.hint, exit_code=3) from None
    except CredentialError as error:
        raise CommandFailure("credential", str(error), hint=error.hint, exit_code=3) from None


def _check_store_exists(configuration: Configuration, name: str) -> None:
    if not has_store(configuration):
        hint = "`noetl credential list` names all"
        raise CommandFailure("unknown-credential", f"there is no credential `{name}`", hint=hint)


def _read_stdin() -> dict[str, Any]:
    # Nothing of what was read is said: it may be the secret itself.
    try:
        values = normalise(msgspec.json.decode(sys.stdin.buffer.read()))
    except (ValueError, RecursionError, NotJson):
        values = None
    if not isinstance(values, dict):
        raise CommandFailure("usage", "--stdin takes a JSON mapping", hint='for example {"token": "…"}')
    return values


def _parse_assignment(text: str, option: str, before: Mapping[str, Any]) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        # What was written may be the secret itself.
        raise CommandFailure("usage", f"{option} takes FIELD=VALUE")
    if name in before:
        raise CommandFailure("usage", f"the field `{name}` is given twice")
    return name, value
