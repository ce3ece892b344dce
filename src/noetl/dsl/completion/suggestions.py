"""Completion: what may be written at a line and a column of a playbook, right or wrong as it is."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from noetl.dsl.checks.namespaces import NAMESPACE_HOMES
from noetl.dsl.completion.expression_names import ExpressionNames, keychain_names, step_names, task_labels
from noetl.dsl.completion.flow_text import OutlinePath
from noetl.dsl.completion.outline import Outline, Place
from noetl.dsl.completion.schema_place import SchemaPlaces
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.schema import Schema, document_schema
from noetl.expr.library.filters import FILTERS
from noetl.expr.library.functions import FUNCTIONS

SuggestionKind: TypeAlias = Literal["key", "kind", "step", "task", "value", "namespace", "name", "function"]

_CHAIN = re.compile(r"[A-Za-z_][\w.]*$")
_WORD_END = re.compile(r"\w*")
_PREVIOUS = "previous"


class Suggestion(Struct, frozen=True, kw_only=True):
    """`insert` takes the place of what is written; `detail` is short, `doc` a sentence or two."""

    label: str
    kind: SuggestionKind
    insert: str
    detail: str = ""
    doc: str = ""


class Completion(Struct, frozen=True, kw_only=True):
    """The suggestions for the columns from `start` up to `end`, counted from 1, the likeliest first."""

    line: int
    start: int
    end: int
    items: list[Suggestion]


class Completer:
    """Suggests what documents with these kinds may have."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    @cached_property
    def _places(self) -> SchemaPlaces:
        return SchemaPlaces(document_schema(self._kinds))

    def complete(self, text: str, line: int, column: int) -> Completion:
        """What may stand at a place. What is no document has suggestions as far as it can be read."""
        outline = Outline(text, line, column)
        spot = outline.place
        lines = text.splitlines()
        content = lines[line - 1] if line <= len(lines) else ""
        cursor = min(column - 1, len(content))
        if spot is None:
            return Completion(line=line, start=cursor + 1, end=cursor + 1, items=[])
        expression = _open_expression(spot.text) if spot.role != "key" else None
        if expression is not None:
            names = ExpressionNames(outline, spot.path, self._kinds)
            return _complete_expression(names, expression, content, line, cursor)
        items: Iterable[Suggestion] = ()
        if spot.role == "key":
            items = self._keys(outline, spot, content)
        elif spot.role == "value":
            items = self._values(outline, spot, content)
        items_in_order = _likeliest_first(items, content[spot.start : cursor])
        return Completion(line=line, start=spot.start + 1, end=spot.end + 1, items=items_in_order)

    def _keys(self, outline: Outline, spot: Place, content: str) -> Iterator[Suggestion]:
        mapping = outline.at(spot.path)
        if isinstance(mapping, list | str):
            return
        written = content[spot.start : spot.end]
        present = {key: value for key, value in (mapping or {}).items() if key != written}
        refused = {*present, *self._other_spellings(spot.path, present)}
        behind = "" if content[spot.end :].lstrip().startswith(":") else ": "
        for name, field, required in self._fields(outline, spot):
            if name not in refused:
                yield Suggestion(
                    label=name,
                    kind="key",
                    insert=f"{name}{behind}",
                    detail="required" if required else "",
                    doc=field.get("description", ""),
                )

    def _other_spellings(self, path: OutlinePath, task: Mapping[str, Any]) -> Iterable[str]:
        """Keys of a task that are another word for one of its inputs, or for the label above it."""
        if path[:1] == ("keychain",):
            return ()
        kind = self._kinds.get(str(task.get("kind", "")))
        labelled = path[2:3] == ("tool",) and len(path) == 5
        return (*(kind.spellings if kind is not None else ()), *(("name",) if labelled else ()))

    def _fields(self, outline: Outline, spot: Place) -> list[tuple[str, Schema, bool]]:
        """The keys of a mapping, those that it must have first."""
        fields = [
            (name, field, name in view.get("required", ()))
            for view in self._places.views(outline.root, spot.path)
            for name, field in view.get("properties", {}).items()
        ]
        return sorted(fields, key=lambda field: not field[2])

    def _values(self, outline: Outline, spot: Place, content: str) -> Iterator[Suggestion]:
        gap = " " if content[: spot.start].endswith(":") else ""
        for item in (*_named(outline, spot.path), *self._listed(outline, spot.path)):
            yield msgspec.structs.replace(item, insert=gap + item.insert)

    def _listed(self, outline: Outline, path: OutlinePath) -> Iterator[Suggestion]:
        """Values of which the schema has all."""
        for view in self._places.views(outline.root, path):
            for value in view.get("enum", [view["const"]] if "const" in view else []):
                is_kind = path[-1] == "kind" and path[0] in ("workflow", "workbook")
                kind = self._kinds.get(value) if is_kind else None
                doc = kind.summary if kind is not None else ""
                yield Suggestion(
                    label=value, kind="kind" if kind is not None else "value", insert=value, doc=doc
                )
            if view.get("type") == "boolean":
                for word in ("true", "false"):
                    yield Suggestion(label=word, kind="value", insert=word)


