"""Loops in use: what they run over, and cursors, which claim rows until there are none."""

import re
from typing import NamedTuple

from noetl.dsl.dialects.expression_text import (
    as_conjunct,
    as_template,
    edit_node,
    inner_expression,
    name_edits,
)
from noetl.dsl.dialects.in_use.in_use_tasks import number_execution_ids
from noetl.dsl.dialects.in_use.read_edits import NameReads, ReadPlace, ReadSite
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of
from noetl.dsl.dialects.in_use.survey import (
    SQL_KINDS,
    DocumentSurvey,
    SurveyedStep,
    directives,
    reads_event,
    rules_of_spec,
)
from noetl.dsl.dialects.nodes import (
    NodeReader,
    is_null,
    new_entry,
    new_mapping,
    new_sequence,
    new_text,
    text_value,
    with_entry,
    without_keys,
)
from noetl.dsl.document.shape_check import ProblemReporter, closest_words, describe_node
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Sequence, node_of, node_value
from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template

_LIST = re.compile(
    r"(?:\|\s*(?:list|sort|unique|reverse|as_list)(?:\([^()]*\))?|\+\s*\[[^\[\]]*\])\s*\Z|range\([^()]*\)\Z|\[.*\]\Z",
    re.DOTALL,
)
_ROWS = "event.name == 'step.done' and event.result.row_count > 0"
_MAX_ROWS = re.compile(r"\{\{\s*__frame_max_rows\s*\}\}")
_LOOP_DONE = re.compile(r"""(['"])loop\.done\1""")
_SUCCEEDED = re.compile(r"""event\.name\s*==\s*(['"])(?:loop|step|call)\.done\1""")
_CURSOR_KEYS = [
    "mode",
    "frame",
    "process",
    "row_concurrency",
    "max_in_flight",
    "policy",
    "lease",
    "heartbeat",
]
_OURS = re.compile(r"lease|heartbeat|bytes|ttl")
_FAILURE = "event.name == 'step.failed'"


class LoopLowering:
    """Lowers the loops of one document."""

    def __init__(self, survey: DocumentSurvey, reads: NameReads, report: ProblemReporter) -> None:
        self._survey = survey
        self._reads = reads
        self._report = report

    def lower_loop(self, step: SurveyedStep, loop: Mapping) -> Mapping:
        """A loop over a collection: a single value is one item, null is none."""
        site = ReadSite(ReadPlace.LOOP, step)
        entries = [
            new_entry("in", self._collection(entry.value, site), entry) if entry.key == "in" else entry
            for entry in loop
        ]
        return new_mapping(entries, loop)

    def _collection(self, node: Node, site: ReadSite) -> Node:
        if isinstance(node, Sequence):
            return self._reads.rewrite(node, site)
        if is_null(node):
            return new_sequence([], node)
        text = text_value(node)
        if text is None or not is_template(text):
            if text is not None and text.strip()[:1] == "[":
                return node
            return new_sequence([self._reads.rewrite(node, site)], node)
        rewritten = self._reads.rewrite(node, site)
        lowered = text_value(rewritten) or text
        expression = inner_expression(lowered)
        if expression is None or self._gives_list(lowered, expression):
            return rewritten
        return new_text(as_template(f"{_filtered(expression)} | as_list"), node)

    def _gives_list(self, text: str, expression: str) -> bool:
        """Whether the value is surely a list: then nothing hides that it may be read in pieces."""
        path = parse(text).path
        if path is None:
            return _LIST.search(expression) is not None
        if (path[0] == "workload" and len(path) == 2) or (
            len(path) == 1 and path[0] in self._survey.workload
        ):
            node = self._survey.workload_node
            return isinstance(node.get(path[-1]), Sequence) if node is not None else False
        step = self._survey.step_named(path[0])
        if step is None:
            return False
        if step.is_loop:
            return len(path) == 1
        return path[1:] == ("rows",) and bool(step.tasks) and step.tasks[-1].kind in SQL_KINDS


