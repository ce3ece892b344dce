"""Large values leave the events: what is kept of them, and how they come back."""

from noetl.kernel.references.resolve import resolve
from noetl.kernel.state.blobs import Blob, Ledger

__all__ = ["Blob", "Ledger", "resolve"]