def _complete_expression(
    names: ExpressionNames, expression: str, content: str, line: int, cursor: int
) -> Completion:
    chain = _CHAIN.search(expression)
    word = chain[0].rpartition(".")[2] if chain is not None else ""
    behind = _WORD_END.match(content, cursor)
    return Completion(
        line=line,
        start=cursor - len(word) + 1,
        end=(behind.end() if behind is not None else cursor) + 1,
        items=_likeliest_first(_in_expression(names, expression), word),
    )


def _likeliest_first(items: Iterable[Suggestion], written: str) -> list[Suggestion]:
    """Those that begin as what is written does, then the others; each once."""
    unique: dict[str, Suggestion] = {}
    for item in items:
        unique.setdefault(item.label, item)
    return sorted(unique.values(), key=lambda item: not item.label.startswith(written))


def _open_expression(text: str) -> str | None:
    """What is written of the expression in which a text ends, outside of its quotes."""
    begin = max(text.rfind("{{"), text.rfind("{%"))
    if begin < 0 or max(text.rfind("}}"), text.rfind("%}")) > begin:
        return None
    return text[begin + 2 :]


def _in_expression(names: ExpressionNames, expression: str) -> Iterator[Suggestion]:
    if _in_quotes(expression):
        return
    chain = _CHAIN.search(expression)
    word = chain[0] if chain is not None else ""
    before = expression[: len(expression) - len(word)].rstrip()
    *owner, _ = word.split(".")
    if owner:
        for name in names.below(owner):
            yield Suggestion(label=name, kind="name", insert=name, detail=".".join(owner))
    elif before.endswith("|"):
        for name in sorted(FILTERS):
            yield Suggestion(label=name, kind="function", insert=name, detail="filter")
    elif not before.endswith("."):
        for name in names.bare():
            yield Suggestion(label=name, kind="name", insert=name)
        for name in names.namespaces():
            doc = NAMESPACE_HOMES.get(name, "")
            yield Suggestion(label=name, kind="namespace", insert=name, detail="namespace", doc=doc)
        for name in sorted(FUNCTIONS):
            yield Suggestion(label=name, kind="function", insert=f"{name}(", detail="function")


def _in_quotes(expression: str) -> bool:
    quote = ""
    for character in expression:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
    return bool(quote)


def _named(outline: Outline, path: OutlinePath) -> Iterator[Suggestion]:
    """Names that the document itself gives to steps, tasks and credentials."""
    match path:
        case ("workflow", int(), "next", "arcs", int(), "step") | (
            "executor",
            "spec",
            "entry_step" | "final_step",
        ):
            for name in step_names(outline):
                yield Suggestion(label=name, kind="step", insert=name)
        case ("workflow", int(), "tool", *_, "then" | "else", "to"):
            for label in (*task_labels(outline.at((*path[:2], "tool"))), _PREVIOUS):
                yield Suggestion(label=label, kind="task", insert=label)
        case ("workflow", int(), "tool", *_, "auth"):
            for name in keychain_names(outline):
                yield Suggestion(label=name, kind="name", insert=name, detail="keychain")