def _filtered(expression: str) -> str:
    """The expression so that a filter applies to all of it."""
    conjunct = as_conjunct(expression)
    operators = re.search(
        r"[-+*/~%<>=]|\b(?:and|or|not|in|is|if)\b", re.sub(r"\([^()]*\)|'[^']*'", "", expression)
    )
    return f"({expression})" if operators and conjunct == expression else conjunct


def with_reducers(step: SurveyedStep, spec: Node) -> Node:
    """The spec of a parallel loop: of what its iterations write without a reducer, the last counts."""
    if not isinstance(spec, Mapping):
        return spec
    own = spec.get("reduce")
    known = {key.removeprefix("ctx.") for key in own.entries} if isinstance(own, Mapping) else set[str]()
    added = [key for key in _parallel_writes(step) if key not in known]
    if not added:
        return spec
    reducers = [*entries_of(own), *(new_entry(key, node_of("last", spec)) for key in added)]
    return with_entry(without_keys(spec, "reduce"), new_entry("reduce", new_mapping(reducers, spec)))


def _parallel_writes(step: SurveyedStep) -> list[str]:
    """The keys of ctx (bare) and run that the iterations of a step write, in order."""
    keys: dict[str, None] = {}
    for task in step.tasks:
        for entry in entries_of(task.node.get("set")):
            if entry.key.startswith("ctx."):
                keys[entry.key.removeprefix("ctx.")] = None
            elif entry.key.startswith(("run.", "step.")):
                keys[f"run.{entry.key.split('.', 1)[1]}"] = None
    loop = step.node.get("loop")
    specs = [task.node.get("spec") for task in step.tasks]
    specs += [step.node.get("spec"), loop.get("spec") if isinstance(loop, Mapping) else None]
    for then in (then for spec in specs for rule in rules_of_spec(spec) for then in directives(rule)):
        for entry in entries_of(then.get("set")):
            if entry.key.startswith(("run.", "step.")):
                keys[f"run.{entry.key.split('.', 1)[1]}"] = None
            elif not entry.key.startswith("iter."):
                keys[entry.key.removeprefix("ctx.")] = None
    return list(keys)


class CursorSteps(NamedTuple):
    """The two steps of a cursor: one claims rows, the other works on them."""

    claim: Mapping
    work: Mapping


