"""What there is to draw: a playbook's net as nodes with lines of text and edges between them.

Texts are complete, on one line each; every writer shortens and escapes them in its own way.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from noetl.dsl.document.playbook import (
    Admission,
    Arc,
    Break,
    Continue,
    Directive,
    Fail,
    Join,
    Jump,
    Loop,
    Playbook,
    RetryTask,
    Step,
    Task,
)
from noetl.graph.playbook_text import (
    EventMark,
    data_label,
    flatten,
    guard_label,
    number_label,
    reads_failure,
    split_event_mark,
)
from noetl.model.errors import NoetlError

StepRole: TypeAlias = Literal["start", "end", "final"]

EVENT_GLYPHS: dict[EventMark, str] = {"": "", "done": "✓", "failed": "✗"}
_GLYPHS = {"admit": "◇", "join": "⋎", "loop": "⟳", "retry": "↻", "jump": "↩", "break": "■"}


class GraphError(NoetlError):
    """A picture cannot be drawn here: the format is unknown or a library is missing."""


class PolicyMark(Struct, frozen=True):
    """What a task's policy may do besides going on."""

    kind: Literal["retry", "jump", "break"]
    text: str


class TaskRow(Struct, frozen=True):
    """One task of a pipeline."""

    label: str
    kind: str
    marks: tuple[PolicyMark, ...]


class Badge(Struct, frozen=True):
    """Something that decides how the pipeline runs: its gate, its join, its loop."""

    kind: Literal["admit", "join", "loop"]
    text: str
    detail: str = ""


class PictureNode(Struct, frozen=True):
    name: str
    desc: str
    roles: tuple[StepRole, ...]
    badges: tuple[Badge, ...]
    rows: tuple[TaskRow, ...]
    inclusive: bool
    """More than one arc, and every one whose guard holds is taken."""
    state: str | None
    faded: bool
    note: str = ""
    """What there is to say about its runs."""


class PictureEdge(Struct, frozen=True):
    """An arc, by the numbers of its nodes.

    `order` is empty for an only arc, else its number in an exclusive router, `+` in an inclusive one.
    `guard` is the whole condition, `text` what is left of it beside the mark. `taken` says how often.
    """

    source: int
    target: int
    text: str
    order: str
    failure: bool
    faded: bool
    mark: EventMark = ""
    guard: str = ""
    taken: int | None = None

    @property
    def count(self) -> str:
        """How often it was taken, where that is not plain to see."""
        return f"{self.taken}\u00d7" if self.taken is not None and self.taken > 1 else ""

    @property
    def label(self) -> str:
        """All that stands on it, as one line."""
        parts = (self.order, EVENT_GLYPHS[self.mark], self.text, self.count)
        return " ".join(part for part in parts if part)


class ExecutionFacts(Struct, frozen=True):
    """What an execution made of a playbook, by steps; `taken` counts by step and number of the arc.

    Steps without a state are faded, and so are arcs that were not taken.
    """

    states: Mapping[str, str]
    notes: Mapping[str, str] = {}
    taken: Mapping[tuple[str, int], int] | None = None


class Picture(Struct, frozen=True):
    title: str
    subtitle: str
    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    entry: int


def picture_of(playbook: Playbook, facts: ExecutionFacts | None = None) -> Picture:
    """All steps in document order, and all arcs that lead to one of them."""
    index = {step.name: number for number, step in enumerate(playbook.workflow)}
    arrivals = Counter(arc.step for step in playbook.workflow for arc in step.arcs)
    edges = tuple(edge for step in playbook.workflow for edge in _edges(step, index, facts))
    return Picture(
        flatten(playbook.metadata.name),
        flatten(playbook.metadata.path),
        tuple(_node(step, playbook, arrivals[step.name], facts) for step in playbook.workflow),
        edges,
        index.get(playbook.entry, 0),
    )


def node_lines(node: PictureNode) -> Iterator[str]:
    """All there is to say about a step: its name first, its tasks last; nothing is shortened."""
    words = [*node.roles, *([node.state.replace("_", " ")] if node.state else [])]
    yield node.name + (f" ({', '.join(words)})" if words else "")
    if node.desc:
        yield node.desc
    if node.note:
        yield node.note
    for badge in node.badges:
        yield f"{_GLYPHS[badge.kind]} {badge.text}" + (f" ({badge.detail})" if badge.detail else "")
    for row in node.rows:
        marks = "".join(f" {_GLYPHS[mark.kind]} {mark.text}" for mark in row.marks)
        yield f"{row.label} · {row.kind}{marks}"


