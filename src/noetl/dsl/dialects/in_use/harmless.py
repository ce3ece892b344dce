"""Spellings in use that mean the same in every document: rewritten before a document is read.

A document without them is given back as it is, the same nodes.
"""

from collections.abc import Callable

from noetl.dsl.dialects.in_use.recognition import (
    KEYCHAIN_SCOPES,
    entries_of,
    items_of,
    labelled_entry,
)
from noetl.dsl.dialects.nodes import (
    NodeReader,
    new_entry,
    new_mapping,
    new_sequence,
    new_text,
    text_value,
    without_keys,
)
from noetl.dsl.document.shape_check import ProblemReporter, describe_node
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Sequence, node_of
from noetl.dsl.document.spec import merge_specs

_RESULT_KEYS = {"output_select": "select", "store": "store", "inline_max_bytes": "inline_max_bytes"}
_ON_NO_MATCH = ("complete", "quiet")
_EXECUTOR_POLICY = ("defaults", "results", "limits")


def rewrite_harmless(
    root: Mapping, report: ProblemReporter, nested: Callable[[Mapping], Mapping] | None = None
) -> Mapping:
    """The document with canonical words for them. Never raises; what has no effect is reported.

    `nested` is what becomes of playbooks inside of tasks; without it, the same as of this one.
    """
    return HarmlessSpellings(report, nested).rewrite(root)


def declared_dialect(root: Mapping) -> str | None:
    """The dialect that a document itself says it is written in."""
    metadata = root.get("metadata")
    return text_value(metadata.get("dialect")) if isinstance(metadata, Mapping) else None


