"""The envelope around a credential: AES-256-GCM, one data key for each, wrapped by the key of the store.

The name and the kind are associated data, so that no row can take the place of another.
"""

import os

import msgspec

from noetl.ports.credentials import CredentialError, SealedCredential, StoredCredential
from noetl.stores.credentials.encryption_key import EncryptionKey

_NONCE = 12


class _Broken(Exception):
    """It was not sealed with this key, or was changed since."""


def seal_credential(credential: StoredCredential, key: EncryptionKey, now: int) -> SealedCredential:
    data_key = os.urandom(32)
    about = _about(credential.name, credential.kind)
    return SealedCredential(
        name=credential.name,
        kind=credential.kind,
        key_id=key.id,
        wrapped_key=_encrypt(key.data, data_key, about),
        body=_encrypt(data_key, msgspec.json.encode(credential.fields), about),
        created_at=now,
        updated_at=now,
    )


def unseal_credential(sealed: SealedCredential, key: EncryptionKey) -> StoredCredential:
    """Raises CredentialError if the row is damaged, or sealed with another key."""
    about = _about(sealed.name, sealed.kind)
    try:
        fields = msgspec.json.decode(_decrypt(_data_key(sealed, key), sealed.body, about), type=dict)
    except (_Broken, msgspec.DecodeError):
        raise _damaged(sealed) from None
    return StoredCredential(sealed.name, sealed.kind, fields)


def rewrap_credential(sealed: SealedCredential, key: EncryptionKey, new: EncryptionKey) -> SealedCredential:
    """The same, opened by another key. Raises as `unseal`."""
    wrapped = _encrypt(new.data, _data_key(sealed, key), _about(sealed.name, sealed.kind))
    return sealed._replace(key_id=new.id, wrapped_key=wrapped)


def _data_key(sealed: SealedCredential, key: EncryptionKey) -> bytes:
    try:
        return _decrypt(key.data, sealed.wrapped_key, _about(sealed.name, sealed.kind))
    except _Broken:
        raise _damaged(sealed) from None


def _encrypt(key: bytes, data: bytes, about: bytes) -> bytes:
    nonce = os.urandom(_NONCE)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 -- few runs need it

    return nonce + AESGCM(key).encrypt(nonce, data, about)


def _decrypt(key: bytes, data: bytes, about: bytes) -> bytes:
    if len(data) <= _NONCE:
        raise _Broken
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 -- as above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    try:
        return AESGCM(key).decrypt(data[:_NONCE], data[_NONCE:], about)
    except InvalidTag:
        raise _Broken from None


def _about(name: str, kind: str) -> bytes:
    return msgspec.json.encode(["noetl credential", name, kind])


def _damaged(sealed: SealedCredential) -> CredentialError:
    message = f"the stored credential `{sealed.name}` is damaged"
    return CredentialError(message, f"`noetl credential set {sealed.name}` replaces it")
