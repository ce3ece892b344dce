"""The result stores."""

from noetl.stores.results.file import FileResults
from noetl.stores.results.memory import MemoryResults
from noetl.stores.results.named import NamedResults, store_names
from noetl.stores.results.objects import StoredObjects
from noetl.stores.results.rows import StoredReader, read_stored

__all__ = [
    "FileResults",
    "MemoryResults",
    "NamedResults",
    "StoredObjects",
    "StoredReader",
    "read_stored",
    "store_names",
]
