"""Credentials at rest: sealed with a key that is kept elsewhere."""

from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import Key, KeyPlace, new_key

__all__ = ["EncryptedCredentials", "Key", "KeyPlace", "new_key"]
