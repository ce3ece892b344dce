"""The result stores."""

from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.named_results import NamedResults, store_names
from noetl.stores.results.result_reader import ResultReader, read_result
from noetl.stores.results.result_store_objects import ResultStoreObjects

__all__ = [
    "FileResults",
    "MemoryResults",
    "NamedResults",
    "ResultReader",
    "ResultStoreObjects",
    "read_result",
    "store_names",
]
