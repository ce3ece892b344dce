"""The mark of a store into which another one is copied: what lives there lacks some of what happened."""

from noetl.ports.store import Store, StoreUnusable

UNFINISHED_COPY = "copy/unfinished"
"""The name of the mark; its bytes say what it is a copy of."""


async def refuse_unfinished_copy(store: Store, label: str) -> None:
    """Raises StoreUnusable if nobody may go on with what lives there yet."""
    source = await store.blob(UNFINISHED_COPY)
    if source is not None:
        raise StoreUnusable(
            f"{label} is an unfinished copy of {source.decode()}: it lacks some of what happened",
            "`noetl store copy FROM TO` goes on with it; or use another store",
        )
