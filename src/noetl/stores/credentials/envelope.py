"""The envelope around a credential: AES-256-GCM, one data key for each, wrapped by the key of the store.

The name and the kind are associated data, so that no row can take the place of another.
"""

import os

import msgspec

from noetl.ports.credentials import CredentialError, SealedCredential, StoredCredential
from noetl.stores.credentials.encryption_key import EncryptionKey

_NONCE_BYTES = 12


class _BrokenSeal(Exception):
    """It was not sealed with this key, or was changed since."""


def seal_credential(credential: StoredCredential, key: EncryptionKey, now: int) -> SealedCredential:
    data_key = os.urandom(32)
    associated = _associated_data(credential.name, credential.kind)
    return SealedCredential(
        name=credential.name,
        kind=credential.kind,
        key_id=key.id,
        wrapped_key=_encrypt(key.data, data_key, associated),
        body=_encrypt(data_key, msgspec.json.encode(credential.fields), associated),
        created_at=now,
        updated_at=now,
    )


def unseal_credential(sealed: SealedCredential, key: EncryptionKey) -> StoredCredential:
    """Raises CredentialError if the row is damaged, or sealed with another key."""
    associated = _associated_data(sealed.name, sealed.kind)
    try:
        fields = msgspec.json.decode(_decrypt(_data_key(sealed, key), sealed.body, associated), type=dict)
    except (_BrokenSeal, msgspec.DecodeError):
        raise _damaged_error(sealed) from None
    return StoredCredential(sealed.name, sealed.kind, fields)


def rewrap_credential(
    sealed: SealedCredential, key: EncryptionKey, new_key: EncryptionKey
) -> SealedCredential:
    """The same, opened by another key. Raises as `unseal_credential`."""
    wrapped = _encrypt(new_key.data, _data_key(sealed, key), _associated_data(sealed.name, sealed.kind))
    return sealed._replace(key_id=new_key.id, wrapped_key=wrapped)


def seal_value(data_key: bytes, name: str, value: bytes) -> bytes:
    """Only under the same name it is opened again."""
    return _encrypt(data_key, value, _associated_value(name))


def unseal_value(data_key: bytes, name: str, sealed: bytes) -> bytes:
    """Raises CredentialError if it is damaged, or sealed with another key."""
    try:
        return _decrypt(data_key, sealed, _associated_value(name))
    except _BrokenSeal:
        raise CredentialError("a sealed value is damaged: its task must run again") from None


def _associated_value(name: str) -> bytes:
    return msgspec.json.encode(["noetl sealed value", name])


def _data_key(sealed: SealedCredential, key: EncryptionKey) -> bytes:
    try:
        return _decrypt(key.data, sealed.wrapped_key, _associated_data(sealed.name, sealed.kind))
    except _BrokenSeal:
        raise _damaged_error(sealed) from None


def _encrypt(key: bytes, data: bytes, associated: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - slow to import, and few runs need it

    return nonce + AESGCM(key).encrypt(nonce, data, associated)


def _decrypt(key: bytes, data: bytes, associated: bytes) -> bytes:
    if len(data) <= _NONCE_BYTES:
        raise _BrokenSeal
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see `_encrypt`
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - see `_encrypt`

    try:
        return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], associated)
    except InvalidTag:
        raise _BrokenSeal from None


def _associated_data(name: str, kind: str) -> bytes:
    return msgspec.json.encode(["noetl credential", name, kind])


def _damaged_error(sealed: SealedCredential) -> CredentialError:
    message = f"the stored credential `{sealed.name}` is damaged"
    return CredentialError(message, f"`noetl credential set {sealed.name}` replaces it")
