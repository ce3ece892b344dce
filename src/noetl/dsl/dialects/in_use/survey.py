"""What a document in use says as a whole: its steps and tasks, who writes what, and how arcs lead."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from noetl.dsl.dialects.in_use.arc_graph import ArcGraph, GraphArc
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of, labelled_entry, workbook_items
from noetl.dsl.dialects.nodes import text_value
from noetl.dsl.dialects.v1.name_scope import unique_name
from noetl.dsl.document.source import Mapping, Node
from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template
from noetl.model.errors import ExpressionError

_NOT_IN_NAMES = re.compile(r"[/.\s]")
_SET_KEYS = {"set_ctx": "ctx.", "set_iter": "iter.", "set_run": "run."}
SQL_KINDS = frozenset({"postgres", "duckdb", "sqlite", "mysql", "snowflake", "ducklake"})


@dataclass(slots=True)
class SurveyedTask:
    label: str
    kind: str
    node: Mapping
    inputs: frozenset[str]
    parts: list[tuple[str, Mapping]] = field(default_factory=list)
    """The tasks that it stands for, with their labels; the last of them has its own."""


@dataclass(slots=True)
class SurveyedStep:
    """A step: its name in the document and in the canonical one, and what it is made of."""

    source_name: str
    name: str
    node: Mapping
    tasks: list[SurveyedTask]
    arcs: list[Mapping]
    is_loop: bool
    is_cursor: bool
    iterator: str
    inputs: frozenset[str]
    names: set[str] = field(default_factory=set)
    """Bare names that are set for its runs alone, its inputs excepted."""
    kept_results: set[str] = field(default_factory=set)
    """Labels of its tasks that later steps read, though they are not the last."""
    run_results: set[str] = field(default_factory=set)
    """Those that its own arcs read."""
    first_parts: dict[str, str] = field(default_factory=dict)
    """By label, the first of the tasks that a task stands for."""
    keeps_reference: bool = False
    """Whether others read where its large result lies."""

    @property
    def result_kind(self) -> str:
        """The kind of the task whose result is the step's; none of a loop, whose result is a list."""
        return self.tasks[-1].kind if self.tasks and not self.is_loop else ""

    @property
    def last_label(self) -> str:
        return self.tasks[-1].label if self.tasks else ""


class DocumentSurvey:
    """Reads a document once; nothing in it is trusted to have the right type."""

    def __init__(self, root: Mapping) -> None:
        workload = root.get("workload")
        self.workload = frozenset(workload.entries) if isinstance(workload, Mapping) else frozenset[str]()
        self.workload_node = workload if isinstance(workload, Mapping) else None
        nodes = [item for item in items_of(root.get("workflow")) if isinstance(item, Mapping)]
        self.canonical_names = _canonical_names(nodes)
        self.steps: dict[str, SurveyedStep] = {}
        for node in nodes:
            step = self._step(node)
            if step is not None:
                self.steps.setdefault(step.name, step)
        self.ctx_writers: dict[str, set[str]] = {}
        self.names: set[str] = set(self.workload)
        """Every bare name that something sets for somebody, those of steps excepted."""
        for step in self.steps.values():
            self._survey_writes(step)
        for item in workbook_items(root.get("workbook")):
            if isinstance(item, Mapping):
                self.names |= given_inputs(item) | {entry.key for entry in entries_of(item.get("set"))}
        entry = _entry_name(root, self.canonical_names) or ("start" if "start" in self.steps else "")
        self.graph = ArcGraph(
            {name: self._graph_arcs(step) for name, step in self.steps.items()},
            entry or next(iter(self.steps), ""),
            (name for name, step in self.steps.items() if _is_inclusive(step.node)),
        )

    def step_named(self, name: str) -> SurveyedStep | None:
        """The step that an expression or arc calls so."""
        return self.steps.get(self.canonical_names.get(name, name))

    def _step(self, node: Mapping) -> SurveyedStep | None:
        name = text_value(node.get("step"))
        if name is None:
            return None
        loop = node.get("loop")
        tasks = surveyed_tasks(node.get("tool"))
        iterator = text_value(loop.get("iterator")) if isinstance(loop, Mapping) else None
        own_loop = tasks[0].node.get("iterator") if len(tasks) == 1 else None
        if loop is None and isinstance(own_loop, Mapping) and tasks[0].kind == "python":
            iterator = text_value(own_loop.get("item"))
            loop = own_loop
        router = node.get("next")
        arcs = items_of(router.get("arcs")) if isinstance(router, Mapping) else []
        return SurveyedStep(
            source_name=name,
            name=self.canonical_names[name],
            node=node,
            tasks=tasks,
            arcs=[arc for arc in arcs if isinstance(arc, Mapping)],
            is_loop=isinstance(loop, Mapping),
            is_cursor=isinstance(loop, Mapping) and "cursor" in loop,
            iterator=iterator or "",
            inputs=given_inputs(node),
        )

    def _graph_arcs(self, step: SurveyedStep) -> Iterator[GraphArc]:
        for arc in step.arcs:
            target = text_value(arc.get("step")) or ""
            handles = "cond" in arc or reads_event(arc.get("when"))
            yield GraphArc(self.canonical_names.get(target, target), handles)

    def _survey_writes(self, step: SurveyedStep) -> None:
        step.names.update(task.label for task in step.tasks)
        step.names.add(step.iterator)
        self.names |= step.names.union(step.inputs, *(task.inputs for task in step.tasks))
        # An arc's bare keys are args, a task's belong to its pipeline, all others are kept.
        self._note_writes(step.node.get("set"), step, bare="ctx")
        for arc in step.arcs:
            target = self.step_named(text_value(arc.get("step")) or "")
            self._note_writes(arc.get("set"), step, bare="args", target=target)
            for entry in entries_of(arc.get("args")):
                self._note(f"args.{entry.key}", target or step)
        for task in step.tasks:
            self._note_writes(task.node.get("set"), step, bare="iter")
        specs = [step.node.get("spec"), *(task.node.get("spec") for task in step.tasks)]
        for rule in (rule for spec in specs for rule in rules_of_spec(spec)):
            for then in directives(rule):
                self._note_writes(then.get("set"), step, bare="ctx")
                for key, scope in _SET_KEYS.items():
                    for entry in entries_of(then.get(key)):
                        self._note(scope + entry.key, step)

    def _note_writes(
        self, node: Node | None, step: SurveyedStep, *, bare: str, target: SurveyedStep | None = None
    ) -> None:
        for entry in entries_of(node):
            scope = entry.key.split(".", 1)[0]
            scoped = "." in entry.key and scope in ("ctx", "iter", "run", "step", "args")
            path = entry.key if scoped else f"{bare}.{entry.key}"
            self._note(path, (target or step) if path.startswith("args.") else step)

    def _note(self, path: str, step: SurveyedStep) -> None:
        """Notes that `step` writes a path, or for args that its tokens bring it."""
        scope, _, rest = path.partition(".")
        root = rest.split(".", 1)[0]
        self.names.add(root)
        if scope == "ctx":
            self.ctx_writers.setdefault(root, set()).add(step.name)
        else:
            step.names.add(root)


