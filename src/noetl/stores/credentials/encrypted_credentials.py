"""Credentials by name, sealed in a store."""

import time
from collections.abc import Sequence

from noetl.ports.credentials import (
    CredentialError,
    CredentialUnknown,
    KeyWrong,
    SealedCredential,
    SealedStore,
    StoredCredential,
)
from noetl.stores.credentials.encryption_key import EncryptionKey, KeyLocation, generate_key, write_key_file
from noetl.stores.credentials.envelope import rewrap_credential, seal_credential, unseal_credential

SEALING_KEY = "$noetl sealing key"
"""The name of what seals values that tasks marked secret. For nobody else it is there."""


class EncryptedCredentials:
    """See `noetl.ports.credentials.Vault`. The key is looked for when something is to be opened."""

    def __init__(self, store: SealedStore, key_location: KeyLocation) -> None:
        self._store = store
        self._key_location = key_location

    async def find(self, name: str) -> StoredCredential | None:
        return await self.reserved(name) if name != SEALING_KEY else None

    async def reserved(self, name: str) -> StoredCredential | None:
        """The same, of those that are not for playbooks and people, too."""
        sealed = await self._store.credential(name)
        return unseal_credential(sealed, self._key_of(sealed)) if sealed is not None else None

    async def show(self, name: str) -> tuple[SealedCredential, StoredCredential]:
        """Raises CredentialUnknown, KeyWrong, CredentialError."""
        sealed = await self._store.credential(name) if name != SEALING_KEY else None
        if sealed is None:
            raise CredentialUnknown(f"there is no credential `{name}`", "`noetl credential list` names all")
        return sealed, unseal_credential(sealed, self._key_of(sealed))

    async def list(self) -> list[SealedCredential]:
        return [row for row in await self._store.credentials() if row.name != SEALING_KEY]

    async def set(self, credential: StoredCredential) -> None:
        """Keeps or replaces one; makes the key if there is none yet. Raises KeyWrong, OSError."""
        rows = await self._store.credentials()
        key = self._current_key(rows)
        now = time.time_ns() // 1_000
        if not await self._store.put_credential(seal_credential(credential, key, now)):
            message = "the key was replaced in this very moment"
            raise CredentialError(message, "try again", retryable=True)

    async def delete(self, name: str) -> None:
        """Raises CredentialUnknown."""
        if name == SEALING_KEY or not await self._store.delete_credential(name):
            raise CredentialUnknown(f"there is no credential `{name}`", "`noetl credential list` names all")

    async def rotate(self, replacement: EncryptionKey | None = None) -> int:
        """Wraps all data keys with another key: `replacement`, else one that is made and replaces the file.

        Whatever fails, the key that opens what is stored is there. Returns how many there are. Raises
        KeyWrong, CredentialError, OSError.
        """
        next_file = self._key_location.next_file
        if replacement is not None:
            rows = await self._store.credentials()
            key = self._current_key(rows)
            if key.id == replacement.id:
                raise KeyWrong(f"the key in {replacement.location} is the one in use", "name another file")
            await self._rewrap(rows, key, replacement)
            return _count_rows(rows)
        if next_file is None:
            raise KeyWrong(
                "the key stands in NOETL_KEY, where nobody can replace it",
                "give the new one with --new-key-file, then set NOETL_KEY to it",
            )
        # In this order a key that opens what is stored is on the disk at every moment: the new one beside
        # the old, then all rows in one transaction, then the new one in its place.
        with self._key_location.lock():
            rows = await self._store.credentials()
            key = self._current_key(rows)
            if key.location == str(next_file):
                # The last time was interrupted after everything was wrapped.
                self._key_location.activate_next_key()
            next_file.unlink(missing_ok=True)
            new_key = generate_key(str(next_file))
            write_key_file(new_key, next_file)
            await self._rewrap(rows, key, new_key)
            self._key_location.activate_next_key()
        return _count_rows(rows)

    async def _rewrap(
        self, rows: Sequence[SealedCredential], key: EncryptionKey, new_key: EncryptionKey
    ) -> None:
        rewrapped = [rewrap_credential(row, key, new_key) for row in rows]
        if not await self._store.rewrap_credentials(rows, rewrapped):
            message = "a credential was changed in this very moment"
            raise CredentialError(message, "try again: nothing was changed", retryable=True)

    def _current_key(self, rows: Sequence[SealedCredential]) -> EncryptionKey:
        """The key in use. Raises KeyWrong."""
        if rows:
            return self._key_of(rows[0])
        keys = self._key_location.read_keys()
        return keys[0] if keys else self._key_location.create_key()

    def _key_of(self, sealed: SealedCredential) -> EncryptionKey:
        keys = self._key_location.read_keys()
        if not keys:
            location = self._key_location.file or "NOETL_KEY_FILE"
            message = f"credentials are stored, but the key that seals them is not there ({location})"
            raise KeyWrong(message, "name it with NOETL_KEY_FILE or NOETL_KEY")
        for key in keys:
            if key.id == sealed.key_id:
                return key
        message = f"`{sealed.name}` was sealed with another key than the one in {keys[0].location}"
        raise KeyWrong(message, "name the right one with NOETL_KEY_FILE or NOETL_KEY")


def _count_rows(rows: Sequence[SealedCredential]) -> int:
    return sum(row.name != SEALING_KEY for row in rows)
