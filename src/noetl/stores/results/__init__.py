"""The result stores."""

from noetl.stores.results.file import FileResults

__all__ = ["FileResults"]