def surveyed_tasks(tool: Node | None) -> list[SurveyedTask]:
    """The tasks of a pipeline with the labels that the reader gives them."""
    tasks: list[SurveyedTask] = []
    for index, item in enumerate([tool] if isinstance(tool, Mapping) else items_of(tool)):
        if not isinstance(item, Mapping):
            continue
        entry = labelled_entry(item)
        node = entry.value if entry is not None and isinstance(entry.value, Mapping) else item
        label = entry.key if entry is not None else text_value(item.get("name"))
        kind = text_value(node.get("kind")) or ""
        tasks.append(SurveyedTask(label or f"task_{index}", kind, node, given_inputs(node)))
    return tasks


def given_inputs(owner: Mapping) -> frozenset[str]:
    """The names of what a step or a task is given by itself."""
    return frozenset(entry.key for key in ("input", "args") for entry in entries_of(owner.get(key)))


def rules_of_spec(spec: Node | None) -> list[Node]:
    policy = spec.get("policy") if isinstance(spec, Mapping) else None
    return items_of(policy.get("rules")) if isinstance(policy, Mapping) else []


def directives(rule: Node) -> Iterator[Mapping]:
    """The mappings that say what a rule does: `then`, `else`, or `then` under `else`."""
    for entry in entries_of(rule):
        if entry.key in ("then", "else") and isinstance(entry.value, Mapping):
            inner = entry.value.get("then")
            yield inner if isinstance(inner, Mapping) else entry.value


def reads_event(when: Node | None) -> bool:
    """Whether a guard itself looks at how the step ended."""
    text = text_value(when)
    if text is None or not is_template(text):
        return False
    try:
        uses = parse(text).uses
    except ExpressionError:
        return False
    return any(
        use.path[0] == "event" or use.path[:2] in (("output", "status"), ("output", "error")) for use in uses
    )


def _canonical_names(nodes: list[Mapping]) -> dict[str, str]:
    """By the name of each step, the one that it has in a canonical document."""
    sources = [name for node in nodes if (name := text_value(node.get("step"))) is not None]
    names = {name: name for name in sources if not _NOT_IN_NAMES.search(name)}
    taken = set(names)
    for name in sources:
        if name not in names:
            cleaned = _NOT_IN_NAMES.sub("_", name)
            names[name] = unique_name(cleaned, taken)
            taken.add(names[name])
    return names


def _entry_name(root: Mapping, names: dict[str, str]) -> str | None:
    executor = root.get("executor")
    spec = executor.get("spec") if isinstance(executor, Mapping) else None
    entry = text_value(spec.get("entry_step")) if isinstance(spec, Mapping) else None
    return names.get(entry) if entry is not None else None


def _is_inclusive(step: Mapping) -> bool:
    router = step.get("next")
    spec = router.get("spec") if isinstance(router, Mapping) else None
    return isinstance(spec, Mapping) and text_value(spec.get("mode")) == "inclusive"
