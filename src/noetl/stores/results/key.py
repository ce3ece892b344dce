"""The keys of results: an execution, and the hash of what is stored."""

import re
from typing import NamedTuple

_EXECUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_HASH = re.compile(r"[0-9a-f]{64}")


class Key(NamedTuple):
    execution_id: str
    hash: str


def checked(key: str) -> Key:
    """The parts of a key. Raises ValueError if it is none."""
    execution_id, _, name = key.partition("/")
    if not _EXECUTION.fullmatch(execution_id) or not _HASH.fullmatch(name):
        raise ValueError(f"`{key}` is not the key of a result")
    return Key(execution_id, name)


def checked_id(execution_id: str) -> str:
    """The same id. Raises ValueError if it is none."""
    if not _EXECUTION.fullmatch(execution_id):
        raise ValueError(f"`{execution_id}` is not the id of an execution")
    return execution_id
