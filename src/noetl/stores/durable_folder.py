"""What makes names in a folder survive the loss of power."""

import os
from pathlib import Path


def flush_folder(folder: Path) -> None:
    """Waits until the disk has the names in this folder. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
