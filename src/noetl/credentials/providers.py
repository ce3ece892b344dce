"""Where the values of keychain entries come from, by kind."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from noetl.credentials import vault
from noetl.credentials.credential import DATABASE_SPELLINGS, Credential
from noetl.model import Json
from noetl.ports.credentials import CredentialError, CredentialStore, CredentialUnknown, StoredCredential
from noetl.ports.store import StoreError

MAX_FILE = 1 << 20
"""Bytes of a file that holds a secret."""


class CredentialRequest(Struct, frozen=True):
    """A credential that is asked for. Without a kind it is one of the credential store.

    `folder` is where relative paths start.
    """

    name: str
    kind: str = ""
    fields: dict[str, Any] = {}
    folder: str = "."


class Providers:
    """Resolves entries anew each time. `stored` is the credential store, if there is one."""

    def __init__(self, stored: CredentialStore | None, environment: Mapping[str, str] | None = None) -> None:
        self._stored = stored
        self._environment = os.environ if environment is None else environment
        self._kinds: dict[str, Callable[[CredentialRequest], Awaitable[Credential]]] = {
            "": self._by_name,
            "env": self._env,
            "file": self._file,
            "static": self._static,
            "bearer": self._bearer,
            "basic": self._basic,
            "api_key": self._api_key,
            "oauth2": self._oauth2,
            "vault": self._vault,
            "secret_manager": self._secret_manager,
        }

    async def resolve(self, entry: CredentialRequest) -> Credential:
        """Raises CredentialError."""
        return await self._kinds.get(entry.kind, self._connection)(entry)

    async def _by_name(self, entry: CredentialRequest) -> Credential:
        """A credential of the store, as its own kind has it."""
        stored = await self._kept(entry.name)
        if stored is None:
            raise self._unknown(entry.name)
        return await self.resolve(msgspec.structs.replace(entry, kind=stored.kind))

    async def _env(self, entry: CredentialRequest) -> Credential:
        return _single(entry, self._variable(entry.fields.get("env") or entry.name))

    async def _file(self, entry: CredentialRequest) -> Credential:
        if (path := entry.fields.get("path")) is None:
            return Credential(entry.name, entry.kind, await self._whole(entry))
        text = _read(Path(entry.folder) / str(path))
        if entry.fields.get("format") != "json":
            return _single(entry, text)
        try:
            found = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise CredentialError(f"{path} is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise CredentialError(f"{path} holds no mapping", "or leave out `format: json`")
        return Credential(entry.name, entry.kind, found)

    async def _static(self, entry: CredentialRequest) -> Credential:
        fields = await self._whole(entry)
        data = fields.pop("data", None)
        return Credential(entry.name, entry.kind, {**data, **fields} if isinstance(data, dict) else fields)

    async def _bearer(self, entry: CredentialRequest) -> Credential:
        fields = await self._with_value(entry, "token", "value")
        return Credential(entry.name, entry.kind, {**fields, "value": fields["token"]})

    async def _basic(self, entry: CredentialRequest) -> Credential:
        fields = await self._with_value(entry, "password")
        if not fields.get("username"):
            raise _lacks(entry, "username")
        return Credential(entry.name, entry.kind, fields)

    async def _api_key(self, entry: CredentialRequest) -> Credential:
        return Credential(entry.name, entry.kind, await self._with_value(entry, "value", "key"))

    async def _oauth2(self, entry: CredentialRequest) -> Credential:
        fields = await self._with_value(entry, "client_secret")
        for needed in ("token_url", "client_id"):
            if not fields.get(needed):
                raise _lacks(entry, needed)
        from noetl.credentials.oauth2 import fetch_access_token  # noqa: PLC0415 -- few playbooks need its HTTP client

        token = await fetch_access_token(fields)
        fields = {**fields, "access_token": token.text, "value": token.text}
        return Credential(entry.name, entry.kind, fields, token.lifetime)

    async def _vault(self, entry: CredentialRequest) -> Credential:
        fields = entry.fields
        path = str(fields.get("path") or entry.name).strip("/")
        data = await vault.read_vault_secret(fields, path, self._environment)
        if (field := fields.get("field")) is None:
            return Credential(entry.name, entry.kind, data)
        if field not in data:
            raise CredentialError(f"`{path}` in Vault has no field `{field}`", f"it has {', '.join(data)}")
        return Credential(entry.name, entry.kind, {"value": data[field]})

    async def _secret_manager(self, entry: CredentialRequest) -> Credential:
        from noetl.credentials.secret_manager import read_managed_secret  # noqa: PLC0415 -- few playbooks need its HTTP client

        text = await read_managed_secret(entry.fields, entry.name, self._environment)
        return Credential(entry.name, entry.kind, {**_fields_in(text), "value": text})

    async def _connection(self, entry: CredentialRequest) -> Credential:
        """What a tool connects with: its own fields, over those of the store."""
        stored = await self._kept(entry.name)
        if stored is None and not entry.fields:
            raise self._unknown(entry.name)
        fields = {**(stored.fields if stored else {}), **entry.fields}
        known = {
            name: fields[spelling] for spelling, name in DATABASE_SPELLINGS.items() if spelling in fields
        }
        return Credential(entry.name, entry.kind, {**known, **fields})

    async def _with_value(self, entry: CredentialRequest, *names: str) -> dict[str, Json]:
        """The fields with the one that matters, from where the entry says, under the first of its names."""
        fields = dict(entry.fields)
        variable, path = fields.pop("env", None), fields.pop("path", None)
        if variable:
            fields[names[0]] = self._variable(str(variable))
        elif path:
            fields[names[0]] = _read(Path(entry.folder) / str(path))
        elif not fields.get(names[0]):
            fields = await self._whole(entry)
        for name in names:
            if fields.get(name):
                return {**fields, names[0]: fields[name]}
        raise _lacks(entry, names[0])

    async def _whole(self, entry: CredentialRequest) -> dict[str, Json]:
        """The fields over those of the store, which must know the entry where there are none."""
        stored = await self._kept(entry.name)
        fields = {**(stored.fields if stored else {}), **entry.fields}
        if not fields:
            raise self._unknown(entry.name)
        return fields

    async def _kept(self, name: str) -> StoredCredential | None:
        try:
            return await self._stored.find(name) if self._stored is not None else None
        except StoreError as error:
            message = f"the credential store cannot be read: {error}"
            raise CredentialError(message, error.hint, retryable=True) from None

    def _unknown(self, name: str) -> CredentialUnknown:
        if self._stored is None:
            return CredentialUnknown("there is no credential store here", "say where the value comes from")
        message = f"the credential store has no `{name}`"
        return CredentialUnknown(message, f"`noetl credential set {name}` puts it there")

    def _variable(self, name: str) -> str:
        if not (value := self._environment.get(name)):
            reason = "is empty" if value == "" else "is not set"
            raise CredentialError(f"the environment variable {name} {reason}", "set it where the worker runs")
        return value


def _fields_in(text: str) -> dict[str, Any]:
    """The fields of a secret that is a JSON mapping, as many are."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _single(entry: CredentialRequest, value: str) -> Credential:
    return Credential(entry.name, entry.kind, {"value": value})


def _lacks(entry: CredentialRequest, field: str) -> CredentialError:
    return CredentialError(
        f"it has no `{field}`", f"give it in the keychain or with `noetl credential set {entry.name}`"
    )


def _read(path: Path) -> str:
    """The text of a file, without the line end that editors leave at its end."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
        text = data.decode()
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CredentialError(f"{path} is no UTF-8 text") from None
    if len(data) > MAX_FILE:
        raise CredentialError(f"{path} is larger than {MAX_FILE:,} bytes")
    if not (text := text.removesuffix("\n").removesuffix("\r")):
        raise CredentialError(f"{path} is empty")
    return text
