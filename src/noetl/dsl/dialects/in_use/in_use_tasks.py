"""Tasks in use: inputs where they stand in a canonical task, and what only some kinds have."""

import re
from collections.abc import Iterable

from noetl.dsl.dialects.expression_text import as_expression, as_operand, edit_node, name_edits
from noetl.dsl.dialects.in_use.harmless import with_spec, with_value
from noetl.dsl.dialects.in_use.in_use_code import imports_of, lift_expressions, read_names
from noetl.dsl.dialects.in_use.read_edits import NameReads, ReadPlace, ReadSite
from noetl.dsl.dialects.in_use.recognition import entries_of, items_of
from noetl.dsl.dialects.in_use.survey import SQL_KINDS, DocumentSurvey, SurveyedStep
from noetl.dsl.dialects.nodes import NodeReader, new_entry, new_mapping, new_text, text_value, without_keys
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Sequence, node_of
from noetl.expr.use import Path, Use

_LIFTED = frozenset({"method", "url", "endpoint", "params", "headers", "code", "input", "auth", "command"})
_SPEC_KEYS = {
    "timeout": "timeout",
    "timeout_seconds": "timeout",
    "verify_ssl": "verify",
    "follow_redirects": "follow_redirects",
}
_HTTP_ONLY = frozenset({"verify_ssl", "follow_redirects"})
_POOL_KEYS = {"min_size": "min", "max_size": "max", "timeout": "timeout"}
_SQL_TEXT = ("command", "query", "commands")
_UNTOUCHED = frozenset({"name", "kind", "desc", "document", "code", "script", "spec", "set", "retry"})
_EXECUTION_ID = re.compile(r"\{\{\s*execution_id\s*\}\}")
_NUMBER = "{{ (execution_id | replace('-', ''))[-15:] | int(0, 16) }}"
_BACKQUOTED = re.compile(r"\{\{\s*`([^`]*)`\s*\}\}")
_BEARER = re.compile(r"\s*Bearer\s+\{\{\s*token\(\s*['\"]?([A-Za-z_][\w-]*)['\"]?\s*\)\s*\}\}\s*\Z")


