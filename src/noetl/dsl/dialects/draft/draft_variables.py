"""Where the draft's step variables live in a canonical document (003 §3.3, §6.5).

`vars` are the scope of one step run: `run`. In a parallel loop, writing them belongs to the
iteration: `iter`. What `set_shared` writes is always `run`; in a parallel loop through a reducer.
"""

from typing import get_args

from noetl.dsl.dialects.expression_text import (
    as_conjunct,
    as_expression,
    as_operand,
    as_template,
    member_expression,
)
from noetl.dsl.dialects.nodes import new_text
from noetl.dsl.dialects.template_edits import EditFinder, KeyPath, name_edits
from noetl.dsl.document.playbook import Reducer
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar, Sequence
from noetl.expr import BUILTIN_ITER_KEYS, Use

_REDUCERS = frozenset(get_args(Reducer))

# Reducers applied at once, where nothing runs beside them: {k} is what is there, {v} what comes, {o} the
# same as an operand.
_AT_ONCE = {
    "sum": "({k} | default(0)) + {o}",
    "count": "({k} | default(0)) + 1",
    "min": "[{k} | default({v}), {v}] | min",
    "max": "[{k} | default({v}), {v}] | max",
    "append": "({k} | default([])) + [{v}]",
    "concat": "({k} | default([])) + {o}",
    "union": "(({k} | default([])) + {o}) | unique | list",
    "first": "{k} | default({v})",
}


def run_variable(path: KeyPath, _use: Use) -> tuple[int, str] | None:
    """`vars` where only the step run's own scope can be meant."""
    return (1, "run") if path[0] == "vars" else None


def is_parallel(step: Mapping) -> bool:
    """Whether the step is a parallel loop."""
    loop = step.get("loop")
    spec = loop.get("spec") if isinstance(loop, Mapping) else None
    mode = spec.get("mode") if isinstance(spec, Mapping) else None
    return isinstance(mode, Scalar) and mode.value == "parallel"


class DraftVariables:
    """The variables of one step: where each is read and written."""

    def __init__(self, step: Mapping, report: ProblemReporter) -> None:
        self._report = report
        loop = step.get("loop")
        self.parallel = is_parallel(step)
        self.reducers: dict[str, Scalar] = {}
        self._clashing: set[str] = set()
        if self.parallel and isinstance(loop, Mapping):
            self._survey(loop, step.get("tool"))

    def read_edits(self) -> EditFinder:
        """Renames the reads of `vars` in this step's tasks."""
        return name_edits(self._resolve)

    def write_target(self, key: str) -> tuple[str, str]:
        """The `set_…` that writes a variable here, and its key there."""
        if not self.parallel:
            return "set_run", key
        return "set_iter", f"vars_{key}" if _root(key) in self._clashing else key

    def shared_writes(self, item: MappingEntry) -> list[tuple[str, Node]]:
        """What `set_run` writes for one entry of `set_shared`: keys and values."""
        form = _reduced(item.value)
        if form is None:
            return [(item.key, item.value)]
        reducer, given = form
        if self.parallel or reducer == "last":
            return [(item.key, given.value)]
        if reducer == "merge" and isinstance(given.value, Mapping):
            return [(f"{item.key}.{part.key}", part.value) for part in given.value]
        pattern, expression = _AT_ONCE.get(reducer), as_expression(given.value)
        if pattern is None or expression is None:
            self._report(
                "bad-value",
                given,
                f"`{reducer}` cannot be applied to this outside a parallel loop",
                "give plain data, or an expression without `{% %}`",
            )
            return []
        owner = f"run.{item.key}" if "." in item.key else member_expression("run", item.key)
        operand = _operand(given.value, expression)
        result = as_template(pattern.format(k=owner, v=as_conjunct(expression), o=operand))
        return [(item.key, new_text(result, given))]

    def _resolve(self, path: KeyPath, use: Use) -> tuple[int, str] | None:
        if path[0] != "vars" or not self.parallel or (len(path) > 1 and path[1] in self._shared_roots):
            return run_variable(path, use)
        if len(path) > 1 and path[1] in self._clashing:
            return 2, member_expression("iter", f"vars_{path[1]}")
        return 1, "iter"

    def _survey(self, loop: Mapping, tool: Node | None) -> None:
        iterator = loop.get("iterator")
        self._clashing |= BUILTIN_ITER_KEYS
        if isinstance(iterator, Scalar) and isinstance(iterator.value, str):
            self._clashing.add(iterator.value)
        for write in _writes(tool):
            if write.key == "set_iter" and isinstance(write.value, Mapping):
                self._clashing |= {_root(key) for key in write.value.entries}
            elif write.key == "set_shared" and isinstance(write.value, Mapping):
                for item in write.value:
                    self._reduce(item)

    def _reduce(self, item: MappingEntry) -> None:
        form = _reduced(item.value)
        name = form[0] if form else "last"
        known = self.reducers.setdefault(item.key, Scalar(name, item.line, item.column))
        if known.value != name:
            self._report(
                "bad-value",
                item,
                f"`{item.key}` is shared by `{name}` here and by `{known.value}` in line {known.line}",
                "one key has one reducer",
            )

    @property
    def _shared_roots(self) -> set[str]:
        return {_root(key) for key in self.reducers}


def _reduced(node: Node) -> tuple[str, MappingEntry] | None:
    """The reducer and the value of a form such as `{sum: 1}`."""
    if isinstance(node, Mapping) and len(node.entries) == 1:
        item = next(iter(node))
        if item.key in _REDUCERS:
            return item.key, item
    return None


def _operand(value: Node, expression: str) -> str:
    """What comes, beside a `+`; plain data needs no brackets there."""
    plain = not isinstance(value, Scalar) or not isinstance(value.value, str)
    return expression if plain else as_operand(expression)


def _writes(node: Node | None) -> list[MappingEntry]:
    """Every `set_…` entry anywhere in a pipeline's rules."""
    found: list[MappingEntry] = []
    open_nodes = [node] if node is not None else []
    while open_nodes:
        part = open_nodes.pop()
        if isinstance(part, Sequence):
            open_nodes.extend(part.items)
        elif isinstance(part, Mapping):
            found.extend(item for item in part if item.key in ("set_iter", "set_shared"))
            open_nodes.extend(item.value for item in part if item.key not in ("document", "code", "args"))
    found.sort(key=lambda item: (item.line, item.column))
    return found


def _root(key: str) -> str:
    return key.split(".", 1)[0]
