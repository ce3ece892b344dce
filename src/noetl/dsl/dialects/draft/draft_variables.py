"""Where the draft's step variables live in a canonical document (003 §3.3, §6.5).

`vars` are the scope of one step run: `run`. In a parallel loop, writing them belongs to the
iteration: `iter`. What `set_shared` writes is always `run`; in a parallel loop through a reducer.
"""

from typing import get_args

from noetl.dsl.dialects.expression_text import (
    EditFinder,
    as_conjunct,
    as_expression,
    as_operand,
    as_template,
    member_expression,
    name_edits,
)
from noetl.dsl.dialects.nodes import new_text
from noetl.dsl.document.playbook import Reducer
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar, Sequence
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS
from noetl.expr.use import Path, Use

_REDUCERS = frozenset(get_args(Reducer))

# Reducers applied at once, where nothing runs beside them: {k} is what is there, {v} what comes, {o} the
# same as an operand.
_SEQUENTIAL_REDUCERS = {
    "sum": "({k} | default(0)) + {o}",
    "count": "({k} | default(0)) + 1",
    "min": "[{k} | default({v}), {v}] | min",
    "max": "[{k} | default({v}), {v}] | max",
    "append": "({k} | default([])) + [{v}]",
    "concat": "({k} | default([])) + {o}",
    "union": "(({k} | default([])) + {o}) | unique | list",
    "first": "{k} | default({v})",
}


def run_variable(path: Path, _use: Use) -> tuple[int, str] | None:
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
        # Names that `iter` has for something else: a variable of that name is called `vars_NAME` there.
        self._clashing: set[str] = set()
        iterator = loop.get("iterator") if isinstance(loop, Mapping) else None
        if isinstance(iterator, Scalar) and iterator.value == "run":
            # `vars` become `run` here, which would be the item.
            self._report(
                "reserved-name",
                iterator,
                "an iterator cannot be `run` in a draft, whose `vars` are called so",
                "choose another name",
            )
        if self.parallel and isinstance(loop, Mapping):
            self._survey_writes(loop, step.get("tool"))

    def read_edits(self) -> EditFinder:
        """Renames the reads of `vars` in this step's tasks."""
        return name_edits(self._resolve)

    def write_target(self, key: str) -> tuple[str, str]:
        """The `set_…` that writes a variable here, and its key there."""
        if not self.parallel:
            return "set_run", key
        return "set_iter", f"vars_{key}" if _root(key) in self._clashing else key

    def shared_writes(self, entry: MappingEntry) -> list[tuple[str, Node]]:
        """What `set_run` writes for one entry of `set_shared`: keys and values."""
        reduction = _reduction(entry.value)
        if reduction is None:
            return [(entry.key, entry.value)]
        reducer, operand_entry = reduction
        if self.parallel or reducer == "last":
            return [(entry.key, operand_entry.value)]
        if reducer == "merge" and isinstance(operand_entry.value, Mapping):
            return [(f"{entry.key}.{part.key}", part.value) for part in operand_entry.value]
        pattern, expression = _SEQUENTIAL_REDUCERS.get(reducer), as_expression(operand_entry.value)
        if pattern is None or expression is None:
            self._report(
                "bad-value",
                operand_entry,
                f"`{reducer}` cannot be applied to this outside a parallel loop",
                "give plain data, or an expression without `{% %}`",
            )
            return []
        owner = f"run.{entry.key}" if "." in entry.key else member_expression("run", entry.key)
        operand = _operand(operand_entry.value, expression)
        result = as_template(pattern.format(k=owner, v=as_conjunct(expression), o=operand))
        return [(entry.key, new_text(result, operand_entry))]

    def _resolve(self, path: Path, use: Use) -> tuple[int, str] | None:
        if path[0] != "vars" or not self.parallel or (len(path) > 1 and path[1] in self._shared_roots):
            return run_variable(path, use)
        if len(path) > 1 and path[1] in self._clashing:
            return 2, member_expression("iter", f"vars_{path[1]}")
        return 1, "iter"

    def _survey_writes(self, loop: Mapping, tool: Node | None) -> None:
        iterator = loop.get("iterator")
        self._clashing |= BUILTIN_ITER_KEYS
        if isinstance(iterator, Scalar) and isinstance(iterator.value, str):
            self._clashing.add(iterator.value)
        for write in _writes(tool):
            if write.key == "set_iter" and isinstance(write.value, Mapping):
                self._clashing |= {_root(key) for key in write.value.entries}
            elif write.key == "set_shared" and isinstance(write.value, Mapping):
                for entry in write.value:
                    self._declare_reducer(entry)

    def _declare_reducer(self, entry: MappingEntry) -> None:
        reduction = _reduction(entry.value)
        name = reduction[0] if reduction else "last"
        declared = self.reducers.setdefault(entry.key, Scalar(name, entry.line, entry.column))
        if declared.value != name:
            self._report(
                "bad-value",
                entry,
                f"`{entry.key}` is shared by `{name}` here and by `{declared.value}` in line {declared.line}",
                "one key has one reducer",
            )

    @property
    def _shared_roots(self) -> set[str]:
        return {_root(key) for key in self.reducers}


def _reduction(node: Node) -> tuple[str, MappingEntry] | None:
    """The reducer and the value of a form such as `{sum: 1}`."""
    if isinstance(node, Mapping) and len(node.entries) == 1:
        entry = next(iter(node))
        if entry.key in _REDUCERS:
            return entry.key, entry
    return None


def _operand(value: Node, expression: str) -> str:
    """What comes, beside a `+`; plain data needs no brackets there."""
    plain = not isinstance(value, Scalar) or not isinstance(value.value, str)
    return expression if plain else as_operand(expression)


def _writes(node: Node | None) -> list[MappingEntry]:
    """Every `set_…` entry anywhere in a pipeline's rules."""
    writes: list[MappingEntry] = []
    open_nodes = [node] if node is not None else []
    while open_nodes:
        current = open_nodes.pop()
        if isinstance(current, Sequence):
            open_nodes.extend(current.items)
        elif isinstance(current, Mapping):
            writes.extend(entry for entry in current if entry.key in ("set_iter", "set_shared"))
            open_nodes.extend(
                entry.value for entry in current if entry.key not in ("document", "code", "args")
            )
    # The stack gives them in any order; the first declaration of a reducer must be the first in the text.
    writes.sort(key=lambda entry: (entry.line, entry.column))
    return writes


def _root(key: str) -> str:
    return key.split(".", 1)[0]
