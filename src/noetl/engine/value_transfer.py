"""Values that one execution hands to another: what is stored belongs to one of them."""

from collections.abc import Awaitable, Callable
from typing import Any

from noetl.kernel.references.resolve import resolve_references
from noetl.model.reference import SecretMarker, StoredReference, may_hold_marker
from noetl.ports.results import ResultStore


async def transfer_value(
    value: Any, read_blob: Callable[[str], Awaitable[bytes]], results: ResultStore, execution_id: str
) -> Any:
    """A value as another execution may have it: resolved, with copies of its own of tables and objects.

    What is stored belongs to one execution and goes with it. The value is as users gave it: `escape` makes
    what may stand in the log. `read_blob` reads what the first one stored. Raises ResultError.
    """
    return await _with_own_copies(
        await resolve_references(value, read_blob, largest_table=0), results, execution_id
    )


async def _with_own_copies(value: Any, results: ResultStore, execution_id: str) -> Any:
    if isinstance(value, StoredReference):
        owner, _, name = value["key"].rpartition("/")
        store, colon, _ = owner.rpartition(":")
        key = f"{store}{colon}{execution_id}/{name}"
        if key != value["key"]:
            await results.copy(value["key"], key)
        return StoredReference({**value, "key": key})
    if isinstance(value, SecretMarker) or not may_hold_marker(value):
        return value
    if isinstance(value, dict):
        return {name: await _with_own_copies(item, results, execution_id) for name, item in value.items()}
    return [await _with_own_copies(item, results, execution_id) for item in value]
