"""What the names in expressions of a document in use stand for, place by place."""

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from noetl.dsl.dialects.constant_comparison import ConstantComparison, find_comparison
from noetl.dsl.dialects.expression_text import (
    Edit,
    TemplateTokens,
    as_operand,
    edit_node,
    member_expression,
    scalars_of,
)
from noetl.dsl.dialects.in_use.outcome_reads import body_path, is_after_task, outcome_edit, routing_edit
from noetl.dsl.dialects.in_use.survey import DocumentSurvey, SurveyedStep
from noetl.dsl.document.shape_check import ProblemReporter, did_you_mean
from noetl.dsl.document.source import Node, Scalar
from noetl.expr.language.guard import is_template
from noetl.expr.runtime.scope import NAMESPACES
from noetl.expr.use import Use

TASK_RESULTS = "task_results"
"""Where in ctx the results lie that later steps read of tasks which are not the last of their step."""
RESULT_REFERENCES = "result_refs"
"""Where in ctx the references to large results lie."""

_JOB = frozenset({"uuid", "id", "execution_id"})
_POSITIONS = {"loop_index": "iter.index", "_index": "iter.index", "_total": "iter.count"}
_REFERENCE_PARTS = {"_ref": "", "_store": ".store", "_preview": ".preview"}
_LIKENESS = 0.8
"""How close a name that nothing sets must be to a known one: a letter more, less or other of five."""
_SHORTEST_NAME = 3
_MOST_NAMES = 100
"""How many names that nothing sets are compared with those that there are, which takes time."""
_ALWAYS_THERE = frozenset({"signals", TASK_RESULTS, RESULT_REFERENCES})


class ReadPlace(enum.Enum):
    """Where an expression stands; guards take what is absent, values do not."""

    INPUT = "input of a task"
    STEP_INPUT = "input of a step"
    LOOP = "collection of a loop"
    TASK_SET = "set of a task"
    RULE = "guard of a rule"
    RULE_VALUE = "value in a rule"
    ROUTING = "guard of an arc"
    ROUTING_VALUE = "value on an arc or in a step's set"
    CONDITION = "other guard"
    OTHER = "elsewhere"


_VALUES = frozenset({ReadPlace.INPUT, ReadPlace.STEP_INPUT, ReadPlace.LOOP, ReadPlace.ROUTING_VALUE})
_ROUTING = frozenset({ReadPlace.ROUTING, ReadPlace.ROUTING_VALUE})
_PIPELINE = frozenset({ReadPlace.INPUT, ReadPlace.TASK_SET, ReadPlace.RULE, ReadPlace.RULE_VALUE})


class ReadSite(NamedTuple):
    """One place: its step, and in a pipeline the index of its task."""

    role: ReadPlace
    step: SurveyedStep | None = None
    task: int = -1
    follows_its_own: bool = False
    """Whether a task was put before this one, so that the result before is not that of the task before."""
    has_inputs: bool = False
    """Whether a task's own inputs are at hand, which do not see each other."""

    @property
    def kind(self) -> str:
        """The kind of the task whose result is at hand here."""
        if self.step is None:
            return ""
        if self.role in _ROUTING:
            return self.step.result_kind
        # Of the rules of a whole step the last one: tasks for which they mean something else get their own.
        tasks = self.step.tasks
        return tasks[self.task].kind if tasks and self.task < len(tasks) else ""

    @property
    def is_last(self) -> bool:
        return self.step is not None and self.task == len(self.step.tasks) - 1


class PathTokens(NamedTuple):
    """A path as it stands in a text: its keys, and the offset where each ends."""

    template: TemplateTokens
    use: Use
    keys: tuple[str, ...]
    ends: tuple[int, ...]

    def replaced(self, count: int, text: str) -> Edit:
        """The first `count` keys replaced; the text is an operand."""
        end = self.ends[count - 1]
        return Edit(self.use.offset, end, self.template.operand_text(text, self.use, end))

    def comparison(self, count: int) -> ConstantComparison | None:
        """The comparison of the first `count` keys with constants; None if that is not all there is to it."""
        return find_comparison(self.template, self.use, self.ends[count - 1])

    def is_whole(self) -> bool:
        """Whether nothing but this path stands between the braces."""
        return self.template.stands_alone(self.use, self.ends[-1])

    def goes_on(self) -> bool:
        """Whether a call or another subscript follows."""
        last = self.template.index_before(self.ends[-1])
        return self.template.token(last + 1).type in ("dot", "lbracket", "lparen")


