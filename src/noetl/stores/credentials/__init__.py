"""Credentials at rest: sealed with a key that is kept elsewhere."""

from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import EncryptionKey, KeyLocation, generate_key

__all__ = ["EncryptedCredentials", "EncryptionKey", "KeyLocation", "generate_key"]
