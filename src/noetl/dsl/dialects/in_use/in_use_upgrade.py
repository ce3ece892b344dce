"""A document as the language is in use, as a canonical document."""

from noetl.dsl.dialects.expression_text import edit_node, member_expression, name_edits
from noetl.dsl.dialects.in_use.composite_tasks import composite_definitions
from noetl.dsl.dialects.in_use.harmless import declared_dialect, rewrite_harmless, with_spec
from noetl.dsl.dialects.in_use.in_use_arcs import ArcLowering, bring_results, keep_references
from noetl.dsl.dialects.in_use.in_use_keychain import KeychainLowering
from noetl.dsl.dialects.in_use.in_use_loops import CursorLowering, LoopLowering, with_reducers
from noetl.dsl.dialects.in_use.in_use_pipelines import PipelineLowering, publish_results
from noetl.dsl.dialects.in_use.in_use_rules import (
    RuleLowering,
)
from noetl.dsl.dialects.in_use.read_edits import NameReads, ReadPlace, ReadSite
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of, labelled_entry, recognise
from noetl.dsl.dialects.in_use.survey import DocumentSurvey, SurveyedStep
from noetl.dsl.dialects.nodes import (
    is_null,
    new_entry,
    new_mapping,
    new_sequence,
    new_text,
    text_value,
    with_entry,
    without_keys,
)
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Sequence, node_of
from noetl.expr.use import Path, Use


def upgrade_in_use(root: Mapping, report: ProblemReporter) -> Mapping:
    """The canonical document. What was reported has a harmless value there, so nobody hears of it twice."""
    return InUseUpgrade(rewrite_harmless(root, report, nested=lambda inner: inner), report).document()


