"""What the JSON Schema of documents says about a place, however far what stands there is written."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from noetl.dsl.completion.flow_text import OutlinePath
from noetl.dsl.document.schema import Schema

_REFERENCE = "#/$defs/"


class SchemaPlaces:
    """Finds the parts of a schema that are about a path."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema

    def views(self, document: Any, path: OutlinePath) -> list[Schema]:
        """All that is said about the value at the path, references and choices followed."""
        schemas, value = [self._root], document
        for key in path:
            views = [view for schema in schemas for view in self._views(schema, value)]
            schemas = [child for view in views if (child := _child(view, key)) is not None]
            value = _item(value, key)
        return [view for schema in schemas for view in self._views(schema, value)]

    def _views(self, schema: Schema, value: Any) -> Iterator[Schema]:
        if (reference := schema.get("$ref")) is not None:
            name = unquote(reference.removeprefix(_REFERENCE))
            yield from self._views(self._root if name == "#" else self._root["$defs"][name], value)
            return
        if _may_be(schema, value):
            yield schema
        options = [list(self._views(option, value)) for option in schema.get("anyOf", ())]
        misfits = [sum(_unknown_keys(view, value) for view in views) for views in options]
        for views, unknown in zip(options, misfits, strict=True):
            if unknown == min(misfits):
                yield from views
        yield from self._conditional(schema, value)

    def _conditional(self, schema: Schema, value: Any) -> Iterator[Schema]:
        if "if" in schema:
            holds = _holds(schema["if"], value)
            for branch, wanted in (("then", True), ("else", False)):
                if branch in schema and (holds is wanted or not value):
                    yield from self._views(schema[branch], value)
        cases = [case for case in schema.get("allOf", ()) if "if" in case]
        chosen = [case for case in cases if _holds(case["if"], value)]
        for case in chosen:
            yield from self._views(case["then"], value)
        if cases and not chosen:
            yield self._in_common([case["then"] for case in cases], value)

    def _in_common(self, schemas: list[Schema], value: Any) -> Schema:
        """The keys that all of them have."""
        first, *others = [
            {key: field for view in self._views(schema, value) for key, field in _properties(view).items()}
            for schema in schemas
        ]
        return {
            "properties": {
                key: field for key, field in first.items() if all(key in other for other in others)
            }
        }


def _properties(view: Schema) -> Schema:
    properties: Schema = view.get("properties", {})
    return properties


def _child(view: Schema, key: str | int) -> Schema | None:
    child = view.get("items") if isinstance(key, int) else _properties(view).get(key)
    if child is None and isinstance(key, str):
        child = view.get("additionalProperties")
    return child if isinstance(child, dict) else None


def _item(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None


def _may_be(view: Schema, value: Any) -> bool:
    kinds = {"object": dict, "array": list}
    wanted = kinds.get(view.get("type", ""))
    return wanted is None or not isinstance(value, dict | list) or isinstance(value, wanted)


def _unknown_keys(view: Schema, value: Any) -> int:
    if view.get("additionalProperties") is not False or not isinstance(value, dict):
        return 0
    return len(value.keys() - _properties(view).keys())


def _holds(condition: Schema, value: Any) -> bool:
    """Of the conditions that schemas of documents have: a key is a constant, or one of some keys is there."""
    if not isinstance(value, dict):
        return False
    if "anyOf" in condition:
        return any(value.keys() >= set(option["required"]) for option in condition["anyOf"])
    return all(value.get(key) == field["const"] for key, field in condition["properties"].items())
