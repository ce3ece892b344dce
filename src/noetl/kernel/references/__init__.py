"""Large values leave the events: what is kept of them, and how they come back."""

from noetl.kernel.references.blob import Blob, Ledger
from noetl.kernel.references.whole import resolve

__all__ = ["Blob", "Ledger", "resolve"]