class CursorLowering:
    """Lowers one step with a cursor, whose other parts are canonical already."""

    def __init__(self, step: SurveyedStep, reads: NameReads, report: ProblemReporter) -> None:
        self._step = step
        self._reads = reads
        self._report = report
        self._reader = NodeReader(report)

    def lower(self, lowered: Mapping) -> CursorSteps | None:
        """None where there is no cursor to speak of, which is reported."""
        loop = self._step.node.get("loop")
        cursor = loop.get("cursor") if isinstance(loop, Mapping) else None
        cursor = self._reader.mapping(cursor, "`cursor`")
        if cursor is None or not isinstance(loop, Mapping):
            return None
        claim = cursor.entries.get("claim")
        if claim is None:
            near = next((key for key in cursor.entries if closest_words(key, ["claim"])), None)
            hint = f"did you mean it by `{near}`?" if near is not None else "write the SQL that claims rows"
            self._report("missing-key", cursor, "a cursor needs `claim`", hint)
            claim = new_entry("claim", new_text("SELECT 1", cursor))
            cursor = new_mapping([e for e in cursor if e.key in ("kind", "auth", "dsn", "database")], cursor)
        knobs = self._reader.mapping(loop.get("spec"), "the spec of a cursor") or new_mapping([], loop)
        name = f"{self._step.name}__rows"
        return CursorSteps(
            self._claim_step(lowered, cursor, claim, knobs, name),
            self._work_step(lowered, loop, knobs, name),
        )

    def _claim_step(
        self, lowered: Mapping, cursor: Mapping, claim: MappingEntry, knobs: Mapping, name: str
    ) -> Mapping:
        site = ReadSite(ReadPlace.INPUT, self._step, 0)
        frame = knobs.get("frame")
        limit = frame.get("max_rows") if isinstance(frame, Mapping) else None
        count = str(node_value(limit)) if limit is not None else "100"
        command = text_value(claim.value) or ""
        tool = [
            new_entry(entry.key, self._reads.rewrite(entry.value, site), entry)
            for entry in cursor
            if entry.key != "claim" and not _OURS.search(entry.key)
        ]
        # In an expression with more in it the number stands as it is; a template has its own braces.
        limited = new_text(_MAX_ROWS.sub(lambda _: count, command), claim.value)
        number = inner_expression(count) or count
        limited_inside = edit_node(
            limited, name_edits(lambda path, _: (1, number) if path[0] == "__frame_max_rows" else None)
        )
        tool.append(new_entry("command", self._reads.rewrite(limited_inside, site), claim))
        work = node_of(
            {"step": name, "when": as_template(_ROWS), "args": {"rows": "{{ event.result.rows }}"}}, cursor
        )
        router = lowered.get("next")
        inclusive = _is_inclusive(router)
        arcs = [_at_claim(_unless_rows(arc) if inclusive else arc) for arc in _arcs(router)]
        at = lowered.entries.get("next") or cursor
        new_router = new_mapping(
            [
                *(entry for entry in entries_of(router) if entry.key != "arcs"),
                new_entry("arcs", new_sequence([work, *arcs], at)),
            ],
            at,
        )
        moved = ("loop", "tool", "next", "args", "set", "spec")
        entries = [entry for entry in lowered if entry.key not in moved]
        entries += _gate(lowered.entries.get("spec"))
        entries.append(new_entry("tool", number_execution_ids(new_mapping(tool, cursor)), claim))
        return new_mapping([*entries, new_entry("next", new_router, at)], lowered)

    def _work_step(self, lowered: Mapping, loop: Mapping, knobs: Mapping, name: str) -> Mapping:
        frame = self._reader.mapping(knobs.get("frame"), "`frame`") or new_mapping([], loop)
        process = text_value(knobs.get("process")) or text_value(frame.get("process")) or "row"
        rows = "{{ [args.rows] }}" if process == "frame" else "{{ args.rows }}"
        self._check_keys(knobs, frame, process)
        spec = [entry for entry in knobs if entry.key == "policy"]
        if (flight := self._in_flight(knobs, frame)) != 1:
            spec += entries_of(node_of({"mode": "parallel", "max_in_flight": flight}, knobs))
            spec = list(entries_of(with_reducers(self._step, new_mapping(spec, knobs))))
        new_loop = [new_entry("in", new_text(rows, loop)), *(e for e in loop if e.key == "iterator")]
        if spec:
            new_loop.append(new_entry("spec", new_mapping(spec, knobs)))
        own = self._step.node
        again = node_of({"step": self._step.name, "when": "{{ event.name == 'loop.done' }}"}, own)
        copied = [
            _after_failure(arc) if _is_inclusive(lowered.get("next")) else arc
            for arc, source in zip(_arcs(lowered.get("next")), self._step.arcs, strict=False)
            # After rows that went well the next are claimed, whatever else would fire.
            if reads_event(source.get("when")) and not _only_after_success(source)
        ]
        at = lowered.entries.get("next") or own
        router = new_mapping([new_entry("arcs", new_sequence([again, *copied], at))], at)
        entries = [new_entry("step", new_text(name, lowered.entries["step"].value))]
        entries += [entry for entry in lowered if entry.key in ("tool", "set", "args")]
        entries += _without_gate(lowered.entries.get("spec"))
        entries += [new_entry("loop", new_mapping(new_loop, loop)), new_entry("next", router)]
        return new_mapping(entries, own)

    def _in_flight(self, knobs: Mapping, frame: Mapping) -> int | str:
        """How many iterations may run at a time, which may be an expression."""
        product, expressions = 1, list[str]()
        sources = (knobs.get("max_in_flight"), knobs.get("row_concurrency") or frame.get("row_concurrency"))
        for node, key in zip(sources, ("max_in_flight", "row_concurrency"), strict=True):
            if node is None:
                continue
            text = text_value(self._reads.rewrite(node, ReadSite(ReadPlace.LOOP, self._step)))
            if (expression := inner_expression(text) if text is not None else None) is not None:
                expressions.append(f"({expression} | int)")
            else:
                product *= self._reader.whole_number(node, f"`{key}`") or 1
        if not expressions:
            return product
        return as_template(" * ".join([*expressions, *([str(product)] if product != 1 else [])]))

    def _check_keys(self, knobs: Mapping, frame: Mapping, process: str) -> None:
        if process not in ("row", "frame"):
            node = knobs.get("process") or frame.get("process") or knobs
            self._report(
                "bad-value", node, f"`process` cannot be {describe_node(node)}", "one of `row`, `frame`"
            )
        known = [entry for entry in knobs if not _OURS.search(entry.key)]
        self._reader.check_keys(new_mapping(known, knobs), _CURSOR_KEYS, "the spec of a cursor")
        known = [entry for entry in frame if not _OURS.search(entry.key)]
        self._reader.check_keys(
            new_mapping(known, frame), ["max_rows", "row_concurrency", "process"], "`frame`"
        )


