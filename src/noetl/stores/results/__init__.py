"""The result stores."""

from noetl.stores.results.file import FileResults
from noetl.stores.results.memory import MemoryResults
from noetl.stores.results.objects import StoredObjects

__all__ = ["FileResults", "MemoryResults", "StoredObjects"]
