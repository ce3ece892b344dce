"""Texts as PostgreSQL can keep them: it has no character 0."""

from typing import Any

_ESCAPE = "\uf8ff"
"""A character for private use, which nobody types."""


def storable_text(value: Any) -> Any:
    """The value as it is, if it is no text; a text as it is, but for a character 0 in it."""
    if not isinstance(value, str) or not ("\0" in value or _ESCAPE in value):
        return value
    return value.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")


def text_as_written(value: Any) -> Any:
    """The way back."""
    if not isinstance(value, str) or _ESCAPE not in value:
        return value
    return value.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)
