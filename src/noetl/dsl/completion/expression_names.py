"""The names that an expression may use at a place of a document that is being written."""

from collections.abc import Iterator
from typing import Any

from noetl.dsl.checks.known_shapes import EVENT_SHAPE, STEP_SHAPE, Shape, outcome_shape, shape_of_value
from noetl.dsl.checks.namespaces import KEYCHAIN_ROLES, VISIBLE
from noetl.dsl.completion.flow_text import OutlinePath
from noetl.dsl.completion.outline import Outline
from noetl.dsl.document.context import ExpressionRole
from noetl.dsl.document.kinds import Kinds
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS

_ARC_ROLES = {
    "when": ExpressionRole.ARC,
    "args": ExpressionRole.ARC_ARGS,
    "set": ExpressionRole.ARC_WRITE,
}
_STEP_ROLES = {
    "args": ExpressionRole.STEP_ARGS,
    "input": ExpressionRole.STEP_ARGS,
    "loop": ExpressionRole.LOOP,
    "set": ExpressionRole.STEP_WRITE,
}


class ExpressionNames:
    """What names there are where an expression stands."""

    def __init__(self, outline: Outline, path: OutlinePath, kinds: Kinds) -> None:
        self._outline = outline
        self._path = path
        self._kinds = kinds
        step = outline.at(path[:2]) if path[:1] == ("workflow",) else None
        self._step: dict[str, Any] = step if isinstance(step, dict) else {}

    def namespaces(self) -> list[str]:
        """Those that exist there."""
        role = _role(self._path)
        if role is None:
            return []
        return sorted(VISIBLE[role] | ({"keychain"} if role in KEYCHAIN_ROLES else set()))

    def bare(self) -> list[str]:
        """Names that need no namespace: the element of the loop, and the tasks before."""
        loop = self._step.get("loop")
        iterator = loop.get("iterator") if isinstance(loop, dict) else None
        names = [iterator] if isinstance(iterator, str) else []
        if self._path[2:3] == ("tool",):
            names += task_labels(self._step.get("tool"))
        return names

    def below(self, owner: list[str]) -> list[str]:
        """The names that are known of a namespace, or of a part of one."""
        shape: Shape | None = self._shape(owner[0])
        for key in owner[1:]:
            shape = (shape or {}).get(key)
        return list(shape or ())

    def _shape(self, namespace: str) -> Shape | None:
        outline, step = self._outline, self._step
        match namespace:
            case "workload":
                return shape_of_value(outline.root.get("workload"))
            case "event":
                return EVENT_SHAPE
            case "outcome" | "output":
                return outcome_shape(self._kinds)
            case "steps":
                return dict.fromkeys(step_names(outline), STEP_SHAPE)
            case "keychain":
                return dict.fromkeys(keychain_names(outline))
            case "args":
                return self._args()
            case "ctx":
                return _written(outline.root.get("workflow"), "ctx")
            case "run":
                return _written(step, "run")
            case "iter":
                loop = step.get("loop")
                iterator = loop.get("iterator") if isinstance(loop, dict) else None
                own: Shape = {iterator: None} if isinstance(iterator, str) else {}
                return {**own, **_written(step, "iter"), **dict.fromkeys(sorted(BUILTIN_ITER_KEYS))}
            case _:
                return None

    def _args(self) -> Shape:
        """What the step, the task and the arcs to the step set."""
        holders = [
            self._step,
            *(arc for arc in arcs(self._outline) if arc.get("step") == self._step.get("step")),
        ]
        above = [self._outline.at(self._path[:length]) for length in range(3, len(self._path))]
        holders += [value for value in above if isinstance(value, dict)]
        names: dict[str, None] = {}
        for holder in holders:
            for key in ("args", "input"):
                if isinstance(args := holder.get(key), dict):
                    names |= dict.fromkeys(args)
        return names


def step_names(outline: Outline) -> list[str]:
    names = (step.get("step") for step in _mappings(outline.root.get("workflow")))
    return [name for name in names if isinstance(name, str)]


def keychain_names(outline: Outline) -> list[str]:
    names = (entry.get("name") for entry in _mappings(outline.root.get("keychain")))
    return [name for name in names if isinstance(name, str)]


def task_labels(pipeline: Any) -> list[str]:
    """The labels of a pipeline: a name of its own, or the only key above the task."""
    if not isinstance(pipeline, list):
        return []
    labels = []
    for task in pipeline:
        if not isinstance(task, dict):
            continue
        if isinstance(name := task.get("name"), str):
            labels.append(name)
        elif len(task) == 1 and "kind" not in task:
            labels.extend(task)
    return labels


def arcs(outline: Outline) -> Iterator[dict[str, Any]]:
    for step in _mappings(outline.root.get("workflow")):
        router = step.get("next")
        if isinstance(router, dict):
            yield from _mappings(router.get("arcs"))


def _mappings(items: Any) -> Iterator[dict[str, Any]]:
    """The items of a list that are mappings."""
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def _role(path: OutlinePath) -> ExpressionRole | None:
    """What an expression at this place would be for."""
    if path[:1] == ("workload",):
        return ExpressionRole.WORKLOAD
    if path[:1] == ("keychain",):
        return ExpressionRole.KEYCHAIN
    if path[:3] == ("executor", "spec", "output"):
        return ExpressionRole.OUTPUT
    if path[:1] != ("workflow",) or len(path) < 3:
        return ExpressionRole.INPUT if path[:1] == ("workbook",) else None
    match path[2], path[3:]:
        case "next", ("arcs", int(), str(key), *_):
            return _ARC_ROLES.get(key)
        case "tool", inside:
            return _task_role(inside)
        case "spec", ("policy", "admit", *_):
            return ExpressionRole.ADMIT
        case ("spec", ("policy", *_)) | ("loop", ("spec", "policy", *_)):
            return ExpressionRole.POLICY
        case "spec", _:
            return ExpressionRole.STEP_ARGS
        case key, _:
            return _STEP_ROLES.get(str(key))


def _task_role(inside: OutlinePath) -> ExpressionRole:
    if "policy" in inside:
        return ExpressionRole.POLICY
    if "spec" in inside:
        return ExpressionRole.SPEC
    return ExpressionRole.TASK_WRITE if "set" in inside else ExpressionRole.INPUT


def _written(value: Any, scope: str) -> dict[str, Shape | None]:
    """What `set` and `set_SCOPE` anywhere below write to a namespace, by dotted path."""
    shape: dict[str, Any] = {}
    todo = [value]
    while todo:
        current = todo.pop()
        if isinstance(current, dict):
            for key, item in current.items():
                if key in {"set", f"set_{scope}"} and isinstance(item, dict):
                    for written in item:
                        _add(shape, written, scope, is_whole=key == "set")
            todo.extend(current.values())
        elif isinstance(current, list):
            todo.extend(current)
    return shape


def _add(shape: dict[str, Any], written: str, scope: str, *, is_whole: bool) -> None:
    parts = written.split(".")
    if is_whole:
        if parts[0] != scope:
            return
        parts = parts[1:]
    for part in parts:
        if shape.get(part) is None:
            shape[part] = {}
        shape = shape[part]