def _node(step: Step, playbook: Playbook, arrivals: int, facts: ExecutionFacts | None) -> PictureNode:
    badges = [
        *(_admission(step.admit) if step.admit else ()),
        *((_join(step.join, arrivals),) if step.join else ()),
        *((_loop(step.loop),) if step.loop else ()),
    ]
    return PictureNode(
        name=flatten(step.name),
        desc=flatten(step.desc),
        roles=_roles(step, playbook),
        badges=tuple(badges),
        rows=tuple(_row(task) for task in step.tasks),
        inclusive=not step.is_exclusive and len(step.arcs) > 1,
        state=flatten(facts.states.get(step.name, "")) if facts is not None else None,
        faded=facts is not None and step.name not in facts.states,
        note=flatten(facts.notes.get(step.name, "")) if facts is not None else "",
    )


def _roles(step: Step, playbook: Playbook) -> tuple[StepRole, ...]:
    if step.name == playbook.executor.final_step:
        return ("final",)
    roles: list[StepRole] = []
    if step.name == playbook.entry:
        roles.append("start")
    if not step.arcs:
        roles.append("end")
    return tuple(roles)


def _admission(admission: Admission) -> Iterator[Badge]:
    """One badge per rule, the first that matches decides; what happens otherwise if that is not to deny."""
    denied = "" if admission.on_deny == "park" else f"else {admission.on_deny}"
    for rule in admission.rules:
        verdict = "admit" if rule.allow else "deny"
        condition = guard_label(rule.when)
        yield Badge("admit", f"{verdict} if {condition}" if condition else f"{verdict} always", denied)
        denied = ""
    if admission.otherwise is not None and (admission.otherwise or not admission.rules):
        yield Badge("admit", "admit otherwise" if admission.otherwise else "deny always", denied)


def _join(join: Join, arrivals: int) -> Badge:
    return Badge("join", f"join {join.count} of {arrivals}" if join.mode == "count" else f"join {join.mode}")


def _loop(loop: Loop) -> Badge:
    detail: str = loop.mode
    if loop.mode == "parallel":
        detail += f", {number_label(loop.max_in_flight)} in flight"
    if loop.placement == "distributed":
        detail += ", distributed"
    if loop.failure == "best_effort":
        detail += ", best effort"
    return Badge("loop", f"for {flatten(loop.iterator)} in {data_label(loop.items)}", detail)


def _row(task: Task) -> TaskRow:
    marks: dict[PolicyMark, None] = {}
    for then in task.thens:
        if (mark := _mark(then.do)) is not None:
            marks[mark] = None
    return TaskRow(flatten(task.label), flatten(task.kind), tuple(marks))


def _mark(directive: Directive) -> PolicyMark | None:
    match directive:
        case RetryTask():
            return PolicyMark("retry", f"{number_label(directive.attempts)}\u00d7")
        case Jump():
            return PolicyMark("jump", flatten(directive.to))
        case Break():
            return PolicyMark("break", "break")
        case Continue() | Fail():
            return None
        case _:
            assert_never(directive)


def _edges(step: Step, index: Mapping[str, int], facts: ExecutionFacts | None) -> Iterator[PictureEdge]:
    several = len(step.arcs) > 1
    for number, arc in enumerate(step.arcs):
        if arc.step not in index:
            continue
        order = ""
        if several:
            order = str(number + 1) if step.is_exclusive else "+"
        guard = _edge_text(step, number, arc)
        mark, text = split_event_mark(guard)
        taken = None
        if facts is not None and facts.taken is not None:
            taken = facts.taken.get((step.name, number), 0)
        yield PictureEdge(
            source=index[step.name],
            target=index[arc.step],
            text=text,
            order=order,
            failure=reads_failure(arc.when),
            faded=taken == 0
            or (taken is None and facts is not None and not {step.name, arc.step} <= facts.states.keys()),
            mark=mark,
            guard=guard,
            taken=taken,
        )


def _edge_text(step: Step, number: int, arc: Arc) -> str:
    if not arc.is_guarded and number and step.is_exclusive:
        return "otherwise"
    return guard_label(arc.when)
