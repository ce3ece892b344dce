"""The kinds of keychain entries and their fields.

Every field is optional: what is not written here is looked up by the entry's name in the credential
store. Fields may hold expressions over the workload and the entries before theirs.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct


class KeychainFields(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of one kind, beside `name`, `kind` and `desc`."""


class ValueFields(KeychainFields):
    """A single value that may come from a variable or a file."""

    env: Annotated[str | None, Meta(description="Environment variable that holds it.")] = None
    path: Annotated[str | None, Meta(description="File that holds it.")] = None


class EnvironmentFields(KeychainFields):
    """A value from the worker's environment."""

    env: Annotated[str | None, Meta(description="Name of the variable. Default: the entry's name.")] = None


class StoredCredentialFields(KeychainFields):
    """A credential of the store that has another name there."""

    credential: Annotated[str | None, Meta(description="Its name there. Default: the entry's name.")] = None


class FileFields(KeychainFields):
    """A value from a file on the worker."""

    path: Annotated[str | None, Meta(description="The file.")] = None
    format: Annotated[
        Literal["text", "json"] | None, Meta(description="Text (default) or a JSON mapping.")
    ] = None


class StaticFields(KeychainFields):
    """A value that stands in the playbook: for tests and for what is no secret."""

    value: Annotated[Any, Meta(description="The value.")] = None
    data: Annotated[dict[str, Any] | None, Meta(description="Several values by name.")] = None


class BearerFields(ValueFields):
    """A token sent as `Authorization: Bearer`."""

    token: Annotated[str | None, Meta(description="The token itself.")] = None


class BasicFields(KeychainFields):
    """A user and a password."""

    username: Annotated[str | None, Meta(description="The user.")] = None
    password: Annotated[str | None, Meta(description="The password itself.")] = None
    env: Annotated[str | None, Meta(description="Environment variable that holds the password.")] = None
    path: Annotated[str | None, Meta(description="File that holds the password.")] = None


class ApiKeyFields(ValueFields):
    """A key sent in a header or in the query."""

    value: Annotated[str | None, Meta(description="The key itself.")] = None
    header: Annotated[str | None, Meta(description="Header that carries it. Default `X-API-Key`.")] = None
    query: Annotated[str | None, Meta(description="Query parameter that carries it instead.")] = None


class OAuth2Fields(KeychainFields):
    """Client credentials that are exchanged for a token."""

    token_url: Annotated[str | None, Meta(description="Where tokens are asked for.")] = None
    client_id: Annotated[str | None, Meta(description="The client.")] = None
    client_secret: Annotated[str | None, Meta(description="Its secret itself.")] = None
    env: Annotated[str | None, Meta(description="Environment variable that holds the secret.")] = None
    path: Annotated[str | None, Meta(description="File that holds the secret.")] = None
    scope: Annotated[str | list[str] | None, Meta(description="Scopes to ask for.")] = None
    audience: Annotated[str | None, Meta(description="Audience to ask for.")] = None
    client_auth: Annotated[
        Literal["basic", "body"] | None,
        Meta(description="How the client tells who it is: in a header (`basic`, default) or in the body."),
    ] = None


class GoogleIdTokenFields(KeychainFields):
    """An identity token of Google for one audience, such as a service of Cloud Run."""

    audience: Annotated[str | None, Meta(description="Whom the token is for: mostly a URL.")] = None
    key: Annotated[
        str | dict[str, Any] | None, Meta(description="The key of the service account: its JSON file.")
    ] = None
    env: Annotated[str | None, Meta(description="Environment variable that holds the key.")] = None
    path: Annotated[str | None, Meta(description="File that holds the key.")] = None


class VaultFields(KeychainFields):
    """A secret of HashiCorp Vault."""

    url: Annotated[str | None, Meta(description="The server. Default: `VAULT_ADDR`.")] = None
    mount: Annotated[str | None, Meta(description="The secrets engine. Default `secret`.")] = None
    path: Annotated[str | None, Meta(description="Path of the secret.")] = None
    field: Annotated[str | None, Meta(description="One field of it. Default: all of them.")] = None
    version: Annotated[int | None, Meta(description="Its version. Default: the newest.")] = None


class SecretManagerFields(KeychainFields):
    """A secret of a cloud's secret manager."""

    provider: Annotated[str | None, Meta(description="The cloud, for example `gcp` or `aws`.")] = None
    project: Annotated[str | None, Meta(description="Project or account.")] = None
    secret: Annotated[str | None, Meta(description="Its name there. Default: the entry's name.")] = None
    version: Annotated[str | int | None, Meta(description="Its version. Default: the newest.")] = None


KEYCHAIN_KINDS: dict[str, type[KeychainFields]] = {
    "credential": StoredCredentialFields,
    "env": EnvironmentFields,
    "file": FileFields,
    "static": StaticFields,
    "bearer": BearerFields,
    "basic": BasicFields,
    "api_key": ApiKeyFields,
    "oauth2": OAuth2Fields,
    "google_id_token": GoogleIdTokenFields,
    "vault": VaultFields,
    "secret_manager": SecretManagerFields,
}
"""By kind. A kind that ends in `_credential` has the fields of its tool and is not checked here."""

EXCLUSIVE_FIELDS = {
    "bearer": ("env", "path", "token"),
    "basic": ("env", "path", "password"),
    "api_key": ("env", "path", "value"),
    "oauth2": ("env", "path", "client_secret"),
    "google_id_token": ("env", "path", "key"),
}
"""The fields of which one at most says what the value is, by kind."""

CREDENTIAL_SUFFIX = "_credential"
