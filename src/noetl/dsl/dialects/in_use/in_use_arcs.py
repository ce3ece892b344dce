"""Routers in use: arcs that never fire after a failure unless they look at the event."""

from noetl.dsl.dialects.expression_text import (
    Edit,
    TemplateTokens,
    as_conjunct,
    as_template,
    edit_text,
    inner_expression,
)
from noetl.dsl.dialects.in_use.read_edits import RESULT_REFERENCES, NameReads, ReadPlace, ReadSite
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of
from noetl.dsl.dialects.in_use.survey import DocumentSurvey, SurveyedStep, reads_event
from noetl.dsl.dialects.nodes import is_null, new_entry, new_mapping, new_sequence, new_text, text_value
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, node_of
from noetl.expr.language.guard import is_template
from noetl.expr.runtime.scope import NAMESPACES

SUCCEEDED = "event.name != 'step.failed'"


class ArcLowering:
    """Lowers the routers of one document."""

    def __init__(self, survey: DocumentSurvey, reads: NameReads) -> None:
        self._survey = survey
        self._reads = reads

    def lower_router(self, step: SurveyedStep, router: Node) -> Node:
        if not isinstance(router, Mapping):
            return router
        entries = []
        for entry in router:
            if entry.key == "arcs" and items_of(entry.value):
                arcs = [
                    self._arc(arc, step) if isinstance(arc, Mapping) else arc for arc in items_of(entry.value)
                ]
                entries.append(new_entry("arcs", new_sequence(arcs, entry.value), entry))
            else:
                entries.append(entry)
        return new_mapping(entries, router)

    def lower_writes(self, step: SurveyedStep, node: Node) -> Node:
        """A step's `set`; keys without a scope are kept for later steps."""
        if not isinstance(node, Mapping):
            return node
        site = ReadSite(ReadPlace.ROUTING_VALUE, step)
        return new_mapping(
            (
                new_entry(_step_key(entry.key), self._reads.rewrite(entry.value, site), entry)
                for entry in node
            ),
            node,
        )

    def _arc(self, arc: Mapping, step: SurveyedStep) -> Mapping:
        site = ReadSite(ReadPlace.ROUTING_VALUE, step)
        entries: list[MappingEntry] = []
        for entry in arc:
            match entry.key:
                case "step":
                    entries.append(new_entry("step", self.target(entry.value), entry))
                case "when" | "cond":
                    pass
                case "set" if isinstance(entry.value, Mapping):
                    entries.append(new_entry("set", self._arc_writes(entry.value, site), entry))
                case "args":
                    entries.append(new_entry("args", self._reads.rewrite(entry.value, site), entry))
                case _:
                    entries.append(entry)
        entries.insert(1 if entries and entries[0].key == "step" else 0, self._guard(arc, step))
        return new_mapping(entries, arc)

    def _arc_writes(self, node: Mapping, site: ReadSite) -> Mapping:
        return new_mapping(
            (
                new_entry(
                    f"run.{entry.key.removeprefix('step.')}" if entry.key.startswith("step.") else entry.key,
                    self._reads.rewrite(entry.value, site),
                    entry,
                )
                for entry in node
            ),
            node,
        )

    def target(self, node: Node) -> Node:
        """The step that an arc leads to, by the name it has now."""
        name = text_value(node)
        known = self._survey.canonical_names.get(name) if name is not None else None
        return node if known is None or known == name else new_text(known, node)

    def _guard(self, arc: Mapping, step: SurveyedStep) -> MappingEntry:
        if (condition := arc.entries.get("cond")) is not None and "when" not in arc:
            return new_entry("when", self._condition(condition.value, step), condition)
        entry = arc.entries.get("when")
        if entry is None or is_null(entry.value):
            return new_entry("when", new_text(as_template(SUCCEEDED), arc.entries.get("step") or arc))
        site = ReadSite(ReadPlace.ROUTING, step)
        return new_entry("when", self._succeeded(entry.value, site), entry)

    def _succeeded(self, when: Node, site: ReadSite) -> Node:
        """The guard, with what keeps it shut after a failure unless it reads the event itself."""
        if isinstance(when, Scalar) and when.value is True:
            return new_text(as_template(SUCCEEDED), when)
        rewritten = self._reads.rewrite(when, site)
        text = text_value(rewritten)
        if text is None or reads_event(when):
            return rewritten
        expression = inner_expression(text)
        if expression is None:
            return rewritten
        if expression.lower() == "true":
            return new_text(as_template(SUCCEEDED), when)
        return new_text(as_template(f"{SUCCEEDED} and {as_conjunct(expression)}"), when)

    def _condition(self, node: Node, step: SurveyedStep) -> Node:
        """`cond: exit_code == 0`: a guard over the result, whose keys stand bare."""
        text = text_value(node)
        if text is None:
            return node
        template = text if is_template(text) else as_template(text)

        def keys(tokens: TemplateTokens) -> list[Edit]:
            return [
                Edit(use.offset, use.offset + len(use.path[0]), f"event.result.{use.path[0]}")
                for use in tokens.uses
                if use.path[0] not in NAMESPACES and use.path[0] != "output" and self._is_key(use.path[0])
            ]

        return self._reads.rewrite(
            new_text(edit_text(template, keys), node), ReadSite(ReadPlace.ROUTING, step)
        )

    def _is_key(self, name: str) -> bool:
        """Whether a bare name in a `cond` can be meant as a key of the result."""
        return name not in self._survey.workload and name not in self._survey.canonical_names


def keep_references(router: Node, step: SurveyedStep) -> Node:
    """The router of a step, whose arcs keep in ctx where its large result lies."""
    if not isinstance(router, Mapping):
        return router
    arcs: list[Node] = []
    for arc in items_of(router.get("arcs")):
        if isinstance(arc, Mapping):
            remaining = new_entry(
                f"ctx.{RESULT_REFERENCES}.{step.name}", node_of("{{ event.result_ref }}", arc), arc
            )
            arcs.append(_with_set(arc, remaining))
        else:
            arcs.append(arc)
    return new_mapping(
        (
            new_entry("arcs", new_sequence(arcs, entry.value), entry) if entry.key == "arcs" else entry
            for entry in router
        ),
        router,
    )


def bring_results(router: Node, targets: set[str]) -> Node:
    """The router, whose arcs to some steps bring the result of this one as the argument `result`."""
    if not isinstance(router, Mapping):
        return router
    arcs: list[Node] = []
    for arc in items_of(router.get("arcs")):
        if not isinstance(arc, Mapping) or text_value(arc.get("step")) not in targets:
            arcs.append(arc)
            continue
        args = [new_entry("result", node_of("{{ event.result }}", arc)), *entries_of(arc.get("args"))]
        entries = [entry for entry in arc if entry.key != "args"]
        arcs.append(new_mapping([*entries, new_entry("args", new_mapping(args, arc))], arc))
    return new_mapping(
        (
            new_entry("arcs", new_sequence(arcs, entry.value), entry) if entry.key == "arcs" else entry
            for entry in router
        ),
        router,
    )


def _with_set(arc: Mapping, added: MappingEntry) -> Mapping:
    writes = new_mapping([*entries_of(arc.get("set")), added], arc)
    at: Located = arc.entries.get("set") or arc
    return new_mapping([*(entry for entry in arc if entry.key != "set"), new_entry("set", writes, at)], arc)


def _step_key(key: str) -> str:
    if key.startswith("step."):
        return f"run.{key.removeprefix('step.')}"
    return key if key.startswith(("ctx.", "iter.", "run.")) else f"ctx.{key}"
