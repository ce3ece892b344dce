"""What a credential that is kept may be, and how it is shown."""

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.credentials.credential import replace_at_field_path, secrets_of
from noetl.credentials.masker import Masker
from noetl.dsl.document.keychain_kinds import CREDENTIAL_SUFFIX, KEYCHAIN_KINDS
from noetl.dsl.document.shape_check import did_you_mean
from noetl.model.secret import MASK, SecretOrigin
from noetl.ports.credentials import CredentialError

_REFERENCE_KINDS = ("credential", "env", "file", "vault", "secret_manager")
"""Kinds that say where a value is: there is nothing to store."""


class CredentialRefused(CredentialError):
    """It is none of the kind that it says."""


def check_credential_kind(kind: str) -> None:
    """Raises CredentialRefused if nothing of this kind can be stored."""
    if kind in _REFERENCE_KINDS:
        message = f"a credential of kind `{kind}` says where a value is: there is none to store"
        raise CredentialRefused(message, "declare it under `keychain` in the playbook")
    if kind not in KEYCHAIN_KINDS and not kind.endswith(CREDENTIAL_SUFFIX):
        known = [name for name in KEYCHAIN_KINDS if name not in _REFERENCE_KINDS]
        hint = (
            did_you_mean(kind, known) or f"one of {', '.join(known)}, or one that ends in {CREDENTIAL_SUFFIX}"
        )
        raise CredentialRefused(f"there is no kind `{kind}`", hint)


def check_credential_fields(kind: str, values: Mapping[str, Any]) -> None:
    """Raises CredentialRefused if a field is not one of the kind, or of another type."""
    if kind not in KEYCHAIN_KINDS or kind == "static":
        return
    known = [name for name in KEYCHAIN_KINDS[kind].__struct_fields__ if name not in ("env", "path")]
    for field, value in values.items():
        if field not in known:
            hint = did_you_mean(field, known) or f"it has {', '.join(known)}"
            raise CredentialRefused(f"a credential of kind `{kind}` has no field `{field}`", hint)
        try:
            msgspec.convert({field: value}, KEYCHAIN_KINDS[kind])
        except msgspec.ValidationError:
            message = f"the field `{field}` of a credential of kind `{kind}` has a value of another type"
            raise CredentialRefused(message, "most are texts") from None


def mask_credential_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Without secrets, also where a public field holds one, as a URL with a password does."""
    masker = Masker()
    masked: Any = fields
    for path, value in secrets_of(fields):
        masker.add(value, SecretOrigin("", path))
        masked = replace_at_field_path(masked, path, MASK)
    text_masked: dict[str, Any] = masker.mask_for_display(masked)
    return text_masked
