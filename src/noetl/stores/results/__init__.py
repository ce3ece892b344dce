"""The result stores."""

from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.named_results import NamedResults, store_names
from noetl.stores.results.result_reader import StoredReader, read_stored
from noetl.stores.results.result_store_objects import StoredObjects

__all__ = [
    "FileResults",
    "MemoryResults",
    "NamedResults",
    "StoredObjects",
    "StoredReader",
    "read_stored",
    "store_names",
]
