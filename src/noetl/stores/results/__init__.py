"""The result stores."""

from noetl.stores.results.file import FileResults
from noetl.stores.results.memory import MemoryResults

__all__ = ["FileResults", "MemoryResults"]
