"""Files on their way to or from a store that keeps none here."""

import tempfile
from pathlib import Path

from noetl.stores.results.file import sweep, told


class Scratch:
    """A folder of folders, made when needed. Without a place of its own it lies among temporary files."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / "noetl-scratch"

    def of(self, name: str) -> Path:
        folder = self._folder / name
        with told(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def sweep(self, before: float) -> int:
        return sweep(self._folder, before)