class NameReads:
    """Rewrites the reads of one document."""

    def __init__(self, survey: DocumentSurvey, report: ProblemReporter) -> None:
        self._survey = survey
        self._report = report
        self._hints: dict[str, str] = {}
        self._misspelt: list[tuple[str, Use]] = []
        """Texts with a name in them that is null, and close to one that is not."""
        self.uses_step_before: set[str] = set()
        """Steps whose tokens must bring the result of the step before: several may be that."""

    def rewrite(self, node: Node, site: ReadSite) -> Node:
        """The value with its expressions rewritten; parts that do not change are shared."""
        if isinstance(node, Scalar) and (not isinstance(node.value, str) or not is_template(node.value)):
            return node
        rewritten = edit_node(node, lambda template: self._edits(template, site), concerns=self._concerns)
        if self._misspelt:
            self._report_misspelt(node)
        return rewritten

    def _report_misspelt(self, node: Node) -> None:
        for scalar in scalars_of(node):
            for text, use in self._misspelt:
                if scalar.value == text:
                    name = use.path[0]
                    message = f"nothing sets `{name}`: it is null here"
                    self._report("unset-name", _position_of(scalar, use.offset), message, self._hint(name))
        self._misspelt.clear()

    def _hint(self, name: str) -> str:
        """The name that one which nothing sets was probably meant for; empty where there is none."""
        if name not in self._hints:
            if len(name) < _SHORTEST_NAME or len(self._hints) == _MOST_NAMES:
                return ""
            known = {"output", *NAMESPACES, *self._survey.names, *self._survey.canonical_names}
            self._hints[name] = did_you_mean(name, sorted(known), _LIKENESS)
        return self._hints[name]

    def _concerns(self, use: Use) -> bool:
        """Whether a name may need a look. Most do not, and taking a text apart costs like parsing it."""
        name = use.path[0]
        if name == "workload":
            return not use.optional and len(use.path) > 1 and use.path[1] not in self._survey.workload
        return name in ("ctx", "steps") or (name not in NAMESPACES and name not in self._survey.workload)

    def _edits(self, template: TemplateTokens, site: ReadSite) -> Iterator[Edit]:
        for use in template.uses:
            keys, ends = zip(*template.path_ends(use), strict=True)
            edit = self._edit(PathTokens(template, use, keys, ends), site)
            if edit is not None:
                yield edit

    def _edit(self, path: PathTokens, site: ReadSite) -> Edit | None:
        name, keys = path.keys[0], path.keys
        if name in NAMESPACES:
            return self._namespace_edit(path, site)
        is_set = self._is_set(name, site)
        if name == "output" and not is_set:
            return self._output_edit(path, site)
        if name == "job" and len(keys) > 1 and keys[1] in _JOB and not is_set:
            return path.replaced(2, "execution_id")
        if name in _POSITIONS and site.step is not None and site.step.is_loop and site.role in _PIPELINE:
            return path.replaced(1, _POSITIONS[name])
        step = self._survey.step_named(name)
        if step is not None and not self._is_hidden(name, step, site):
            return self._step_edit(path, 1, step, site)
        if name == "result" and not is_set:
            before = self._result_before(site)
            return None if before is None else path.replaced(1, before)
        if is_set or (name in self._survey.ctx_writers and self._is_written(name, site)):
            return None
        edit = self._absent(path, 0, "", site)
        if edit is not None and name not in self._survey.names and self._hint(name):
            self._misspelt.append((path.template.text, path.use))
        return edit

    def _is_set(self, name: str, site: ReadSite) -> bool:
        """Whether a bare name stands for something in a place, the results of steps and ctx excepted."""
        step, survey = site.step, self._survey
        if step is None:
            return name in survey.names or name in survey.canonical_names
        if name in survey.workload or name in step.names:
            return True
        if name in step.inputs and site.role is not ReadPlace.STEP_INPUT:
            return True
        if site.role not in _PIPELINE or (site.role is ReadPlace.INPUT and not site.has_inputs):
            return False
        tasks = step.tasks[site.task : site.task + 1] if site.task >= 0 else step.tasks
        return any(name in task.inputs for task in tasks)

    def _is_written(self, name: str, site: ReadSite) -> bool:
        """Whether a step that writes a name to ctx has surely run when it is read."""
        reader = site.step.name if site.step is not None else ""
        return any(
            writer == reader or self._survey.graph.surely_done(writer, reader)
            for writer in self._survey.ctx_writers[name]
        )

    def _namespace_edit(self, path: PathTokens, site: ReadSite) -> Edit | None:
        keys = path.keys
        if len(keys) < 2:
            return None
        if keys[0] == "steps" and (name := self._survey.canonical_names.get(keys[1])) not in (None, keys[1]):
            return path.replaced(2, member_expression("steps", name or ""))
        if keys[0] == "workload" and keys[1] not in self._survey.workload:
            return self._absent(path, 0, "", site)
        if keys[0] != "ctx" or keys[1] in _ALWAYS_THERE:
            return None
        if keys[1] in self._survey.ctx_writers:
            return None if self._is_written(keys[1], site) else self._absent(path, 0, "", site)
        if keys[1] in self._survey.workload:
            return path.replaced(1, "workload")
        if (step := self._survey.step_named(keys[1])) is not None:
            return self._step_edit(path, 2, step, site) or path.replaced(2, step.name)
        return self._absent(path, 0, "", site)

    def _output_edit(self, path: PathTokens, site: ReadSite) -> Edit | None:
        if is_after_task(site.role.name):
            return outcome_edit(
                path, site.kind, in_set=site.role is ReadPlace.TASK_SET, guard=_is_guard(site)
            )
        if site.role in _ROUTING and site.step is not None:
            if site.step.is_loop and len(path.keys) > 1 and path.keys[1] in ("results", "stats"):
                return self._own_loop_edit(path, 1)
            return routing_edit(path, site.kind, guard=_is_guard(site))
        if site.role in (ReadPlace.INPUT, ReadPlace.STEP_INPUT):
            base, kind = self._task_before(site)
            count = 2 if path.keys[1:2] in (("data",), ("response",)) else 1
            base, used = body_path(base, path.keys[count:], kind) if count == 2 else (base, 0)
            return path.replaced(count + used, base)
        return None

    def _task_before(self, site: ReadSite) -> tuple[str, str]:
        """The result of the task before an input, or of the step before; with the kind of the task."""
        if site.step is not None and site.role is ReadPlace.INPUT and site.task > 0:
            before = site.step.tasks[site.task - 1]
            return (f"({before.label} | default(none))" if site.follows_its_own else "_prev"), before.kind
        steps = self._survey.graph.predecessors(site.step.name) if site.step is not None else []
        kinds = {self._survey.steps[name].result_kind for name in steps}
        return self._result_before(site) or "none", kinds.pop() if len(kinds) == 1 else ""

    def _result_before(self, site: ReadSite) -> str | None:
        """The result of the step before this one, as an operand."""
        if site.step is None:
            return None
        if site.role in _ROUTING:
            return "event.result"
        before = self._survey.graph.predecessors(site.step.name)
        if not before:
            return "none"
        if len(before) == 1:
            return f"{member_expression('steps', before[0])}.result"
        self.uses_step_before.add(site.step.name)
        return "args.result"

    def _is_hidden(self, name: str, step: SurveyedStep, site: ReadSite) -> bool:
        """Whether something nearer has the name of a step."""
        survey = self._survey
        own = site.step
        labels = {task.label for task in own.tasks} if own is not None and site.role in _PIPELINE else set()
        if step is own and site.is_last and is_after_task(site.role.name):
            labels.discard(own.last_label)  # the task itself, which has its result under its label only later
        return (
            name in survey.workload
            or name in survey.ctx_writers
            or name in labels
            or (own is not None and name == own.iterator)
        )

    def _step_edit(self, path: PathTokens, count: int, step: SurveyedStep, site: ReadSite) -> Edit | None:
        """The first `count` keys name a step."""
        own = site.step is step
        rest = path.keys[count:]
        if own and site.role in _ROUTING:
            return self._own_edit(path, count, step)
        if (
            own
            and site.role in (ReadPlace.RULE, ReadPlace.RULE_VALUE, ReadPlace.TASK_SET)
            and not step.is_loop
        ):
            return path.replaced(count, "outcome.result") if site.is_last else None
        if rest and rest[0] in _REFERENCE_PARTS:
            step.keeps_reference = True
            remaining = _reference(member_expression(f"ctx.{RESULT_REFERENCES}", step.name), rest, path.use)
            return self._replace_or_default(path, count + 1, remaining, site)
        base = step.name if step.name.isidentifier() else f"{member_expression('steps', step.name)}.result"
        task = _task_read(step, rest)
        if task is not None and not step.is_loop:
            label, used = task
            if own and site.role in _PIPELINE:
                return path.replaced(count + used, label)
            if label != step.last_label:
                step.kept_results.add(label)
                base = member_expression(member_expression(f"ctx.{TASK_RESULTS}", step.name), label)
            return self._replace_or_default(path, count + used, base, site, reader_of=step)
        if step.is_loop and not step.is_cursor:
            loop = _loop_result(base, rest, alone=path.is_whole() and not rest)
            if loop is not None:
                used, text = loop
                return self._replace_or_default(path, count + used, text, site, reader_of=step)
        if base != ".".join(path.keys[:count]):
            return self._replace_or_default(path, count, base, site, reader_of=step)
        return self._replace_or_default(path, 0, "", site, reader_of=step)

    def _own_edit(self, path: PathTokens, count: int, step: SurveyedStep) -> Edit:
        """A step's own result where its run has ended."""
        rest = path.keys[count:]
        if rest and rest[0] in _REFERENCE_PARTS:
            return path.replaced(count + 1, as_operand(_reference("event.result_ref", rest, path.use)))
        if step.is_loop:
            return self._own_loop_edit(path, count)
        task = _task_read(step, rest)
        if task is not None:
            label, used = task
            if label == step.last_label:
                return path.replaced(count + used, "event.result")
            step.run_results.add(label)
            return path.replaced(count + used, member_expression("run", label))
        if rest[:1] == ("data",) and step.tasks and step.tasks[-1].kind != "http":
            # The step's result has no key `data` where SQL made it; of others nobody knows.
            return path.replaced(count + 1, "(event.result.data | default(event.result))")
        return path.replaced(count, "event.result")

    def _own_loop_edit(self, path: PathTokens, count: int) -> Edit:
        rest = path.keys[count:]
        if rest[:1] == ("stats",):
            name = {"success": "succeeded"}.get(rest[1], rest[1]) if len(rest) > 1 else ""
            return path.replaced(count + min(len(rest), 2), f"event.loop.{name}" if name else "event.loop")
        used = 1 if rest[:1] in (("results",), ("data",)) else 0
        return path.replaced(count + used, "event.result")

    def _replace_or_default(
        self,
        path: PathTokens,
        count: int,
        text: str,
        site: ReadSite,
        *,
        reader_of: SurveyedStep | None = None,
    ) -> Edit | None:
        """The replacement, with null for what may be absent; None where nothing changes."""
        sure = reader_of is not None and self._has_run(reader_of, site)
        if not sure and (edit := self._absent(path, count, text, site)) is not None:
            return edit
        return path.replaced(count, as_operand(text)) if count else None

    def _has_run(self, step: SurveyedStep, site: ReadSite) -> bool:
        return site.step is not None and self._survey.graph.surely_done(step.name, site.step.name)

    def _absent(self, path: PathTokens, count: int, text: str, site: ReadSite) -> Edit | None:
        """The path with null where it is absent, if it is a value and says nothing of that itself."""
        if site.role not in _VALUES or path.use.optional or path.goes_on():
            return None
        base = text if count else path.keys[0]
        for key in path.keys[max(count, 1) :]:
            base = member_expression(as_operand(base), key)
        return path.replaced(len(path.keys), f"({base} | default(none))")


