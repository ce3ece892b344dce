"""Values that are kept outside of the log: references and manifests, as plain values.

A mapping with the key `$noetl` is a marker: it stands for something else. User data that has such a key is
escaped when it comes in and unescaped when it goes out, so it can never be mistaken for one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

from noetl.model.json import Json

MARKER = "$noetl"
"""The key of a marker. It is spelled here and nowhere else: what is looked for in bytes is made from it."""
MARKER_BYTES = f'"{MARKER}"'.encode()
"""In the bytes of a value that holds a reference, a manifest or a secret."""
MARKER_END_BYTES = MARKER_BYTES[1:]
"""In the bytes of a value that holds any of them, or an escaped key, which has more `$` before it."""
SECRET_MARKER_BYTES = MARKER_BYTES + b':"secret"'
"""In the bytes of a value that holds what stands for a secret."""
HOLDS_SECRETS = "secrets"
"""A key of references: what is stored holds what stands for secrets, and only the engine can fill it in."""
OWN_STORE = "auto"
"""The engine's own result store, as playbooks name it."""
JSON_MEDIA_TYPE = "application/json"
ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.stream"
"""A table in Arrow's IPC stream format: it stands for the list of its rows."""
_VALUE_MEDIA_TYPES = (JSON_MEDIA_TYPE, ARROW_MEDIA_TYPE)
_REFERENCE_KINDS = ("ref", "manifest")

encode_value = msgspec.json.Encoder().encode
"""The bytes of a value, as they are stored."""

decode_value = msgspec.json.Decoder().decode


def value_reference(
    key: str,
    value: Json,
    *,
    size: int,
    preview: str = "",
    extracted: dict[str, Json] | None = None,
    absent: Iterable[str] = (),
    holds_secrets: bool = False,
) -> dict[str, Any]:
    """What stands for `value`, whose bytes are stored under `key`.

    `extracted` are parts that can be read without it; `absent` are keys that it is known not to have.
    `holds_secrets`: it holds what stands for secrets.
    """
    return {
        MARKER: "ref",
        "key": key,
        "size": size,
        "media_type": JSON_MEDIA_TYPE,
        "hash": hash_of_key(key),
        **_stored_fields(key),
        **_shape(value),
        "preview": preview,
        "extracted": extracted or {},
        **({"absent": sorted(absent)} if absent else {}),
        **({HOLDS_SECRETS: True} if holds_secrets else {}),
    }


def part_reference(
    key: str,
    path: tuple[str | int, ...],
    value: Json = None,
    *,
    extracted: dict[str, Json] | None = None,
    absent: Iterable[str] = (),
) -> dict[str, Any]:
    """What stands for the part at `path` of the value stored under `key`."""
    marker: dict[str, Any] = {MARKER: "ref", "key": key, "path": list(path), **_shape(value)}
    if extracted:
        marker["extracted"] = extracted
    if absent:
        marker["absent"] = sorted(absent)
    return marker


class StoredReference(dict[str, Any]):
    """A reference, as tools give and get it: no user data can pretend to be one.

    In the log and in expressions it is a plain mapping. One to a table stands for its rows; one to other
    bytes can be read and handed on, and is never fetched.
    """


class SecretMarker(dict[str, Any]):
    """What stands for a secret, as tools give and get it: no user data can pretend to be one."""


def object_reference(
    key: str, *, size: int, media_type: str, preview: str = "", **details: Json
) -> StoredReference:
    """What stands for bytes. `about` is what else is worth knowing; of a table, `type` and `length`."""
    return StoredReference(
        {
            MARKER: "ref",
            "key": key,
            "size": size,
            "media_type": media_type,
            "hash": hash_of_key(key),
            **_stored_fields(key),
            "preview": preview,
            "extracted": {},
            **details,
        }
    )


def list_chunk(key: str, start: int, end: int, size: int) -> dict[str, Json]:
    """The elements from `start` up to but not including `end`, stored as one list."""
    return {"key": key, "from": start, "to": end, "size": size}


def split_chunk(chunk: dict[str, Any], positions: Iterable[int]) -> Iterator[dict[str, Any]]:
    """What is left of a chunk without some of its elements; `skip` are those before it in what is stored."""
    start = chunk["from"]
    for position in (*sorted(positions), chunk["to"]):
        if start < position:
            skip = chunk.get("skip", 0) + start - chunk["from"]
            yield {**chunk, "from": start, "to": position, **({"skip": skip} if skip else {})}
        start = position + 1


def chunk_items(chunk: dict[str, Any], stored: list[Any]) -> list[Any]:
    """The elements of a chunk, of what is stored under its key."""
    skip = chunk.get("skip", 0)
    return stored[skip : skip + chunk["to"] - chunk["from"]]


def manifest(
    chunks: Iterable[dict[str, Any]], preview: str = "", tail: Sequence[Json] = ()
) -> dict[str, Any]:
    """A list that is stored in chunks, in order and without gaps; `tail` are its last elements."""
    parts = list(chunks)
    total = (parts[-1]["to"] if parts else 0) + len(tail)
    return {
        MARKER: "manifest",
        "total": total,
        "size": sum(part["size"] for part in parts),
        "chunks": parts,
        **({"store": store_of_key(parts[0]["key"])} if parts else {}),
        **({"tail": list(tail)} if tail else {}),
        "type": "list",
        "length": total,
        "preview": preview,
        "extracted": {},
    }


