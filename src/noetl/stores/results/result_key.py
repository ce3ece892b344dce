"""The keys of results: `EXECUTION_ID/HASH`, in a named store `STORE:EXECUTION_ID/HASH`."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

_EXECUTION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LOG = ".log"
_SEGMENT = re.compile(r"[A-Za-z0-9-]{1,64}")
_MAX_NAME_BYTES = 240
"""Bytes that a file's name can have everywhere, with room for more."""


class ResultKey(NamedTuple):
    execution_id: str
    hash: str


def parse_result_key(key: str) -> ResultKey:
    """The parts of a key. Raises ValueError if it is none."""
    if not is_result_key(key):
        raise ValueError(f"`{key}` is not the key of a result")
    execution_id, _, digest = key.partition("/")
    return ResultKey(execution_id, digest)


def check_execution_id(execution_id: str) -> str:
    """The same id. Raises ValueError if it is none."""
    if not is_execution_id(execution_id):
        raise ValueError(f"`{execution_id}` is not the id of an execution")
    return execution_id


def is_execution_id(name: str) -> bool:
    return _EXECUTION_ID.fullmatch(name) is not None


def is_result_key(name: str) -> bool:
    """Whether this is a key, and not something else that lies in the folder of an execution."""
    execution_id, _, digest = name.partition("/")
    return bool(is_execution_id(execution_id) and _HASH.fullmatch(digest))


def log_folder(execution_id: str) -> str:
    """Where the log of an execution is kept. Raises ValueError.

    Not among its results: who lists those has no use for it. With the dot it is taken for no id.
    """
    return f"{check_execution_id(execution_id)}{_LOG}"


def folder_owner(folder: str) -> str:
    """Whose folder this is: it has the results of an execution, or its log."""
    return folder.removesuffix(_LOG)


def is_log_segment(name: str) -> bool:
    folder, _, segment = name.partition("/")
    owner = folder_owner(folder)
    return owner != folder and is_execution_id(owner) and _SEGMENT.fullmatch(segment) is not None


def log_segment_name(execution_id: str, segment: str) -> str:
    """Raises ValueError."""
    if not _SEGMENT.fullmatch(segment):
        raise ValueError(f"`{segment}` is not the name of a segment of a log")
    return f"{log_folder(execution_id)}/{segment}"


def key_in_store(store: str, key: str) -> str:
    """The key of something that a store by this name has; the engine's own has none."""
    return f"{store}:{key}" if store else key


def split_store_key(key: str) -> tuple[str, str]:
    """The name of the store in a key, and the key without it."""
    store, colon, bare_key = key.partition(":")
    return (store, bare_key) if colon else ("", key)


def artifact_file_name(name: str) -> str:
    """The name of an artifact as that of a file. Raises ValueError."""
    # The dot, too: a name that begins with one would be hidden, and swept away as half-written.
    file_name = quote(name, safe="").replace(".", "%2E")
    if not name or len(file_name) > _MAX_NAME_BYTES:
        raise ValueError(f"the name of an artifact has 1 to {_MAX_NAME_BYTES} characters, not `{name:.100}`")
    return file_name


def artifact_name(file: str) -> str:
    return unquote(file)