def _position_of(scalar: Scalar, offset: int) -> Scalar:
    """Where a character of a text stands; where the text begins, if the document may break or escape it."""
    text = str(scalar.value)
    quote = 1 if scalar.style in ("'", '"') else 0
    if "\n" in text or scalar.end - scalar.start != len(text) + 2 * quote:
        return scalar
    return Scalar(text[offset:], scalar.line, scalar.column + quote + offset)


def _reference(reference: str, rest: Sequence[str], use: Use) -> str:
    """Where a large result lies, or a part of it; undefined, not null, for who asks whether it is defined."""
    if len(rest) == 1 and rest[0] == "_ref" and use.optional:
        return f"[{reference}] | reject('none') | first"
    return reference + _REFERENCE_PARTS[rest[0]]


def _is_guard(site: ReadSite) -> bool:
    return site.role in (ReadPlace.RULE, ReadPlace.ROUTING, ReadPlace.CONDITION)


def _task_read(step: SurveyedStep, rest: Sequence[str]) -> tuple[str, int] | None:
    """The task that `S.results.T` or `S.T` names, and how many keys do so."""
    labels = {task.label for task in step.tasks}
    if len(rest) > 1 and rest[0] == "results" and rest[1] in labels:
        return rest[1], 2
    return (rest[0], 1) if rest and rest[0] in labels else None


def _loop_result(base: str, rest: Sequence[str], *, alone: bool) -> tuple[int, str] | None:
    """What is read of a loop's `{results, stats}`, made of the list that it gives."""
    stats = {
        "total": f"{base} | length",
        "success": f"{base} | reject('none') | list | length",
        "failed": f"{base} | select('none') | list | length",
    }
    listed = ", ".join(f"'{name}': {text}" for name, text in stats.items())
    if alone:
        return 0, f"{{'results': {base}, 'stats': {{{listed}}}}}"
    if rest[:1] in (("results",), ("data",)):
        return 1, base
    if rest[:1] == ("stats",):
        if len(rest) == 1:
            return 1, f"{{{listed}}}"
        return (2, stats[rest[1]]) if rest[1] in stats else None
    return None