class InUseUpgrade:
    """One document: what a spelling becomes depends on who reads, writes and leads where."""

    def __init__(self, root: Mapping, report: ProblemReporter) -> None:
        self._root = _with_step_loops(root)
        self._report = report
        self._survey = DocumentSurvey(self._root)
        self._reads = NameReads(self._survey, report)
        self._rules = RuleLowering(self._reads, report)
        self._arcs = ArcLowering(self._survey, self._reads)
        self._loops = LoopLowering(self._survey, self._reads, report)
        self._keychain = KeychainLowering(report)
        self._meeting = self._survey.graph.meeting_steps()
        executor = self._root.get("executor")
        self._definitions = composite_definitions(self._root.get("workbook"))
        self._pipelines = PipelineLowering(
            self._survey,
            self._reads,
            self._rules,
            executor_spec=executor.get("spec") if isinstance(executor, Mapping) else None,
            definitions=self._definitions,
            nested=self._nested,
            report=report,
        )
        for step in self._survey.steps.values():
            self._pipelines.expand(step)

    def document(self) -> Mapping:
        entries: list[MappingEntry] = []
        for entry in self._root:
            match entry.key:
                case "workflow" if isinstance(entry.value, Sequence):
                    entries.append(new_entry("workflow", self._workflow(entry.value), entry))
                case "keychain" if isinstance(entry.value, Sequence):
                    entries.append(
                        new_entry("keychain", self._keychain.lower(entry.value, self._root), entry)
                    )
                case "executor" if isinstance(entry.value, Mapping):
                    entries.append(new_entry("executor", self._executor(entry.value), entry))
                case "workbook":
                    workbook = self._workbook(entry.value)
                    if not self._definitions or not _is_without_items(workbook):
                        entries.append(new_entry("workbook", workbook, entry))
                # Of a dialect that there is none of the reader says so.
                case "metadata" if isinstance(entry.value, Mapping) and _names_dialect(entry.value):
                    declared = new_entry("dialect", node_of("canonical", entry.value))
                    entries.append(new_entry("metadata", with_entry(entry.value, declared), entry))
                case "tracing" | "spec":
                    self._report("no-effect", entry, f"`{entry.key}` has no effect", "remove it")
                case _:
                    entries.append(entry)
        document = new_mapping(entries, self._root)
        if not self._keychain.fields:
            return document
        reads_keychain = ("keychain", "workbook", "workflow", "executor")
        return new_mapping(
            (
                new_entry(e.key, edit_node(e.value, name_edits(self._keychain_field)), e)
                if e.key in reads_keychain
                else e
                for e in document
            ),
            document,
        )

    def _keychain_field(self, path: Path, _use: Use) -> tuple[int, str] | None:
        if path[0] != "keychain" or len(path) < 3:
            return None
        name = self._keychain.fields.get(path[1], {}).get(path[2])
        return None if name is None else (3, f"{member_expression('keychain', name)}.value")

    def _executor(self, executor: Mapping) -> Mapping:
        entries = []
        for entry in executor:
            if entry.key == "spec" and isinstance(entry.value, Mapping):
                spec = self._rules.lower_scope_spec(entry.value, ReadSite(ReadPlace.RULE))
                entries.append(new_entry("spec", self._executor_values(spec), entry))
            else:
                entries.append(entry)
        return new_mapping(entries, executor)

    def _executor_values(self, spec: Node) -> Node:
        entries = []
        for entry in entries_of(spec):
            if entry.key in ("entry_step", "final_step"):
                entries.append(new_entry(entry.key, self._arcs.target(entry.value), entry))
            elif entry.key == "output":
                value = self._reads.rewrite(entry.value, ReadSite(ReadPlace.OTHER))
                entries.append(new_entry(entry.key, value, entry))
            else:
                entries.append(entry)
        return new_mapping(entries, spec)

    def _workbook(self, node: Node) -> Node:
        if isinstance(node, Sequence):
            return new_sequence((self._definition(item) for item in self._single(node.items)), node)
        tasks = node.get("tasks") if isinstance(node, Mapping) else None
        if not isinstance(node, Mapping) or tasks is None:
            return node
        if isinstance(tasks, Mapping):
            named = (
                new_entry(entry.key, self._definition(entry.value), entry)
                for entry in tasks
                if entry.key not in self._definitions
            )
            return new_mapping([new_entry("tasks", new_mapping(named, tasks), node.entries["tasks"])], node)
        lowered = new_sequence((self._definition(item) for item in self._single(items_of(tasks))), tasks)
        return new_mapping([new_entry("tasks", lowered, node.entries["tasks"])], node)

    def _single(self, definitions: list[Node]) -> list[Node]:
        """Those that stand for one task; the others are where they are used."""
        composite = self._definitions.values()
        return [node for node in definitions if not any(node is other for other in composite)]

    def _nested(self, document: Mapping) -> Mapping:
        """A playbook inside of a task: of this dialect, too, unless it says otherwise."""
        declared = declared_dialect(document)
        if declared == "in_use" or (declared is None and recognise(document).is_in_use):
            return upgrade_in_use(document, self._report)
        return document if declared not in (None, "canonical") else rewrite_harmless(document, self._report)

    def _definition(self, node: Node) -> Node:
        if not isinstance(node, Mapping):
            return node
        label = labelled_entry(node)
        body = label.value if label is not None and isinstance(label.value, Mapping) else node
        lowered = self._pipelines.lower_definition(body)
        return lowered if label is None else new_mapping([new_entry(label.key, lowered, label)], node)

    def _workflow(self, workflow: Sequence) -> Sequence:
        lowered: list[tuple[SurveyedStep | None, Node]] = []
        seen: set[int] = set()
        for item in workflow.items:
            name = text_value(item.get("step")) if isinstance(item, Mapping) else None
            step = self._survey.step_named(name) if name is not None else None
            # A second step of one name is left for the reader, which refuses it.
            if not isinstance(item, Mapping) or step is None or step.node is not item or id(item) in seen:
                lowered.append((None, item))
                continue
            seen.add(id(item))
            lowered.append((step, self._step(step)))
        steps: list[Node] = []
        # Only now is known what others read of each step.
        for step, node in lowered:
            if step is None or not isinstance(node, Mapping):
                steps.append(node)
                continue
            node = self._published(step, node)  # noqa: PLW2901 - the step with what others read of it
            pair = CursorLowering(step, self._reads, self._report).lower(node) if step.is_cursor else None
            steps += [node] if pair is None else [pair.claim, pair.work]
        return new_sequence(steps, workflow)

    def _step(self, step: SurveyedStep) -> Mapping:
        node, step_input = step.node, step.node.entries.get("input")
        values = (
            step_input.value if step_input is not None and isinstance(step_input.value, Mapping) else None
        )
        per_iteration = values if step.is_loop else None
        entries: list[MappingEntry] = []
        for entry in node:
            match entry.key:
                case "step":
                    entries.append(new_entry("step", self._arcs.target(entry.value), entry))
                    if step.name != step.source_name and "desc" not in node:
                        entries.append(new_entry("desc", new_text(step.source_name, entry.value), entry))
                case "input" | "args":
                    if per_iteration is None or entry.key == "args":
                        value = self._reads.rewrite(entry.value, ReadSite(ReadPlace.STEP_INPUT, step))
                        entries.append(new_entry("args", value, entry))
                case "set":
                    entries.append(new_entry("set", self._arcs.lower_writes(step, entry.value), entry))
                case "loop" if isinstance(entry.value, Mapping):
                    entries.append(new_entry("loop", self._loop(step, entry.value), entry))
                case "spec":
                    spec = self._rules.lower_scope_spec(entry.value, ReadSite(ReadPlace.RULE, step))
                    entries.append(new_entry("spec", spec, entry))
                case "tool":
                    pipeline = self._pipelines.lower(step, entry.value, per_iteration)
                    entries.append(new_entry("tool", pipeline, entry))
                case "next":
                    entries.append(new_entry("next", self._arcs.lower_router(step, entry.value), entry))
                case _:
                    entries.append(entry)
        if "tool" not in node and "next" not in node:
            entries.append(new_entry("tool", node_of({"kind": "noop"}, node)))
        lowered = new_mapping(entries, node)
        if step.name in self._meeting and not _has_join(lowered):
            join = node_of({"policy": {"join": "all"}}, node.entries["step"])
            lowered = with_spec(lowered, join, node.entries["step"]) if isinstance(join, Mapping) else lowered
        return lowered

    def _loop(self, step: SurveyedStep, loop: Mapping) -> Mapping:
        if step.is_cursor:
            return loop
        lowered = self._loops.lower_loop(step, loop)
        spec = lowered.get("spec")
        if not isinstance(spec, Mapping):
            return lowered
        rules = self._rules.lower_scope_spec(spec, ReadSite(ReadPlace.RULE, step))
        if text_value(spec.get("mode")) == "parallel":
            rules = with_reducers(step, rules)
        return new_mapping(
            (new_entry("spec", rules, entry) if entry.key == "spec" else entry for entry in lowered), lowered
        )

    def _published(self, step: SurveyedStep, node: Mapping) -> Mapping:
        """The step with what others read of it: results of its tasks, and where its own lies."""
        entries: list[MappingEntry] = []
        for entry in node:
            value = entry.value
            if entry.key == "next":
                if step.keeps_reference:
                    value = keep_references(value, step)
                value = bring_results(value, self._reads.uses_step_before)
            elif entry.key == "tool" and (step.kept_results or step.run_results):
                value = publish_results(step, value)
            entries.append(entry if value is entry.value else new_entry(entry.key, value, entry))
        return new_mapping(entries, node)


