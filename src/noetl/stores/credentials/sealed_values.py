"""Values that tasks marked secret, sealed: no event, result or log shows them, and others can go on."""

import asyncio
import base64
import os

import msgspec

from noetl.model.json import Json
from noetl.ports.credentials import CredentialError, StoredCredential
from noetl.ports.store import Store
from noetl.stores.credentials.encrypted_credentials import SEALING_KEY, EncryptedCredentials
from noetl.stores.credentials.envelope import seal_value, unseal_value

_FOLDER = "sealed/"


class SealedValues:
    """By execution and number, in the event store.

    One data key seals all of them. It is kept as a credential that nobody is shown, so that whoever replaces
    the store's key wraps it anew with all others.
    """

    def __init__(self, store: Store, credentials: EncryptedCredentials) -> None:
        self._store = store
        self._credentials = credentials
        self._key_lock = asyncio.Lock()
        self.kept_some = False
        """Whether anything was kept here, or found by `executions`: if not, there is nothing to forget."""

    async def keep(self, execution_id: str, number: int, value: Json) -> None:
        """Durable on return. Raises CredentialError, StoreError."""
        name = _name(execution_id, number)
        sealed = seal_value(await self._data_key(), name, msgspec.json.encode(value))
        self.kept_some = True
        await self._store.put_blob(name, sealed)

    async def find(self, execution_id: str, number: int) -> Json:
        """Raises CredentialError if it is not there, or cannot be opened; StoreError."""
        name = _name(execution_id, number)
        sealed = await self._store.blob(name)
        if sealed is None:
            raise CredentialError("a value that was masked is kept no longer: its task must run again")
        value: Json = msgspec.json.decode(unseal_value(await self._data_key(), name, sealed))
        return value

    async def executions(self) -> list[str]:
        """Those of which something is kept."""
        names = await self._store.blobs(_FOLDER)
        self.kept_some = self.kept_some or bool(names)
        return list(dict.fromkeys(name.split("/")[1] for name in names))

    async def _data_key(self) -> bytes:
        # One at a time: two who find none would make two, and what the first has sealed nobody could open.
        async with self._key_lock:
            stored = await self._credentials.reserved(SEALING_KEY)
            if stored is None:
                value = base64.b64encode(os.urandom(32)).decode()
                stored = StoredCredential(SEALING_KEY, "static", {"value": value})
                await self._credentials.set(stored)
        return base64.b64decode(str(stored.fields["value"]))


async def forget_sealed_values(store: Store, execution_id: str) -> None:
    """Nothing that this execution marked secret can be had again. Raises StoreError."""
    if names := await store.blobs(f"{_FOLDER}{execution_id}/"):
        await store.delete_blobs(names)


def _name(execution_id: str, number: int) -> str:
    return f"{_FOLDER}{execution_id}/{number:012x}"