class TaskLowering:
    """Lowers the keys of tasks, their policy excepted."""

    def __init__(self, survey: DocumentSurvey, reads: NameReads, report: ProblemReporter) -> None:
        self._survey = survey
        self._reads = reads
        self._reader = NodeReader(report)

    def lower(self, task: Mapping, site: ReadSite, step_input: Mapping | None) -> Mapping:
        """The task with canonical keys; `set`, `retry` and the rules are left for others.

        `step_input` is what a loop step gives each of its tasks.
        """
        kind = text_value(task.get("kind")) or ""
        task = _lift_inputs(task, kind)
        if isinstance(pool := task.get("pool"), Mapping):
            self._reader.check_keys(pool, [*_POOL_KEYS, "name", "max_waiting"], "`pool`")
        task = _move_knobs(task, kind)
        if kind == "http":
            task = _bearer_auth(task)
        elif kind == "nats" and "operation" in task and "action" not in task:
            task = _renamed(task, "operation", "action")
        elif kind == "shell":
            task = _with_raw_text(task)
        entries: list[MappingEntry] = []
        beside = site._replace(has_inputs=True)
        for entry in task:
            if entry.key in ("input", "args"):
                entries.append(new_entry("args", self._reads.rewrite(entry.value, site), entry))
            elif entry.key in _UNTOUCHED:
                entries.append(entry)
            else:
                entries.append(new_entry(entry.key, self._reads.rewrite(entry.value, beside), entry))
        task = new_mapping(entries, task)
        if step_input is not None:
            arguments = self._step_arguments(step_input, site)
            task = _with_args(_without_reads(task, arguments), arguments, beneath=True)
        if kind == "python":
            task = self._python(task, site)
        if kind in SQL_KINDS:
            task = number_execution_ids(task)
        return task

    def _step_arguments(self, step_input: Mapping, site: ReadSite) -> list[MappingEntry]:
        return [new_entry(entry.key, self._reads.rewrite(entry.value, site), entry) for entry in step_input]

    def _python(self, task: Mapping, site: ReadSite) -> Mapping:
        libs = task.entries.get("libs")
        if libs is not None and isinstance(libs.value, Sequence):
            names = [self._reader.text(item, "a package of `libs`") or "sys" for item in libs.value.items]
            imports = node_of(imports_of(names), libs)
            task = new_mapping(
                (new_entry("libs", imports, entry) if entry is libs else entry for entry in task), task
            )
        code = task.entries.get("code")
        text = text_value(code.value) if code is not None else None
        if code is None or text is None:
            return task

        def rewrite(template: str) -> str:
            edited = self._reads.rewrite(new_text(template, code), site._replace(has_inputs=True))
            return text_value(edited) or template

        inputs = {entry.key: text_value(entry.value) for entry in entries_of(task.get("args"))}
        pasted = lift_expressions(text, rewrite, inputs)
        if pasted.values:
            value = new_text(pasted.code, code.value)
            task = new_mapping(
                (new_entry("code", value, entry) if entry is code else entry for entry in task), task
            )
        added = [new_entry(name, new_text(value, code)) for name, value in pasted.values.items()]
        added += self._free_names(pasted.code, task, site, code)
        return _with_args(task, added, beneath=True)

    def _free_names(
        self, code: str, task: Mapping, site: ReadSite, at: MappingEntry
    ) -> Iterable[MappingEntry]:
        """What code reads though nobody gives it: the item of the loop, its place, and `context`."""
        step = site.step
        if step is None:
            return
        known = {entry.key for entry in entries_of(task.get("args"))}
        sources: dict[str, str] = {}
        if step.is_loop:
            sources = {"loop_index": "iter.index", "_index": "iter.index", "_total": "iter.count"}
            if step.iterator:
                sources[step.iterator] = f"iter.{step.iterator}"
        # Nearly no code has one of these words anywhere: then it need not be parsed.
        if not any(name in code for name in (*sources, "context") if name not in known):
            return
        names = read_names(code) - known
        for name, source in sources.items():
            if name in names:
                yield new_entry(name, new_text("{{ " + source + " }}", at))
        if "context" in names:
            yield new_entry("context", self._context(step, at))

    def _context(self, step: SurveyedStep, at: MappingEntry) -> Node:
        """What code in use knows as `context`."""
        before = self._survey.graph.ancestors(step.name) - {step.name}
        values = {
            name: "{{ workload." + name + " }}" for name in self._survey.workload if name.isidentifier()
        }
        for name in self._survey.steps:
            if name in before:
                sure = self._survey.graph.surely_done(name, step.name)
                read = name if name.isidentifier() else f"steps['{name}'].result"
                values[name] = "{{ " + read + ("" if sure else " | default(none)") + " }}"
        return node_of(
            {
                **values,
                "execution_id": "{{ execution_id }}",
                "step": step.name,
                "args": "{{ args | default({}) }}",
                "workload": "{{ workload }}",
            },
            at,
        )


def _lift_inputs(task: Mapping, kind: str) -> Mapping:
    """Inputs under `spec` at the task itself, unless they stand there already."""
    spec = task.get("spec")
    if not isinstance(spec, Mapping) or not kind:
        return task
    lifted = [entry for entry in spec if entry.key in _LIFTED and entry.key not in task]
    if not lifted:
        return task
    remaining = without_keys(spec, *(entry.key for entry in lifted))
    entries = [entry for entry in task if entry.key != "spec"] + lifted
    if remaining.entries:
        entries.append(new_entry("spec", remaining, task.entries["spec"]))
    return new_mapping(entries, task)


def _move_knobs(task: Mapping, kind: str) -> Mapping:
    """Timeouts and the like under `spec`, by the names that they have there."""
    knobs: dict[str, MappingEntry] = {}
    moved: list[str] = []
    for entry in task:
        if entry.key in _SPEC_KEYS and not (entry.key in _HTTP_ONLY and kind != "http"):
            knobs[_SPEC_KEYS[entry.key]] = new_entry(_SPEC_KEYS[entry.key], entry.value, entry)
            moved.append(entry.key)
        elif entry.key == "pool" and isinstance(entry.value, Mapping):
            pool = [
                new_entry(_POOL_KEYS[part.key], part.value, part)
                for part in entry.value
                if part.key in _POOL_KEYS
            ]
            if pool:
                knobs["pool"] = new_entry("pool", new_mapping(pool, entry.value), entry)
            moved.append("pool")
    spec = task.get("spec")
    if isinstance(spec, Mapping) and {"timeout_seconds", "verify_ssl"} & set(spec.entries):
        renamed = (new_entry(_SPEC_KEYS.get(entry.key, entry.key), entry.value, entry) for entry in spec)
        task = new_mapping(
            (
                new_entry("spec", new_mapping(renamed, spec), entry) if entry.key == "spec" else entry
                for entry in task
            ),
            task,
        )
    if not moved:
        return task
    left = without_keys(task, *moved)
    return with_spec(left, new_mapping(knobs.values(), task), next(iter(knobs.values()))) if knobs else left