def _names_dialect(metadata: Mapping) -> bool:
    """Whether its dialect is one that there is, or none is said."""
    node = metadata.get("dialect")
    return is_null(node) or text_value(node) in ("canonical", "draft", "in_use")


def _is_without_items(workbook: Node) -> bool:
    tasks = workbook.get("tasks") if isinstance(workbook, Mapping) else workbook
    return not (tasks.entries if isinstance(tasks, Mapping) else items_of(tasks))


def _has_join(step: Mapping) -> bool:
    spec = step.get("spec")
    policy = spec.get("policy") if isinstance(spec, Mapping) else None
    return isinstance(policy, Mapping) and "join" in policy


def _with_step_loops(root: Mapping) -> Mapping:
    """The document, in which a python task's own `iterator: {items, item}` is the loop of its step."""
    workflow = root.get("workflow")
    if not isinstance(workflow, Sequence):
        return root
    steps = [_with_step_loop(item) if isinstance(item, Mapping) else item for item in workflow.items]
    if all(step is item for step, item in zip(steps, workflow.items, strict=True)):
        return root
    return new_mapping(
        (
            new_entry("workflow", new_sequence(steps, workflow), entry) if entry.key == "workflow" else entry
            for entry in root
        ),
        root,
    )


def _with_step_loop(step: Mapping) -> Mapping:
    tool = step.get("tool")
    tasks = [tool] if isinstance(tool, Mapping) else items_of(tool)
    if "loop" in step or len(tasks) != 1 or not isinstance(tasks[0], Mapping):
        return step
    label = labelled_entry(tasks[0])
    body = label.value if label is not None and isinstance(label.value, Mapping) else tasks[0]
    entry = body.entries.get("iterator")
    if text_value(body.get("kind")) != "python" or entry is None or not isinstance(entry.value, Mapping):
        return step
    names = {"items": "in", "item": "iterator"}
    loop = new_mapping((new_entry(names.get(e.key, e.key), e.value, e) for e in entry.value), entry.value)
    task = without_keys(body, "iterator")
    new_tool: Node = task if label is None else new_mapping([new_entry(label.key, task, label)], tasks[0])
    if isinstance(tool, Sequence):
        new_tool = new_sequence([new_tool], tool)
    entries = [new_entry("tool", new_tool, e) if e.key == "tool" else e for e in step]
    return new_mapping([*entries, new_entry("loop", loop, entry)], step)