_GATE = ("admit", "join", "exec")
"""What the policy of a step says of its tokens: the step that claims has it."""


def _gate(spec: MappingEntry | None) -> list[MappingEntry]:
    policy = spec.value.get("policy") if spec is not None and isinstance(spec.value, Mapping) else None
    gate = [entry for entry in entries_of(policy) if entry.key in _GATE]
    if spec is None or policy is None or not gate:
        return []
    return [new_entry("spec", new_mapping([new_entry("policy", new_mapping(gate, policy))], spec), spec)]


def _without_gate(spec: MappingEntry | None) -> list[MappingEntry]:
    if spec is None or not isinstance(spec.value, Mapping):
        return [] if spec is None else [spec]
    entries = []
    for entry in spec.value:
        if entry.key == "policy" and isinstance(entry.value, Mapping):
            left = without_keys(entry.value, *_GATE)
            entries += [new_entry("policy", left, entry)] if left.entries else []
        else:
            entries.append(entry)
    return [new_entry("spec", new_mapping(entries, spec), spec)] if entries else []


def _only_after_success(arc: Mapping) -> bool:
    expression = inner_expression(text) if (text := text_value(arc.get("when"))) is not None else None
    return expression is not None and _SUCCEEDED.fullmatch(expression) is not None


def _at_claim(arc: Mapping) -> Mapping:
    """An arc of the step that claims, which is no loop."""
    when = arc.entries.get("when")
    text = text_value(when.value) if when is not None else None
    if when is None or text is None or not _LOOP_DONE.search(text):
        return arc
    guard = new_entry("when", new_text(_LOOP_DONE.sub(r"\1step.done\1", text), when.value), when)
    return new_mapping((guard if entry is when else entry for entry in arc), arc)


def _arcs(router: Node | None) -> list[Mapping]:
    arcs = items_of(router.get("arcs")) if isinstance(router, Mapping) else []
    return [arc for arc in arcs if isinstance(arc, Mapping)]


def _is_inclusive(router: Node | None) -> bool:
    spec = router.get("spec") if isinstance(router, Mapping) else None
    return isinstance(spec, Mapping) and text_value(spec.get("mode")) == "inclusive"


def _unless_rows(arc: Mapping) -> Mapping:
    """All arcs that hold fire: these only once there are no rows."""
    return _conjoined(arc, f"not ({_ROWS})")


def _after_failure(arc: Mapping) -> Mapping:
    return _conjoined(arc, _FAILURE)


def _conjoined(arc: Mapping, condition: str) -> Mapping:
    when = arc.entries.get("when")
    text = text_value(when.value) if when is not None else None
    expression = inner_expression(text) if text is not None else None
    if when is None or expression is None:
        return arc
    guard = new_text(as_template(f"{condition} and {as_conjunct(expression)}"), when.value)
    return new_mapping([*without_keys(arc, "when"), new_entry("when", guard, when)], arc)
