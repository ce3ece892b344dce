"""What expressions and the kernel see of a keychain, and what tasks gave: mappings that look when asked."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import structs

from noetl.credentials.credential import (
    Credential,
    credential_field,
    mark_fields,
    replace_at_field_path,
    value_at_field_path,
)
from noetl.kernel.references.resolve import Unfetched
from noetl.model.reference import encode_value, escape
from noetl.model.secret import SECRET_KEY_PREFIX, SecretOrigin, lost_part, origin_of_key, secret_text_marker

MEMORY_ROOM = 64 << 20
"""Bytes, as JSON, of what is known at a time; the oldest go first."""
MEMORY_OF_FAILURE = 2.0
"""Seconds in which what could not be had is not asked for again: long enough to fail a task for it."""


class SecretMemory(Mapping[str, Any]):
    """Secrets that tasks gave, by key: known in this process, and sealed to who keeps their execution.

    One for all executions: children get what their parents know.
    """

    def __init__(self, room: int = MEMORY_ROOM) -> None:
        self._values: dict[SecretOrigin, tuple[Any, int]] = {}
        self._unsealed: set[SecretOrigin] = set()
        self._left = room

    def keep(self, value: Any, origin: SecretOrigin) -> SecretOrigin:
        """Under a number that no other process will ever use for something else."""
        origin = structs.replace(origin, path=(), number=secrets.randbits(48))
        self.remember(value, origin)
        self._unsealed.add(origin)
        return origin

    def take_unsealed(self, origin: SecretOrigin, largest: int) -> Any:
        """A value that only this process knows, once; None if it is not so, or it has more bytes."""
        if origin not in self._unsealed:
            return None
        self._unsealed.remove(origin)
        value, size = self._values[origin]
        return value if size <= largest else None

    def remember(self, value: Any, origin: SecretOrigin) -> None:
        """What has its number already."""
        size = len(encode_value(value))
        self._values[origin] = value, size
        self._left -= size
        while self._left < 0 and len(self._values) > 1:
            oldest = next(iter(self._values))
            self._unsealed.discard(oldest)
            self._left += self._values.pop(oldest)[1]

    def __getitem__(self, key: str) -> Any:
        origin = origin_of_key(key)
        value, _ = self._values[structs.replace(origin, path=())]
        return (
            credential_field(value, origin.path)
            if isinstance(value, dict)
            else value_at_field_path(value, origin.path)
        )

    def __iter__(self) -> Iterator[str]:
        return (origin.key for origin in self._values)

    def __len__(self) -> int:
        return len(self._values)


class FetchFailures(Mapping[str, str]):
    """Why secrets cannot be had, by key, for a short time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reasons: dict[str, tuple[str, float]] = {}

    def add(self, key: str, reason: str) -> None:
        self._reasons[key] = reason, self._clock() + MEMORY_OF_FAILURE

    def forget(self, key: str) -> None:
        self._reasons.pop(key, None)

    def __getitem__(self, key: str) -> str:
        reason, until = self._reasons[key]
        if self._clock() > until:
            raise KeyError(key)
        return reason

    def __iter__(self) -> Iterator[str]:
        return iter([key for key in self._reasons if key in self])

    def __len__(self) -> int:
        return len(list(iter(self)))


class SecretSource(Protocol):
    """What the views look into: the keychain of an execution."""

    failures: FetchFailures
    requested_keys: set[str]

    @property
    def names(self) -> Mapping[str, Any]: ...

    def key_of(self, name: str) -> str: ...

    def cached(self, origin: SecretOrigin) -> Credential | None: ...

    def marker_origin(self, origin: SecretOrigin) -> SecretOrigin: ...

    def last_known(self, name: str) -> Credential | None: ...

    def decoy_of(self, value: Any) -> str: ...

    def reveal(self, key: str) -> Any: ...


class SecretValues(Mapping[str, Any]):
    """`keychain` for the inputs of tools. Raises Unfetched for an entry that is not at hand."""

    def __init__(self, keychain: SecretSource) -> None:
        self._keychain = keychain

    def __getitem__(self, name: str) -> Any:
        if name not in self._keychain.names:
            raise KeyError(name)
        key = self._keychain.key_of(name)
        credential = self._keychain.cached(origin_of_key(key))
        if credential is None:
            raise Unfetched((key,))
        self._keychain.failures.forget(key)
        return escape({**credential.fields, "kind": credential.kind})

    def __contains__(self, name: object) -> bool:
        return name in self._keychain.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._keychain.names)

    def __len__(self) -> int:
        return len(self._keychain.names)


class MaskedValues(SecretValues):
    """`keychain` for everything else: what stands for the secrets."""

    def __getitem__(self, name: str) -> Any:
        if name not in self._keychain.names:
            raise KeyError(name)
        credential = self._keychain.last_known(name)
        if credential is None:
            return dict(secret_text_marker([lost_part()]))
        origin = self._keychain.marker_origin(origin_of_key(self._keychain.key_of(name)))
        return escape({**mark_fields(credential, origin, public=True), "kind": credential.kind})


class DecoyValues(SecretValues):
    """`keychain` with other texts in place of the secrets: what differs then was made from them."""

    def __getitem__(self, name: str) -> Any:
        if name not in self._keychain.names:
            raise KeyError(name)
        credential = self._keychain.last_known(name)
        fields: Any = dict(credential.fields) if credential is not None else {}
        for path, value in credential.secrets if credential is not None else ():
            fields = replace_at_field_path(fields, path, self._keychain.decoy_of(value))
        return escape({**fields, "kind": credential.kind if credential is not None else ""})


class RevealedValues(Mapping[str, Any]):
    """The values of secrets that stand in the log, by key."""

    def __init__(self, keychain: SecretSource) -> None:
        self._keychain = keychain

    def __getitem__(self, key: str) -> Any:
        if not key.startswith(SECRET_KEY_PREFIX):
            raise KeyError(key)
        return self._keychain.reveal(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keychain.requested_keys)

    def __len__(self) -> int:
        return len(self._keychain.requested_keys)
