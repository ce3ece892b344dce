"""Where the values of keychain entries come from, by kind."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from noetl.credentials.credential import DATABASE_SPELLINGS, Credential
from noetl.model.json import Json
from noetl.ports.credentials import CredentialError, CredentialStore, CredentialUnknown, StoredCredential
from noetl.ports.store import StoreError

MAX_FILE = 1 << 20
"""Bytes of a file that holds a secret."""


class CredentialRequest(Struct, frozen=True):
    """A credential that is asked for. Without a kind it is one of the credential store.

    `folder` is where relative paths start, `derived` what in its fields was made of other secrets.
    """

    name: str
    kind: str = ""
    fields: dict[str, Any] = {}
    folder: str = "."
    derived: tuple[Json, ...] = ()


class Providers:
    """Resolves requests anew each time. `stored` is the credential store, if there is one."""

    def __init__(self, stored: CredentialStore | None, environment: Mapping[str, str] | None = None) -> None:
        self._credential_store = stored
        self._environment = os.environ if environment is None else environment
        self._resolve_by_kind: dict[str, Callable[[CredentialRequest], Awaitable[Credential]]] = {
            "": self._by_name,
            "credential": self._stored_elsewhere,
            "env": self._env,
            "file": self._file,
            "static": self._static,
            "bearer": self._bearer,
            "basic": self._basic,
            "api_key": self._api_key,
            "oauth2": self._oauth2,
            "google_id_token": self._google_id_token,
            "vault": self._vault,
            "secret_manager": self._secret_manager,
        }

    async def resolve(self, request: CredentialRequest) -> Credential:
        """Raises CredentialError."""
        credential = await self._resolve_by_kind.get(request.kind, self._connection)(request)
        return msgspec.structs.replace(credential, derived=request.derived) if request.derived else credential

    async def _by_name(self, request: CredentialRequest) -> Credential:
        """A credential of the store, as its own kind has it."""
        stored = await self._stored_credential(request.name)
        if stored is None:
            raise self._unknown_error(request.name)
        return await self.resolve(msgspec.structs.replace(request, kind=stored.kind))

    async def _stored_elsewhere(self, request: CredentialRequest) -> Credential:
        """A credential of the store under another name."""
        name = str(request.fields.get("credential") or request.name)
        credential = await self._by_name(msgspec.structs.replace(request, name=name, fields={}))
        return msgspec.structs.replace(credential, name=request.name)

    async def _env(self, request: CredentialRequest) -> Credential:
        return _single_value(request, self._environment_variable(request.fields.get("env") or request.name))

    async def _file(self, request: CredentialRequest) -> Credential:
        if (path := request.fields.get("path")) is None:
            return Credential(request.name, request.kind, await self._merged_fields(request))
        text = _read_secret_file(Path(request.folder) / str(path))
        if request.fields.get("format") != "json":
            return _single_value(request, text)
        try:
            decoded = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise CredentialError(f"{path} is no JSON: {error}") from None
        if not isinstance(decoded, dict):
            raise CredentialError(f"{path} holds no mapping", "or leave out `format: json`")
        return Credential(request.name, request.kind, decoded)

    async def _static(self, request: CredentialRequest) -> Credential:
        fields = await self._merged_fields(request)
        data = fields.pop("data", None)
        return Credential(
            request.name, request.kind, {**data, **fields} if isinstance(data, dict) else fields
        )

    async def _bearer(self, request: CredentialRequest) -> Credential:
        fields = await self._with_value(request, "token", "value")
        return Credential(request.name, request.kind, {**fields, "value": fields["token"]})

    async def _basic(self, request: CredentialRequest) -> Credential:
        fields = await self._with_value(request, "password")
        if not fields.get("username"):
            raise _missing_field(request, "username")
        return Credential(request.name, request.kind, fields)

    async def _api_key(self, request: CredentialRequest) -> Credential:
        return Credential(request.name, request.kind, await self._with_value(request, "value", "key"))

    async def _oauth2(self, request: CredentialRequest) -> Credential:
        fields = await self._with_value(request, "client_secret")
        for field in ("token_url", "client_id"):
            if not fields.get(field):
                raise _missing_field(request, field)
        from noetl.credentials.oauth2 import fetch_access_token  # noqa: PLC0415 - few playbooks need its HTTP client

        token = await fetch_access_token(fields)
        fields = {**fields, "access_token": token.text, "value": token.text}
        return Credential(request.name, request.kind, fields, token.lifetime)

    async def _google_id_token(self, request: CredentialRequest) -> Credential:
        from noetl.credentials import google_id_token as google  # noqa: PLC0415 - few playbooks need its HTTP client

        stored = await self._stored_credential(request.name)
        fields = {**(stored.fields if stored else {}), **request.fields}
        if not (audience := fields.get("audience")):
            raise _missing_field(request, "audience")
        key = self._service_account_text(request, fields)
        if key is not None:
            token = await google.fetch_account_token(google.service_account_key(key), str(audience))
        else:
            token = await google.fetch_machine_token(str(audience), self._environment)
        token_fields = {"audience": audience, "token": token.text, "value": token.text}
        return Credential(request.name, request.kind, token_fields, token.lifetime)

    def _service_account_text(self, request: CredentialRequest, fields: Mapping[str, Any]) -> Any:
        """The key of a service account, from where the entry says; None if the machine has an account."""
        folder = Path(request.folder)
        if variable := fields.get("env"):
            return self._environment_variable(str(variable))
        if path := fields.get("path"):
            return _read_secret_file(folder / str(path))
        if key := fields.get("key"):
            return key
        if path := self._environment.get("GOOGLE_APPLICATION_CREDENTIALS"):
            return _read_secret_file(folder / path)
        return None

    async def _vault(self, request: CredentialRequest) -> Credential:
        fields = request.fields
        path = str(fields.get("path") or request.name).strip("/")
        from noetl.credentials.secret_manager import read_vault_secret  # noqa: PLC0415 - few playbooks need its HTTP client

        data = await read_vault_secret(fields, path, self._environment)
        if (field := fields.get("field")) is None:
            return Credential(request.name, request.kind, data)
        if field not in data:
            raise CredentialError(f"`{path}` in Vault has no field `{field}`", f"it has {', '.join(data)}")
        return Credential(request.name, request.kind, {"value": data[field]})

    async def _secret_manager(self, request: CredentialRequest) -> Credential:
        from noetl.credentials.secret_manager import read_managed_secret  # noqa: PLC0415 - few playbooks need its HTTP client

        text = await read_managed_secret(request.fields, request.name, self._environment)
        return Credential(request.name, request.kind, {**_fields_in(text), "value": text})

    async def _connection(self, request: CredentialRequest) -> Credential:
        """What a tool connects with: its own fields, over those of the store."""
        stored = await self._stored_credential(request.name)
        if stored is None and not request.fields:
            raise self._unknown_error(request.name)
        fields = {**(stored.fields if stored else {}), **request.fields}
        known = {
            name: fields[spelling] for spelling, name in DATABASE_SPELLINGS.items() if spelling in fields
        }
        return Credential(request.name, request.kind, {**known, **fields})

    async def _with_value(self, request: CredentialRequest, *names: str) -> dict[str, Json]:
        """The fields with the one that matters, from where the entry says, under the first of its names."""
        fields = dict(request.fields)
        variable, path = fields.pop("env", None), fields.pop("path", None)
        if variable:
            fields[names[0]] = self._environment_variable(str(variable))
        elif path:
            fields[names[0]] = _read_secret_file(Path(request.folder) / str(path))
        elif not fields.get(names[0]):
            fields = await self._merged_fields(request)
        for name in names:
            if fields.get(name):
                return {**fields, names[0]: fields[name]}
        raise _missing_field(request, names[0])

    async def _merged_fields(self, request: CredentialRequest) -> dict[str, Json]:
        """The fields over those of the store, which must know the entry where there are none."""
        stored = await self._stored_credential(request.name)
        fields = {**(stored.fields if stored else {}), **request.fields}
        if not fields:
            raise self._unknown_error(request.name)
        return fields

    async def _stored_credential(self, name: str) -> StoredCredential | None:
        try:
            return await self._credential_store.find(name) if self._credential_store is not None else None
        except StoreError as error:
            message = f"the credential store cannot be read: {error}"
            raise CredentialError(message, error.hint, retryable=True) from None

    def _unknown_error(self, name: str) -> CredentialUnknown:
        if self._credential_store is None:
            return CredentialUnknown("there is no credential store here", "say where the value comes from")
        message = f"the credential store has no `{name}`"
        return CredentialUnknown(message, f"`noetl credential set {name}` puts it there")

    def _environment_variable(self, name: str) -> str:
        if not (value := self._environment.get(name)):
            reason = "is empty" if value == "" else "is not set"
            raise CredentialError(f"the environment variable {name} {reason}", "set it where the worker runs")
        return value


def _fields_in(text: str) -> dict[str, Any]:
    """The fields of a secret that is a JSON mapping, as many are."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _single_value(request: CredentialRequest, value: str) -> Credential:
    return Credential(request.name, request.kind, {"value": value})


def _missing_field(request: CredentialRequest, field: str) -> CredentialError:
    return CredentialError(
        f"it has no `{field}`", f"give it in the keychain or with `noetl credential set {request.name}`"
    )


def _read_secret_file(path: Path) -> str:
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
