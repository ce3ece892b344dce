"""Credentials at rest: sealed with a key that is kept elsewhere."""

from noetl.stores.credentials.key import Key, KeyPlace, new_key
from noetl.stores.credentials.store import EncryptedCredentials

__all__ = ["EncryptedCredentials", "Key", "KeyPlace", "new_key"]
