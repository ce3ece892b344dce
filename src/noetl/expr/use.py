"""The paths that expressions read. Nothing here needs Jinja2: see `Expression`."""

from typing import TypeAlias

from msgspec import Struct

Path: TypeAlias = tuple[str, ...]


class Use(Struct, frozen=True):
    """A path an expression reads.

    `path` is a free name and the constant keys after it; `offset` is where the name stands.
    `optional` means that the expression itself provides for its absence, `length_only` that only
    its length is asked.
    """

    path: Path
    offset: int
    optional: bool = False
    length_only: bool = False