class HarmlessSpellings:
    """Rewrites one document."""

    def __init__(self, report: ProblemReporter, nested: Callable[[Mapping], Mapping] | None) -> None:
        self._report = report
        self._nested = nested or self.rewrite

    def rewrite(self, root: Mapping) -> Mapping:
        root = without_empty(with_value(root, "executor", self._executor), root)
        root = with_value(root, "keychain", lambda node: map_items(node, self._keychain_entry))
        root = with_value(root, "workbook", self._workbook)
        return with_value(root, "workflow", lambda node: map_items(node, self._step))

    def _drop(self, node: Mapping, keys: tuple[str, ...], owner: str) -> Mapping:
        """The mapping without keys that have no effect."""
        present = [node.entries[key] for key in keys if key in node]
        for entry in present:
            self._report("no-effect", entry, f"`{owner}{entry.key}` has no effect", "remove it")
        return without_keys(node, *keys) if present else node

    def _executor(self, node: Node) -> Node:
        if not isinstance(node, Mapping):
            return node
        executor = self._drop(node, ("version", "requires"), "executor.")

        def policy(inner: Node) -> Node:
            if not isinstance(inner, Mapping):
                return inner
            return self._drop(inner, _EXECUTOR_POLICY, "executor.spec.policy.")

        lowered = with_value(
            executor, "spec", lambda spec: without_empty(with_value(spec, "policy", policy), spec)
        )
        return without_empty(lowered, node)

    def _keychain_entry(self, node: Node) -> Node:
        if not isinstance(node, Mapping):
            return node
        if "type" in node and "kind" not in node:
            entry = node.entries["type"]
            node = _replaced(node, "type", new_entry("kind", entry.value, entry))
        dropped = [key for key in ("auto_renew", "ttl") if key in node]
        if text_value(node.get("scope")) in KEYCHAIN_SCOPES:
            dropped.append("scope")
        if dropped:
            node = without_keys(node, *dropped)
        if text_value(node.get("kind")) == "static" and "map" in node and "data" not in node:
            entry = node.entries["map"]
            node = _replaced(node, "map", new_entry("data", entry.value, entry))
        return node

    def _workbook(self, node: Node) -> Node:
        if isinstance(node, Sequence):
            return map_items(node, self._definition)

        def definitions(tasks: Node) -> Node:
            if isinstance(tasks, Mapping):
                return map_values(tasks, self._definition)
            return map_items(tasks, self._definition)

        return with_value(node, "tasks", definitions)

    def _definition(self, node: Node) -> Node:
        """`{name, tool: {…}, assert}` as `{name, …}`."""
        if not isinstance(node, Mapping):
            return node
        tool = node.get("tool")
        if isinstance(tool, Mapping) and "kind" not in node:
            node = self._drop(node, ("assert",), "")
            node = new_mapping([*without_keys(node, "tool"), *without_keys(tool, "name")], node)
        label = labelled_entry(node)
        return self._labelled(node, label) if label is not None else self._task(node)

    def _labelled(self, node: Mapping, label: MappingEntry) -> Node:
        return map_values(node, self._task) if isinstance(label.value, Mapping) else node

    def _step(self, node: Node) -> Node:
        if not isinstance(node, Mapping):
            return node
        node = self._result_keys(node)
        node = with_value(node, "spec", lambda spec: with_value(spec, "policy", self._step_policy))
        node = with_value(
            node, "loop", lambda loop: without_empty(with_value(loop, "spec", self._loop_spec), loop)
        )
        node = with_value(
            node, "next", lambda router: without_empty(with_value(router, "spec", self._router), router)
        )
        return with_value(node, "tool", self._pipeline)

    def _step_policy(self, policy: Node) -> Node:
        def admit(gate: Node) -> Node:
            return self._drop(gate, ("mode",), "admit.") if isinstance(gate, Mapping) else gate

        return with_value(policy, "admit", admit)

    def _loop_spec(self, spec: Node) -> Node:
        def policy(inner: Node) -> Node:
            return self._drop(inner, ("results",), "policy.") if isinstance(inner, Mapping) else inner

        return without_empty(with_value(spec, "policy", policy), spec)

    def _router(self, spec: Node) -> Node:
        if not isinstance(spec, Mapping) or "on_no_match" not in spec:
            return spec
        value = spec.entries["on_no_match"].value
        if text_value(value) not in _ON_NO_MATCH:
            self._report(
                "bad-value",
                value,
                f"`on_no_match` cannot be {describe_node(value)}",
                "one of `complete`, `quiet`: the branch ends",
            )
        return without_keys(spec, "on_no_match")

    def _pipeline(self, node: Node) -> Node:
        if isinstance(node, Mapping):
            return self._task(node)

        def task(item: Node) -> Node:
            label = labelled_entry(item) if isinstance(item, Mapping) else None
            if isinstance(item, Mapping) and label is not None:
                return self._labelled(item, label)
            return self._task(item)

        return map_items(node, task)

    def _task(self, node: Node) -> Node:
        if not isinstance(node, Mapping):
            return node
        node = self._result_keys(node)
        document = node.get("document")
        if isinstance(document, Mapping) and (inner := self._nested(document)) is not document:
            node = _replaced(node, "document", new_entry("document", inner, node.entries["document"]))
        match text_value(node.get("kind")):
            case "shell":
                return self._one_command(node)
            case "noop":
                return _noop_result(node)
            case "artifact":
                return _artifact_reference(node)
            case "playbook" if "task" in node:
                return without_keys(node, "task")
            case _:
                return node

    def _one_command(self, node: Mapping) -> Mapping:
        """`cmds: [a, b]`: in order, up to the first failure."""
        entry = node.entries.get("cmds")
        if entry is None or "command" in node:
            return node
        items = items_of(entry.value) if isinstance(entry.value, Sequence) else [entry.value]
        reader = NodeReader(self._report)
        lines = [reader.text(item, "a command of `cmds`") or "" for item in items]
        if not items:
            self._report("wrong-type", entry.value, "`cmds` is empty", "write the commands, each as text")
        text = "\n".join(["set -e", *(line.rstrip("\n") for line in lines)]) + "\n"
        return _replaced(node, "cmds", new_entry("command", new_text(text, entry.value), entry))

    def _result_keys(self, node: Mapping) -> Mapping:
        """`output: {…}` as `spec.result`; a mapping of `output_select` says what is done anyway."""
        if isinstance(node.get("output_select"), Mapping):
            node = without_keys(node, "output_select")
        output = node.get("output")
        if not isinstance(output, Mapping):
            return node
        known = [entry for entry in output if entry.key in _RESULT_KEYS]
        NodeReader(self._report).check_keys(output, list(_RESULT_KEYS), "`output`")
        result = new_mapping(
            (
                new_entry(_RESULT_KEYS[entry.key], entry.value, entry)
                for entry in known
                if not (entry.key == "output_select" and isinstance(entry.value, Mapping))
            ),
            output,
        )
        node = without_keys(node, "output")
        if not result.entries:
            return node
        return with_spec(node, new_mapping([new_entry("result", result, output)], output), output)


