"""Keys and values that what the engine itself provides never has: misspelt, nearly always.

What is nowhere declared is open: a key of it is reported only where it looks like one that there is.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from noetl.dsl.checks.flow.guard_verdicts import DONE, ERROR, FAILED, LOOP_DONE, OK
from noetl.dsl.checks.flow.name_reads import uses_beside_item
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.shape_check import did_you_mean
from noetl.expr.analysis.comparisons import compared_texts
from noetl.expr.language.transform import OLDER_EVENT_NAMES
from noetl.expr.use import Path, Use
from noetl.model.json import Json
from noetl.model.outcome import ERROR_KINDS

Shape: TypeAlias = Mapping[str, "Shape | None"]
"""The keys of a mapping; of those with None, nothing more is known."""

_AFTER_TASK = frozenset({ExpressionRole.POLICY, ExpressionRole.POLICY_WRITE, ExpressionRole.TASK_WRITE})
_AFTER_RUN = frozenset(
    {ExpressionRole.STEP_WRITE, ExpressionRole.ARC, ExpressionRole.ARC_ARGS, ExpressionRole.ARC_WRITE}
)

_ERROR: Final[Shape] = dict.fromkeys(
    (
        *("kind", "message", "retryable", "retry_after"),
        # Details that some kinds of errors have.
        *("attempt", "attempts", "cause", "code", "credentials", "exhausted", "exit_code", "filename"),
        *("index", "line", "preview", "signal", "sqlstate", "statement", "status", "step", "task", "type"),
    )
)
EVENT_SHAPE: Final[Shape] = {
    **dict.fromkeys(("event_id", "execution_id", "timestamp", "source", "name", "entity", "entity_id")),
    **dict.fromkeys(("status", "step", "result", "result_ref")),
    "data": {"result": None, "error": _ERROR},
    "error": _ERROR,
    "loop": dict.fromkeys(("total", "succeeded", "failed", "failures")),
}
STEP_SHAPE: Final[Shape] = {"status": None, "result": None, "error": _ERROR}
_CLOSED: Final = frozenset({("event",), ("event", "loop"), ("event", "data")})
"""Mappings that have no keys but those that are known; `steps.NAME` is another."""

_ANSWER: Final = ("output", "response")
"""What no tool gives, and older playbooks read: it is far from every key that there is."""

_EVENT_NAMES = frozenset({DONE, LOOP_DONE, FAILED, *OLDER_EVENT_NAMES})
_STATUSES = frozenset({"completed", "failed", "cancelled", "skipped", "running", "waiting", "not_admitted"})
_VALUES: Final[Mapping[Path, frozenset[str]]] = {
    ("outcome", "status"): frozenset({OK, ERROR}),
    ("outcome", "error", "kind"): ERROR_KINDS,
    ("outcome", "playbook", "status"): frozenset({"completed", "failed", "cancelled"}),
    ("event", "name"): _EVENT_NAMES,
    ("event", "status"): frozenset({"success", "error"}),
    ("event", "error", "kind"): ERROR_KINDS,
    ("steps", "*", "status"): _STATUSES,
    ("steps", "*", "error", "kind"): ERROR_KINDS,
}
_COMPARED = re.compile(r"\b(outcome|output|event)\.(status|name)\s*[!=]=\s*'([^'\\]*)'")
_HEADS = re.compile(r"\b(?:outcome|output|event|steps|_task)\b")
_WORD = re.compile(r"`(\w+)`")


class ImpossibleValue(NamedTuple):
    """A text that `path` never is; `known` are those that it can be."""

    path: Path
    text: str
    offset: int
    known: Collection[str]

    @property
    def hint(self) -> str:
        listing = [f"`{value}`" for value in sorted(self.known)]
        return did_you_mean(self.text, self.known) or f"it is {' or '.join(listing)}"


def check_known_shapes(playbook: Playbook, context: DocumentContext) -> None:
    """Every key and value is one that what is read can have."""
    outcome = outcome_shape(context.kinds)
    workload = _declared_shape(playbook, context)
    # A guard that holds on no event is told of where its arc is.
    dead = {(problem.line, problem.column) for problem in context.problems if problem.code == "dead-arc"}
    for occurrence in context.occurrences:
        for use in uses_beside_item(occurrence, playbook.steps.get(occurrence.part.step)):
            shape = _shape_of(use, occurrence, outcome, workload)
            if shape is not None:
                _check_keys(use, shape, occurrence, context)
        if (occurrence.scalar.line, occurrence.scalar.column) not in dead:
            for value in impossible_values(occurrence, playbook):
                message = f"`{'.'.join(value.path)}` is never `{value.text}`"
                context.report_inside(
                    "impossible-value", occurrence.scalar, value.offset, message, value.hint
                )


def impossible_values(occurrence: ExpressionOccurrence, playbook: Playbook) -> Iterator[ImpossibleValue]:
    """The texts that an expression compares something with that never is one of them."""
    expression, role = occurrence.expression, occurrence.part.role
    # Most conditions compare a status or the name of an event and are right: reading the source again, which
    # `compared_texts` does, takes a hundred times as long as to see that.
    rest = _COMPARED.sub(_without_known, expression.source)
    if not _HEADS.search(rest) or ("'" not in rest and '"' not in rest):
        return
    for path, text, offset in compared_texts(expression):
        head = "outcome" if path[0] == "output" else path[0]
        if head in expression.assigned or (head == "outcome" and role not in _AFTER_TASK):
            continue
        if head == "_task" and len(path) == 1 and occurrence.part.step in playbook.steps:
            known: Collection[str] = {task.label for task in playbook.steps[occurrence.part.step].tasks}
        else:
            keys = ("*", *path[2:]) if head == "steps" else path[1:]
            known = _VALUES.get((head, *keys), ())
        if known and text not in known:
            yield ImpossibleValue(path, text, offset, known)


def _without_known(comparison: re.Match[str]) -> str:
    head, key, text = comparison.groups()
    known = _VALUES.get(("event" if head == "event" else "outcome", key), ())
    return "" if text in known else comparison[0]


def outcome_shape(kinds: Kinds) -> Shape:
    """What tasks of any kind may give: rules of a step are for all of its tasks."""
    # The keys of a helper stand in its description, beside other words in backquotes: harmless, because only
    # what looks like one of them is reported.
    helpers: dict[str, Shape] = {}
    for kind in kinds:
        for name, description in kind.helpers.items():
            helpers[name] = {**helpers.get(name, {}), **dict.fromkeys(_WORD.findall(description))}
    return {**helpers, **dict.fromkeys(("status", "result", "data", "meta")), "error": _ERROR}


def _declared_shape(playbook: Playbook, context: DocumentContext) -> Shape:
    document = playbook.document
    declared = document.get("workload") if isinstance(document, dict) else None
    return {**dict.fromkeys(context.workload_keys), **(shape_of_value(declared) or {})}


def shape_of_value(value: Json) -> Shape | None:
    if not isinstance(value, dict):
        return None
    return {key: shape_of_value(item) for key, item in value.items()}


def _shape_of(use: Use, occurrence: ExpressionOccurrence, outcome: Shape, workload: Shape) -> Shape | None:
    """What is known of the name that a path begins with, where it stands."""
    role = occurrence.part.role
    match use.path[0]:
        case "outcome" | "output" if role in _AFTER_TASK:
            return outcome
        case "event" if role in _AFTER_RUN:
            return EVENT_SHAPE
        case "steps" if len(use.path) > 1:
            return {use.path[1]: STEP_SHAPE}
        case "workload" if not use.optional:
            return workload
        case _:
            return None


def _check_keys(
    use: Use, shape: Shape | None, occurrence: ExpressionOccurrence, context: DocumentContext
) -> None:
    for number, key in enumerate(use.path[1:], start=1):
        if not shape:
            return
        if key not in shape:
            owner = use.path[:number]
            near = did_you_mean(key, shape)
            closed = owner in _CLOSED or (len(owner) == 2 and owner[0] == "steps")
            closed = closed or use.path[: number + 1] == _ANSWER
            if closed or near:
                message = f"`{'.'.join(owner)}` has no `{key}`"
                hint = near or f"it has {', '.join(f'`{name}`' for name in shape)}"
                context.report_inside("unknown-field", occurrence.scalar, use.offset, message, hint)
            return
        shape = shape[key]
