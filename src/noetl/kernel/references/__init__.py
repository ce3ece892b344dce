"""Large values leave the events: what is kept of them, and how they come back."""

from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.state.blobs import Blob, PendingBlobs

__all__ = ["Blob", "PendingBlobs", "resolve_references"]
