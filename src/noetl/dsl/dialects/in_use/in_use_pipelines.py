"""Pipelines in use: every task with all that it stands for, in canonical words."""

from collections.abc import Callable

from noetl.dsl.dialects.in_use.composite_tasks import expand_task
from noetl.dsl.dialects.in_use.in_use_rules import (
    InheritedRules,
    RuleLowering,
    inherited_rules,
    without_policy,
)
from noetl.dsl.dialects.in_use.in_use_tasks import TaskLowering
from noetl.dsl.dialects.in_use.read_edits import TASK_RESULTS, NameReads, ReadPlace, ReadSite
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of, labelled_entry
from noetl.dsl.dialects.in_use.survey import DocumentSurvey, SurveyedStep, given_inputs
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text, text_value, without_keys
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, Node, Sequence, node_of


class PipelineLowering:
    """Lowers the pipelines of one document, and the tasks of its workbook.

    `definitions` are those of the workbook that stand for several tasks, `nested` lowers a playbook inside
    of a task.
    """

    def __init__(
        self,
        survey: DocumentSurvey,
        reads: NameReads,
        rules: RuleLowering,
        *,
        executor_spec: Node | None,
        definitions: dict[str, Mapping],
        nested: Callable[[Mapping], Mapping],
        report: ProblemReporter,
    ) -> None:
        self._survey = survey
        self._reads = reads
        self._rules = rules
        self._tasks = TaskLowering(survey, reads, report)
        self._executor_spec = executor_spec
        self._definitions = definitions
        self._nested = nested
        self._report = report

    def expand(self, step: SurveyedStep) -> None:
        """Notes what each task of a step stands for. Whoever jumps to it jumps to the first of those."""
        for task in step.tasks:
            parts = expand_task(task.node, task.label, self._definitions, self._report)
            task.parts = parts
            task.inputs = task.inputs.union(*(given_inputs(part) for _, part in parts))
            step.first_parts[task.label] = parts[0][0]
            step.names.update(name for name, _ in parts)

    def lower(self, step: SurveyedStep, tool: Node, per_iteration: Mapping | None) -> Node:
        """The pipeline of a step; `per_iteration` is what a loop gives to each of its tasks."""
        inherited = self._inherited(step)
        tasks: list[Node] = []
        surveyed = iter(enumerate(step.tasks))
        for item in [tool] if isinstance(tool, Mapping) else items_of(tool):
            if not isinstance(item, Mapping):
                tasks.append(item)
                continue
            index, task = next(surveyed)
            site = ReadSite(ReadPlace.INPUT, step, index)
            for number, (part_name, part) in enumerate(task.parts[:-1]):
                named = [new_entry("name", new_text(part_name, part)), *without_keys(part, "name")]
                at = site._replace(follows_its_own=number > 0)
                tasks.append(self._task(new_mapping(named, part), at, per_iteration, None))
            own, label = task.parts[-1][1], labelled_entry(item)
            if own is not task.node and "name" in task.node and "name" not in own:
                own = new_mapping([task.node.entries["name"], *own], own)
            at = site._replace(follows_its_own=len(task.parts) > 1)
            lowered = self._task(own, at, per_iteration, inherited)
            if label is not None:
                lowered = new_mapping([new_entry(label.key, lowered, label)], item)
            elif len(task.parts) > 1 and "name" not in lowered:
                lowered = new_mapping([new_entry("name", new_text(task.label, item)), *lowered], item)
            tasks.append(lowered)
        if isinstance(tool, Mapping) and len(tasks) == 1:
            return tasks[0]
        return new_sequence(tasks, tool) if isinstance(tool, Mapping | Sequence) else tool

    def lower_definition(self, task: Mapping) -> Mapping:
        """A definition of the workbook that is one task."""
        label = text_value(task.get("name")) or ""
        (_, own), *_ = expand_task(task, label, {}, self._report)
        if own is not task and "name" in task and "name" not in own:
            own = new_mapping([task.entries["name"], *own], own)
        return self._task(own, ReadSite(ReadPlace.INPUT), None, None)

    def _inherited(self, step: SurveyedStep) -> InheritedRules | None:
        loop = step.node.get("loop")
        in_step = ReadSite(ReadPlace.RULE, step)
        return inherited_rules(
            (
                (loop.get("spec") if isinstance(loop, Mapping) else None, in_step),
                (step.node.get("spec"), in_step),
                (self._executor_spec, ReadSite(ReadPlace.RULE)),
            )
        )

    def _task(
        self, task: Mapping, site: ReadSite, per_iteration: Mapping | None, inherited: InheritedRules | None
    ) -> Mapping:
        policy, remaining = self._rules.lower_task_policy(task, site._replace(role=ReadPlace.RULE), inherited)
        lowered = self._tasks.lower(without_keys(task, "retry"), site, per_iteration)
        document = lowered.get("document")
        if isinstance(document, Mapping):
            inner = self._nested(document)
            lowered = new_mapping(
                (new_entry("document", inner, e) if e.key == "document" else e for e in lowered), lowered
            )
        entries = [entry for entry in lowered if entry.key not in ("set", "spec")]
        if remaining:
            at = task.entries["set"]
            entries.append(new_entry("set", new_mapping(remaining, at.value), at))
        elif "set" in task and not isinstance(task.get("set"), Mapping):
            entries.append(task.entries["set"])
        spec = lowered.get("spec")
        if isinstance(spec, Mapping) or spec is None:
            rewritten = [
                new_entry(entry.key, self._reads.rewrite(entry.value, site), entry)
                for entry in without_policy(spec)
            ]
            if policy is not None:
                rewritten.append(new_entry("policy", policy))
            elif isinstance(spec, Mapping) and "policy" in spec:
                rewritten.append(spec.entries["policy"])
            if rewritten:
                at_spec = lowered.entries.get("spec") or rewritten[0]
                entries.append(new_entry("spec", new_mapping(rewritten, at_spec), at_spec))
        else:
            entries.append(lowered.entries["spec"])
        return new_mapping(entries, task)


def publish_results(step: SurveyedStep, tool: Node) -> Node:
    """The pipeline, whose tasks that others read write their results to `ctx` and `run`."""
    tasks: list[Node] = []
    for index, item in enumerate(items_of(tool)):
        label = labelled_entry(item) if isinstance(item, Mapping) else None
        body = label.value if label is not None else item
        if not isinstance(item, Mapping) or not isinstance(body, Mapping):
            tasks.append(item)
            continue
        name = label.key if label is not None else text_value(item.get("name")) or f"task_{index}"
        places = [f"ctx.{TASK_RESULTS}.{step.name}.{name}"] if name in step.kept_results else []
        places += [f"run.{name}"] if name in step.run_results else []
        if not places:
            tasks.append(item)
            continue
        result = node_of("{{ outcome.result }}", body)
        writes = [*entries_of(body.get("set")), *(new_entry(path, result) for path in places)]
        entry = new_entry("set", new_mapping(writes, body), body.entries.get("set"))
        changed = new_mapping([*without_keys(body, "set"), entry], body)
        tasks.append(changed if label is None else new_mapping([new_entry(label.key, changed, label)], item))
    return new_sequence(tasks, tool) if isinstance(tool, Sequence) else tool