def append_to_list(base: dict[str, Any], items: Sequence[Json]) -> dict[str, Any] | None:
    """A stored list with more elements; None if it is no list, or only a part of what is stored."""
    if base.get("type") != "list" or "path" in base or "set" in base:
        return None
    preview = base.get("preview", "")
    if base[MARKER] == "manifest":
        return manifest(base["chunks"], preview, [*base.get("tail", ()), *items])
    return manifest([list_chunk(base["key"], 0, base["length"], base["size"])], preview, items)


def _shape(value: Json) -> dict[str, Any]:
    match value:
        case str():
            return {"type": "text", "length": len(value)}
        case list():
            return {"type": "list", "length": len(value)}
        case dict():
            return {"type": "mapping", "length": len(value)}
        case _:
            return {}


def is_reference(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this stands for a value, a list in chunks included; a stored object stands for itself."""
    return (
        type(value) is dict
        and MARKER in value
        and value[MARKER] in _REFERENCE_KINDS
        and value.get("media_type", JSON_MEDIA_TYPE) in _VALUE_MEDIA_TYPES
    )


def is_table_reference(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this stands for the rows of an Arrow table, all of them."""
    return is_reference(value) and value.get("media_type") == ARROW_MEDIA_TYPE and "path" not in value


def is_object_reference(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is the reference to stored bytes that stand for no value."""
    return (
        isinstance(value, dict)
        and value.get(MARKER) == "ref"
        and value.get("media_type", JSON_MEDIA_TYPE) not in _VALUE_MEDIA_TYPES
    )


def is_manifest(value: object) -> TypeGuard[dict[str, Any]]:
    return type(value) is dict and MARKER in value and value[MARKER] == "manifest"


def stored_keys(value: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys under which what a reference or manifest stands for is stored."""
    if value[MARKER] == "manifest":
        return tuple(part["key"] for part in value["chunks"])
    return (value["key"],)


def hash_of_key(key: str) -> str:
    """The SHA-256 of the bytes that are stored under a key: its last part."""
    return key.rpartition("/")[2]


def store_of_key(key: str) -> str:
    """The name of the result store that a key is in; `auto` is the engine's own."""
    store, colon, _ = key.partition(":")
    return store if colon else OWN_STORE


STORED_FIELDS = ("store", "checksum")
"""What 000 §9.1 names beside `key` and `size`. References in older events may be without them."""


def _stored_fields(key: str) -> dict[str, Json]:
    return {"store": store_of_key(key), "checksum": f"sha256:{hash_of_key(key)}"}


def may_hold_marker(value: object) -> bool:
    """Whether a reference, a manifest, a secret or an escaped key may be in there."""
    if not isinstance(value, dict | list):
        return False
    # A walk would be exact, but in Python it takes ten times as long as writing and searching the bytes.
    # Text that ends so is a false alarm, which costs its caller the walk; a marker is never missed.
    try:
        return MARKER_END_BYTES in encode_value(value)
    except (TypeError, ValueError, RecursionError):
        return True  # what has no bytes is walked through


def escape(value: Any) -> Any:
    """User data as it may stand in the log; the same object where nothing is to be done."""
    return _escape(value) if may_hold_marker(value) else value


def unescape(value: Any) -> Any:
    """The user's own data again."""
    return _unescape(value) if may_hold_marker(value) else value


def wrap_references(value: Any) -> Any:
    """The value as a tool that takes references gets it: what is stored by itself stays a reference."""
    if is_reference(value):
        apart = is_manifest(value) or "path" in value or "set" in value or HOLDS_SECRETS in value
        return value if apart else StoredReference(value)
    if not may_hold_marker(value) or isinstance(value, StoredReference):
        return value
    if isinstance(value, dict):
        return {key: wrap_references(item) for key, item in value.items()}
    return [wrap_references(item) for item in value]


def references_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every reference and manifest in a value, itself included; not what they stand for."""
    if is_reference(value):
        yield value
    elif not isinstance(value, StoredReference) and may_hold_marker(value):
        for item in value.values() if isinstance(value, dict) else value:
            yield from references_in(item)


def _escape(value: Any) -> Any:
    if isinstance(value, StoredReference | SecretMarker):
        return dict(value)
    if isinstance(value, dict):
        return {escape_key(key): _escape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escape(item) for item in value]
    return value


def _unescape(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value, StoredReference) or is_object_reference(value):
            return StoredReference(value)
        if value.get(MARKER) == "secret":
            return SecretMarker(value)
        return {_unescape_key(key): _unescape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unescape(item) for item in value]
    return value


def escape_key(key: str) -> str:
    """A key as it may stand in the log: `$noetl` and what escaping made of it get one more `$`."""
    return f"${key}" if key.endswith(MARKER) and not key.removesuffix(MARKER).strip("$") else key


def _unescape_key(key: str) -> str:
    return key[1:] if key.startswith("$$") and escape_key(key) != key else key