def _noop_result(node: Mapping) -> Mapping:
    """`result` of a `noop`: its args; a value that is no mapping is given by code."""
    entry = node.entries.get("result")
    if entry is None or "args" in node or "input" in node:
        return node
    if isinstance(entry.value, Mapping):
        return _replaced(node, "result", new_entry("args", entry.value, entry))
    args = new_mapping([new_entry("value", entry.value, entry)], entry)
    node = _replaced(node, "result", new_entry("args", args, entry))
    kind = node.entries["kind"]
    node = _replaced(node, "kind", new_entry("kind", new_text("python", kind.value), kind))
    return new_mapping([*node, new_entry("code", node_of("result = value\n", entry))], node)


def _artifact_reference(node: Mapping) -> Mapping:
    """`input: {result_ref}` of an `artifact`: its `ref`, read as JSON."""
    entry = node.entries.get("input")
    value = entry.value if entry is not None else None
    if entry is None or not isinstance(value, Mapping) or "result_ref" not in value:
        return node
    left = without_keys(value, "result_ref")
    node = _replaced(node, "input", new_entry("input", left, entry)) if left.entries else node
    node = node if left.entries else without_keys(node, "input")
    reference = value.entries["result_ref"]
    added = [new_entry("ref", reference.value, reference)]
    added += [] if "format" in node else [new_entry("format", node_of("json", reference))]
    added += [] if "action" in node else [new_entry("action", node_of("get", reference))]
    return new_mapping([*node, *added], node)


def with_spec(node: Mapping, added: Mapping, at: Located) -> Mapping:
    """A step or task whose `spec` has this, too; what it says itself wins."""
    own = node.get("spec")
    if own is not None and not isinstance(own, Mapping):
        return node
    merged = merge_specs(added, own) or added
    return new_mapping([*without_keys(node, "spec"), new_entry("spec", merged, at)], node)


def _replaced(node: Mapping, key: str, entry: MappingEntry) -> Mapping:
    """The mapping with another entry in the place of one."""
    return new_mapping((entry if other.key == key else other for other in node), node)


def with_value(node: Node, key: str, change: Callable[[Node], Node]) -> "Mapping":
    """A mapping with one value changed; the same mapping where nothing changes."""
    if not isinstance(node, Mapping) or (entry := node.entries.get(key)) is None:
        return node  # type: ignore[return-value]  # what is no mapping goes back as it came
    value = change(entry.value)
    return node if value is entry.value else _replaced(node, key, new_entry(key, value, entry))


def without_empty(node: Mapping, before: Node) -> Mapping:
    """The mapping without an inner mapping that nothing is left of."""
    if node is before or not isinstance(node, Mapping):  # `with_value` gives back what is no mapping, too
        return node
    empty = [entry.key for entry in node if isinstance(entry.value, Mapping) and not entry.value.entries]
    remaining = [key for key in empty if _is_empty(before, key)]
    return without_keys(node, *(key for key in empty if key not in remaining))


def _is_empty(node: Node, key: str) -> bool:
    value = node.get(key) if isinstance(node, Mapping) else None
    return isinstance(value, Mapping) and not value.entries


def map_items(node: Node, change: Callable[[Node], Node]) -> Node:
    """A list with its items changed; the same list where none changes."""
    if not isinstance(node, Sequence):
        return node
    items = [change(item) for item in node.items]
    changed = any(item is not other for item, other in zip(items, node.items, strict=True))
    return new_sequence(items, node) if changed else node


def map_values(node: Mapping, change: Callable[[Node], Node]) -> Mapping:
    """A mapping with its values changed; the same mapping where none changes."""
    entries = [(entry, change(entry.value)) for entry in entries_of(node)]
    if all(value is entry.value for entry, value in entries):
        return node
    return new_mapping((new_entry(entry.key, value, entry) for entry, value in entries), node)
