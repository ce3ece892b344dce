"""A canonical pipeline while it is being put together, task by task."""

from collections.abc import Callable
from dataclasses import dataclass, field

from noetl.dsl.dialects.expression_text import ERROR_GUARD
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Sequence, node_of
from noetl.model.json import Json

RESULTS_KEY = "task_results"
"""The key of ctx under which results are kept that other steps read."""

_RESULT = "{{ outcome.result }}"


@dataclass(slots=True)
class PipelineTask:
    """A task to be written. `errors` are its rules for errors; `result_name` is what v1 calls its result."""

    label: str
    kind: str
    source: Mapping
    inputs: list[MappingEntry] = field(default_factory=list)
    errors: list[Node] = field(default_factory=list)
    result_name: str = ""


@dataclass(slots=True)
class GuardTask:
    """A `noop` that skips the tasks before index `end` unless its condition holds."""

    label: str
    source: MappingEntry
    when: Node
    desc: MappingEntry | None
    end: int = 0


class PipelineBuilder:
    """Tasks in order, with labels of their own. A result under a reserved name could not be read.

    `run_results` are the tasks whose results the step's own routing reads: they are put into `run`.
    """

    def __init__(self, is_reserved: Callable[[str], bool]) -> None:
        self.is_reserved = is_reserved
        self.run_results: set[str] = set()
        self.tasks: list[PipelineTask | GuardTask] = []
        self._labels: set[str] = set()
        # The last number given to a name: counting up from 2 each time is quadratic in equal names.
        self._counts: dict[str, int] = {}

    def new_label(self, name: str) -> str:
        """A label for a name that no task has yet: `name`, `name_2` and so on."""
        base = f"{name}_task" if self.is_reserved(name) else name
        label = base
        while label in self._labels:
            self._counts[base] = self._counts.get(base, 1) + 1
            label = f"{base}_{self._counts[base]}"
        self._labels.add(label)
        return label

    def build(self, at: Located, published: set[str]) -> Sequence:
        """The pipeline as a node. Results of `published` tasks are put into ctx as well."""
        nodes = [
            self._guard_node(task)
            if isinstance(task, GuardTask)
            else _task_node(task, self._writes(task.result_name, published))
            for task in self.tasks
        ]
        return new_sequence(nodes or [node_of({"name": self.new_label("done"), "kind": "noop"}, at)], at)

    def _writes(self, name: str, published: set[str]) -> dict[str, Json]:
        """Where the result of a task is put for those who read it outside the pipeline."""
        writes: dict[str, Json] = {}
        if name in self.run_results:
            writes["set_run"] = {name: _RESULT}
        if name in published:
            writes["set_ctx"] = {f"{RESULTS_KEY}.{name}": _RESULT}
        return writes

    def _guard_node(self, guard: GuardTask) -> Mapping:
        skip: Json = {"do": "break"}
        if guard.end < len(self.tasks):
            skip = {"do": "jump", "to": self.tasks[guard.end].label}
        rules = [
            new_mapping(
                [
                    new_entry("when", guard.when, guard.source),
                    new_entry("then", node_of({"do": "continue"}, guard.source)),
                ],
                guard.source,
            ),
            node_of({"else": {"then": skip}}, guard.source),
        ]
        return new_mapping(
            [
                new_entry("name", new_text(guard.label, guard.source)),
                new_entry("kind", new_text("noop", guard.source)),
                *([guard.desc] if guard.desc else []),
                _policy_entry(rules, guard.source),
            ],
            guard.source,
        )


def error_rules(node: Mapping) -> list[Node]:
    """What `retry`, `retry_delay` and `on_error` say about errors; the values have been checked."""
    retry, delay, on_error = (node.entries.get(key) for key in ("retry", "retry_delay", "on_error"))
    tries = _number(retry)
    rules: list[Node] = []
    if retry is not None and tries:
        then: dict[str, Json] = {
            "do": "retry",
            "attempts": tries + 1,
            "backoff": "none",
            "delay": _number(delay),
        }
        when = "{{ outcome.status == 'error' and _attempt <= " + str(tries) + " }}"
        rules.append(node_of({"when": when, "then": then}, retry))
    if rules or on_error is not None:
        position = on_error or retry or node
        do = on_error.value if on_error else new_text("fail", position)
        then_node = new_mapping([new_entry("do", do)], position)
        rules.append(
            new_mapping(
                [new_entry("when", new_text(ERROR_GUARD, position)), new_entry("then", then_node)], position
            )
        )
    return rules


def _number(entry: MappingEntry | None) -> int:
    value = getattr(entry.value, "value", None) if entry else None
    return value if isinstance(value, int) else 0


def _task_node(task: PipelineTask, writes: dict[str, Json]) -> Mapping:
    rules = list(task.errors)
    if writes:
        # The `else` that writes would catch errors as well.
        rules = rules or [node_of({"when": ERROR_GUARD, "then": {"do": "fail"}}, task.source)]
        rules.append(node_of({"else": {"then": {"do": "continue", **writes}}}, task.source))
    return new_mapping(
        [
            new_entry("name", new_text(task.label, _position_of(task.source, "task"))),
            new_entry("kind", new_text(task.kind, _position_of(task.source, "type"))),
            *task.inputs,
            *([_policy_entry(rules, task.source)] if rules else []),
        ],
        task.source,
    )


def _policy_entry(rules: list[Node], at: Located) -> MappingEntry:
    return new_entry(
        "spec",
        new_mapping(
            [new_entry("policy", new_mapping([new_entry("rules", new_sequence(rules, at))], at))], at
        ),
    )


def _position_of(node: Mapping, key: str) -> Located:
    return node.entries[key].value if key in node else node
