"""From references back to whole values."""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

from noetl.expr.runtime.marker import write_at_path
from noetl.model.errors import NoetlError
from noetl.model.json import Json
from noetl.model.reference import (
    StoredReference,
    chunk_items,
    escape,
    is_manifest,
    is_reference,
    is_table_reference,
    may_hold_marker,
    part_reference,
    references_in,
    stored_keys,
    unescape,
)
from noetl.model.secret import SecretLost, is_secret, restore_secret, secret_keys, secrets_in
from noetl.model.table_reader import decode_value_or_table, row_key

T = TypeVar("T")

Fetched = Mapping[str, Any]
"""Stored values by their keys."""


class Unfetched(NoetlError):
    """Values are needed that were not fetched. `keys` are all that are needed, so far as is known."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(f"stored values are needed: {', '.join(keys)}")
        self.keys = keys


def with_needed_values(work: Callable[[Fetched], T], fetched: Fetched, first: tuple[str, ...] = ()) -> T:
    """What the work gives with those stored values alone that it needs, whatever else was fetched.

    So what is only handed on stays a reference. `first` are those it is known to need. Raises Unfetched.
    """
    # Whoever asks may have more at hand than the next one who asks; what is read must not depend on that,
    # or a worker that remembers values and `verify` would come to different events.
    needed = {key: fetched[key] for key in first if key in fetched}
    while True:
        try:
            return work(needed)
        except Unfetched as error:
            wanted = {key: fetched[key] for key in error.keys if key in fetched}
            if len(wanted) < len(error.keys) or wanted.keys() <= needed.keys():
                raise
            needed = {**needed, **wanted}


def referenced_value(reference: dict[str, Any], fetched: Fetched) -> Any:
    """What this stands for. Raises KeyError where it was not fetched."""
    if is_manifest(reference):
        chunks = reference["chunks"]
        stored = [item for chunk in chunks for item in chunk_items(chunk, fetched[chunk["key"]])]
        return stored + reference.get("tail", [])
    value = fetched[reference["key"]]
    writes = reference.get("set", ())
    for key in reference.get("path", ()):
        if writes and (not isinstance(value, dict) or key not in value):
            value = None
            break
        value = value[key]
    for path, written in writes:
        value = write_at_path(value, tuple(path), written)
    return value


def element_at(items: Any, index: int) -> Any:
    """One element of a list or, for a manifest or a table, what stands for it."""
    if type(items) is list:
        return items[index]
    if not is_manifest(items):
        key, start = row_key(items["key"], index)
        return part_reference(key, (index - start,))
    chunks = items["chunks"]
    if not chunks or index >= chunks[-1]["to"]:
        return items["tail"][index - (chunks[-1]["to"] if chunks else 0)]
    chunk = chunks[bisect_right(chunks, index, key=itemgetter("to"))]
    return part_reference(chunk["key"], (index - chunk["from"] + chunk.get("skip", 0),))


def substitute_fetched(value: Any, fetched: Fetched, used: set[str]) -> Any:
    """The value with everything that was fetched in its place; `used` gets the keys of that."""
    if is_reference(value):
        keys = stored_keys(value)
        if not all(key in fetched for key in keys):
            return value
        used.update(keys)
        return substitute_fetched(referenced_value(value, fetched), fetched, used)
    if isinstance(value, StoredReference) or not may_hold_marker(value):
        return value
    if is_secret(value):
        try:
            return escape(restore_secret(value, fetched))
        except (KeyError, SecretLost):
            return value
    if isinstance(value, dict):
        return {key: substitute_fetched(item, fetched, used) for key, item in value.items()}
    return [substitute_fetched(item, fetched, used) for item in value]


def missing_keys(value: Any, fetched: Fetched) -> set[str]:
    """The keys that are needed to have this value whole, and were not fetched."""
    return {key for reference in references_in(value) for key in stored_keys(reference) if key not in fetched}


def secret_keys_in(value: Any) -> set[str]:
    """The keys of the secrets that are needed to have this value whole. Raises SecretLost."""
    return {key for secret in secrets_in(value) for key in secret_keys(secret)}


async def resolve_references(
    value: Any, get: Callable[[str], Awaitable[bytes]], *, largest_table: int | None = None
) -> Json:
    """A value with everything that is stored elsewhere in its place, as users gave it.

    `get` reads stored bytes. Tables of more than `largest_table` bytes stay references.
    """
    fetched: dict[str, Any] = {}
    value = _without_tables(value, largest_table)
    while missing := missing_keys(value, fetched):
        for key in sorted(missing):
            fetched[key] = decode_value_or_table(await get(key))
        value = _without_tables(substitute_fetched(value, fetched, set()), largest_table)
        fetched = {}  # what is in its place is not needed again, and may be large
    resolved: Json = unescape(value)
    return resolved


def _without_tables(value: Any, largest: int | None) -> Any:
    """The value in which larger tables do not stand for their rows."""
    if largest is None:
        return value
    if is_table_reference(value):
        return StoredReference(value) if value["size"] > largest else value
    if isinstance(value, StoredReference) or not may_hold_marker(value):
        return value
    if isinstance(value, dict):
        return {key: _without_tables(item, largest) for key, item in value.items()}
    return [_without_tables(item, largest) for item in value]
