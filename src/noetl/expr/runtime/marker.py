"""How values that are stored elsewhere answer in expressions: with the parts that are at hand."""

from collections.abc import Mapping
from typing import Any

from noetl.model.errors import ExpressionError
from noetl.model.json import Json
from noetl.model.reference import MARKER, is_reference, part_reference, references_in
from noetl.model.secret import is_secret, secrets_in

_HINT = "keep the part at hand with `spec.result.select`, or read the value in a task"


class ReferenceUnresolved(ExpressionError):
    """A value was asked for that is stored by reference, or a part of it that is not at hand."""

    def __init__(self, reference: dict[str, Any], subject: str = "the value") -> None:
        size = reference.get("size")
        size_text = f" ({size:,} bytes)" if isinstance(size, int) else ""
        super().__init__(f"{subject} is stored by reference{size_text} and not at hand here", hint=_HINT)
        self.kind = "limit"
        self.reference = reference


class SecretRefused(ExpressionError):
    """A secret was asked for where only the inputs of tools may have one."""

    def __init__(self, marker: Mapping[str, Any]) -> None:
        message = "the value holds a secret, which only the inputs and args of tasks can read"
        super().__init__(message, hint="hand it on whole, as one `{{ … }}`, and use it in a task's inputs")
        self.kind = "credential"
        self.marker = marker


class Selected:
    """A mapping or list with `extracted` beside its own keys. Copies are plain values."""

    extracted: Mapping[str, Json]


class SelectedMapping(dict[str, Any], Selected):
    pass


class SelectedList(list[Any], Selected):
    pass


def with_extracted(value: Any, extracted: Mapping[str, Json]) -> Any:
    """A value that answers to `.extracted` as its reference would."""
    if isinstance(value, dict):
        selected: Any = SelectedMapping(value)
        selected.extracted = {**value, **extracted}
    elif isinstance(value, list):
        selected = SelectedList(value)
        selected.extracted = extracted
    else:
        return value
    return selected


def refuse_marker(value: object) -> None:
    """Raises ReferenceUnresolved or SecretRefused if this stands for a value."""
    if type(value) is dict and MARKER in value:
        if is_reference(value):
            raise ReferenceUnresolved(value)
        if is_secret(value):
            raise SecretRefused(value)


def refuse_markers_in(value: object) -> None:
    """Raises ReferenceUnresolved or SecretRefused if this, or anything in it, stands for a value."""
    for marker in references_in(value):
        raise ReferenceUnresolved(marker)
    for marker in secrets_in(value):
        raise SecretRefused(marker)


def referenced_length(value: dict[str, Any]) -> int:
    """How long the value is that this stands for."""
    if "length" not in value or "set" in value:
        raise ReferenceUnresolved(value, "its length")
    length: int = value["length"]
    return length


ABSENT = object()
"""The answer of a lookup that found nothing; None is a value."""


def referenced_part(owner: dict[str, Any], key: object) -> object:
    """A part of what this stands for, or ABSENT. Raises ReferenceUnresolved where it is not at hand."""
    if key == "extracted":
        return owner.get("extracted", {})
    # A reference remembers what was written over it, in order. The last write of the part itself hides all
    # before it, and what is stored; those after it lie deeper inside.
    writes = [write for write in owner.get("set", ()) if write[0][0] == key]
    for position in range(len(writes) - 1, -1, -1):
        path, value = writes[position]
        if len(path) == 1:
            return _apply_writes(value, writes[position + 1 :])
    try:
        stored = _stored_part(owner, key)
    except ReferenceUnresolved:
        if not writes:
            raise
        stored = part_reference(owner["key"], (*owner.get("path", ()), str(key)))
    return _apply_writes({} if stored is ABSENT else stored, writes) if writes else stored


def _apply_writes(value: object, writes: list[Any]) -> object:
    for path, written in writes:
        value = write_at_path(value, tuple(path[1:]), written)
    return value


def write_at_path(values: object, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy with the value at this path; what is not on the way is shared.

    What is not a mapping becomes one. A reference stays one and remembers the write.
    """
    if type(values) is dict and MARKER not in values:
        copy = dict(values)
    elif not is_reference(values):
        copy = dict(values) if isinstance(values, Mapping) else {}
    elif values.get("type", "mapping") == "mapping":
        return {**values, "set": [*values.get("set", ()), [list(path), value]]}
    else:
        copy = {}
    key = path[0]
    copy[key] = value if len(path) == 1 else write_at_path(copy.get(key), path[1:], value)
    return copy


def _stored_part(owner: dict[str, Any], key: object) -> object:
    extracted = owner.get("extracted", {})
    if key in extracted and key not in owner.get("selected", ()):
        return extracted[key]
    if key in owner.get("absent", ()):
        return ABSENT
    kind = owner.get("type")
    if isinstance(key, str) and kind is not None and kind != "mapping":
        return ABSENT
    if type(key) is int and kind == "mapping":
        return ABSENT
    raise ReferenceUnresolved(owner, f"`{key}`")


def may_equal(reference: dict[str, Any], value: object) -> bool:
    """Whether the value behind a reference could be equal to `other`."""
    kind = reference.get("type")
    match value:
        case str():
            return kind in (None, "text")
        case list() | tuple():
            return kind in (None, "list")
        case Mapping():
            return kind in (None, "mapping") or is_reference(value)
        case _:
            return kind is None
