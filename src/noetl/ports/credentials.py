"""Where credentials are kept, and how they are asked for.

A store of sealed credentials knows names and kinds; what is sealed it cannot read. Who has the key opens
them. All rows of a store are sealed with the same key, which `key_id` names without telling it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from noetl.model.errors import NoetlError
from noetl.model.json import Json


class SealedCredential(NamedTuple):
    """A credential as it is stored. `wrapped_key` opens `body`, and the key named `key_id` opens that."""

    name: str
    kind: str
    key_id: str
    wrapped_key: bytes
    body: bytes
    created_at: int
    updated_at: int


class CredentialError(NoetlError):
    """A credential cannot be had. `hint` says what to do; `noetl.model.errors` has the tree."""

    def __init__(self, message: str, hint: str = "", *, retryable: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.retryable = retryable


class CredentialUnknown(CredentialError): ...


class KeyWrong(CredentialError): ...


class SealedStore(Protocol):
    """What a store keeps of credentials. Writes are durable on return."""

    async def credentials(self) -> list[SealedCredential]:
        """All of them, by name."""
        ...

    async def credential(self, name: str) -> SealedCredential | None: ...

    async def put_credential(self, row: SealedCredential) -> bool:
        """Keeps or replaces one. False, and nothing is written, if others are sealed with another key.

        `created_at` of one that is replaced stays.
        """
        ...

    async def delete_credential(self, name: str) -> bool:
        """False if there is none."""
        ...

    async def rewrap_credentials(
        self, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
    ) -> bool:
        """Replaces all by the same with their keys wrapped anew, in one transaction.

        False, and nothing is written, if what is stored is not `before` any more.
        """
        ...


class StoredCredential(Struct, frozen=True):
    """A credential that was kept: its kind and the fields of that."""

    name: str
    kind: str
    fields: dict[str, Json]


class CredentialStore(Protocol):
    """Credentials by name."""

    async def find(self, name: str) -> StoredCredential | None:
        """None if there is none of this name. Raises CredentialError."""
        ...


class FoundCredential(NamedTuple):
    """A credential for a tool: its `fields`, and the same with what stands for secrets in the log."""

    fields: Mapping[str, Json]
    markers: Mapping[str, Json]
    kind: str = ""


class CredentialLookup(Protocol):
    """Credentials for a tool that asks for them by name. What it got is masked in all that it says."""

    async def find(self, name: str, provider: str = "") -> FoundCredential:
        """From this provider, such as `env`; else from the keychain, else from the credential store.

        Raises ToolError of kind `credential`.
        """
        ...
