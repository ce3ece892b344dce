"""Sets of dotted paths, where a value stands for what is inside it and for what it is inside of."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]


class PathSet:
    """Paths that something sets.

    `a.b` is in the set if `a`, `a.b` or `a.b.c` was added: a whole value brings its keys, and a key
    its owner.
    """

    __slots__ = ("_prefixes", "_set")

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._set: set[Path] = set()
        self._prefixes: set[Path] = set()
        self.update(paths)

    def update(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        if path not in self._set:
            self._set.add(path)
            self._prefixes.update(path[:length] for length in range(1, len(path) + 1))

    def __contains__(self, path: Path) -> bool:
        return path in self._prefixes or any(path[:length] in self._set for length in range(1, len(path)))

    def __iter__(self) -> Iterator[Path]:
        return iter(self._set)


class PathBits:
    """Bits of paths that are read, found by the paths that set them.

    Every start of a path is a key, so that `set_by` costs the length of the path, not the number of paths.
    """

    __slots__ = ("_exact", "_under")

    def __init__(self) -> None:
        self._exact: dict[Path, int] = {}
        self._under: dict[Path, int] = {}

    def add(self, path: Path, bit: int) -> None:
        self._exact[path] = self._exact.get(path, 0) | bit
        for length in range(1, len(path) + 1):
            start = path[:length]
            self._under[start] = self._under.get(start, 0) | bit

    def get(self, path: Path) -> int | None:
        return self._exact.get(path)

    def set_by(self, path: Path) -> int:
        """The bits of all paths that a value at this one sets."""
        bits = self._under.get(path, 0)
        for length in range(1, len(path) if self._exact else 0):
            bits |= self._exact.get(path[:length], 0)
        return bits