def _renamed(task: Mapping, key: str, name: str) -> Mapping:
    return new_mapping(
        (new_entry(name, entry.value, entry) if entry.key == key else entry for entry in task), task
    )


def _bearer_auth(task: Mapping) -> Mapping:
    """`Authorization: Bearer {{ token(NAME) }}` as `auth: NAME`."""
    headers = task.get("headers")
    if "auth" in task or not isinstance(headers, Mapping):
        return task
    for header in headers:
        match = (
            _BEARER.match(text_value(header.value) or "") if header.key.lower() == "authorization" else None
        )
        if match is not None:
            left = without_keys(headers, header.key)
            entries = [entry for entry in task if entry.key != "headers"]
            if left.entries:
                entries.append(new_entry("headers", left, task.entries["headers"]))
            return new_mapping([*entries, new_entry("auth", new_text(match[1], header.value), header)], task)
    return task


def _with_raw_text(task: Mapping) -> Mapping:
    """`` {{`text`}} `` is text, braces included."""
    command = task.entries.get("command")
    if command is None:
        return task

    def raw(node: Node) -> Node:
        text = text_value(node)
        if text is None or "`" not in text:
            return node
        changed = _BACKQUOTED.sub(lambda match: "{% raw %}" + match[1] + "{% endraw %}", text)
        return node if changed == text else new_text(changed, node)

    value = command.value
    if isinstance(value, Sequence):
        value = Sequence([raw(item) for item in value.items], value.line, value.column)
    else:
        value = raw(value)
    return new_mapping(
        (new_entry("command", value, entry) if entry is command else entry for entry in task), task
    )


def number_execution_ids(task: Mapping) -> Mapping:
    """`{{ execution_id }}` outside of quotes is a number in SQL."""

    def numbered(node: Node) -> Node:
        if isinstance(node, Sequence):
            return Sequence([numbered(item) for item in node.items], node.line, node.column)
        text = text_value(node)
        if text is None or "execution_id" not in text:
            return node
        changed = _EXECUTION_ID.sub(
            lambda match: match[0] if _in_quotes(text, match.start()) else _NUMBER, text
        )
        return node if changed == text else new_text(changed, node)

    entries = (
        new_entry(entry.key, numbered(entry.value), entry) if entry.key in _SQL_TEXT else entry
        for entry in task
    )
    return new_mapping(entries, task)


def _in_quotes(sql: str, offset: int) -> bool:
    before = sql[:offset]
    return before.count("'") % 2 == 1 or before.count('"') % 2 == 1


def _with_args(task: Mapping, added: list[MappingEntry], *, beneath: bool) -> Mapping:
    """The task with more args; `beneath` those that it has."""
    if not added:
        return task
    own = list(entries_of(task.get("args")))
    merged = [*added, *own] if beneath else [*own, *added]
    at = task.entries.get("args") or added[0]
    args = new_mapping(merged, at)
    if "args" in task:
        return new_mapping(
            (new_entry("args", args, entry) if entry.key == "args" else entry for entry in task), task
        )
    return new_mapping([*task, new_entry("args", args, at)], task)


def _without_reads(task: Mapping, arguments: list[MappingEntry]) -> Mapping:
    """The task, whose own args say what they read of the step's: args of one task do not see each other."""
    values = {entry.key: entry.value for entry in arguments}

    def argument(path: Path, _use: Use) -> tuple[int, str] | None:
        count = 2 if path[0] == "args" and len(path) > 1 else 1
        value = values.get(path[count - 1])
        expression = as_expression(value) if value is not None else None
        return None if expression is None else (count, as_operand(expression))

    return with_value(task, "args", lambda args: edit_node(args, name_edits(argument)))


def listed_items(node: Node | None) -> list[Node]:
    """The items of a list, or the value itself as the only one."""
    return items_of(node) if isinstance(node, Sequence) else [] if node is None else [node]


def input_site(step: SurveyedStep | None, task: int) -> ReadSite:
    return ReadSite(ReadPlace.INPUT, step, task)
