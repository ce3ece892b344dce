"""How values are kept in an execution: the knobs under `spec.result`."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from noetl.dsl.document.playbook import Playbook, Step, Task
from noetl.dsl.document.selection import Selection
from noetl.expr.template import Constant, MappingTemplate, Template
from noetl.model.json import Json
from noetl.model.reference import OWN_STORE

INLINE_MAX_BYTES = 65_536
"""Larger values leave the log."""
PREVIEW_MAX_BYTES = 1_024
COMPRESSION = "zstd"
"""How values are packed: a third of a gigabyte in a second, to an eighth of what rows of JSON take."""


class ResultRules(NamedTuple):
    """How the values of a task, a step or an execution are kept."""

    limit: int = INLINE_MAX_BYTES
    preview: int = PREVIEW_MAX_BYTES
    select: tuple[Selection, ...] = ()
    store: str = ""
    """The name of a result store; empty is the engine's own."""
    compression: str = COMPRESSION
    ttl: float | None = None
    scope: str = ""
    packs_objects: bool = False
    """Whether `compression` was asked for, and so holds for what tools store, too."""

    @property
    def reference_fields(self) -> dict[str, Json]:
        """What references say of how long their bodies live."""
        fields: dict[str, Json] = {}
        if self.ttl is not None:
            fields["ttl"] = self.ttl
        if self.scope:
            fields["scope"] = self.scope
        return fields

    def selected(self, value: Json) -> dict[str, Json]:
        """The parts to keep at hand, by name."""
        return {name: part for selection in self.select for name, part in selection.find(value).items()}


def execution_rules(playbook: Playbook) -> ResultRules:
    return _rules(_plain(playbook.executor.spec.get("result")))


def step_rules(playbook: Playbook, step: Step) -> ResultRules:
    return _rules(_plain(playbook.executor.spec.get("result")), _plain(step.spec.get("result")))


def task_rules(task: Task) -> ResultRules:
    """Of the task's merged `spec`."""
    return _rules(_constants(task.spec.get("result")))


def _plain(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _constants(data: Template | None) -> Mapping[str, Any]:
    match data:
        case Constant(value=dict() as value):
            return value
        case MappingTemplate():
            return {key: item.value for key, item in data.entries.items() if isinstance(item, Constant)}
        case _:
            return {}


def _rules(*specs: Mapping[str, Any]) -> ResultRules:
    merged: dict[str, Any] = {}
    for spec in specs:
        merged.update({key: value for key, value in spec.items() if value is not None})
    limit, preview = merged.get("inline_max_bytes"), merged.get("preview_max_bytes")
    store, ttl = merged.get("store"), merged.get("ttl")
    return ResultRules(
        limit=min(limit, INLINE_MAX_BYTES) if isinstance(limit, int) else INLINE_MAX_BYTES,
        preview=min(preview, INLINE_MAX_BYTES) if isinstance(preview, int) else PREVIEW_MAX_BYTES,
        select=tuple(_selections(merged.get("select"))),
        store=store if isinstance(store, str) and store != OWN_STORE else "",
        compression=str(merged.get("compression") or COMPRESSION),
        ttl=float(ttl) if isinstance(ttl, int | float) else None,
        scope=str(merged.get("scope") or ""),
        packs_objects="compression" in merged,
    )


def _selections(select: Any) -> Iterator[Selection]:
    for entry in select if isinstance(select, list) else ():
        path, name = (entry.get("path"), entry.get("as")) if isinstance(entry, dict) else (entry, None)
        if not isinstance(path, str):
            continue
        try:
            yield Selection(path, str(name or ""))
        except ValueError:
            continue  # loading refuses it wherever there is a task whose result it could be about
