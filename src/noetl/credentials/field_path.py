"""Values inside of values, by the way to them."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from noetl.credentials.credential import secrets_of
from noetl.credentials.masker import leaves
from noetl.model.json import Json
from noetl.model.secret import SecretOrigin, secret_marker

FieldPath = tuple[str | int, ...]


def mark_fields(fields: Mapping[str, Json], origin: SecretOrigin, *, public: bool = False) -> dict[str, Any]:
    """The fields with what stands for each value; with `public`, only for those that are secret."""
    secret_paths = {path for path, _ in secrets_of(fields)} if public else None
    marked: Any = dict(fields)
    for path, _ in leaves(fields):
        if path and (secret_paths is None or path in secret_paths):
            marked = replace_at_field_path(marked, path, secret_marker(structs.replace(origin, path=path)))
    result: dict[str, Any] = marked
    return result


def credential_field(fields: Mapping[str, Any], path: FieldPath) -> Any:
    """What a secret of a credential is, or another field of it. Raises KeyError if there is none any more."""
    secret = dict(secrets_of(fields)).get(path)
    return value_at_field_path(fields, path) if secret is None else secret


def value_at_field_path(value: Any, path: FieldPath) -> Any:
    """Raises KeyError if there is no such path."""
    for key in path:
        try:
            value = value[key]
        except (IndexError, TypeError):
            raise KeyError(key) from None
    return value


def replace_at_field_path(value: Any, path: FieldPath, new: Any) -> Any:
    """A copy with something else at this path; the same where there is no such path."""
    if not path:
        return new
    if isinstance(value, list):
        return [
            replace_at_field_path(item, path[1:], new) if index == path[0] else item
            for index, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return {
            key: replace_at_field_path(item, path[1:], new) if key == path[0] else item
            for key, item in value.items()
        }
    return value
