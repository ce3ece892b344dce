"""Policies in use: names for the rest of a pipeline, retries, and errors that no rule matches."""

from collections.abc import Iterable
from typing import NamedTuple

from noetl.dsl.dialects.expression_text import (
    ERROR_GUARD,
    as_operand,
    as_template,
    inner_expression,
    literal_expression,
)
from noetl.dsl.dialects.in_use.outcome_reads import kind_condition
from noetl.dsl.dialects.in_use.read_edits import NameReads, ReadPlace, ReadSite
from noetl.dsl.dialects.in_use.recognition import SCOPES, entries_of, items_of
from noetl.dsl.dialects.nodes import (
    NodeReader,
    is_null,
    new_entry,
    new_mapping,
    new_sequence,
    new_text,
    text_value,
    without_keys,
)
from noetl.dsl.document.shape_check import ProblemReporter, describe_node
from noetl.dsl.document.source import (
    Located,
    Mapping,
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    node_of,
    node_value,
)

_OK_GUARD = "{{ outcome.status == 'ok' }}"
_GOES_ON = frozenset({"continue", "jump", "break"})
_RETRY_KEYS = ["max_attempts", "backoff", "backoff_seconds", "retry_on", "retry_on_status"]
_BACKOFFS = {"none", "fixed", "linear", "exponential"}


class InheritedRules(NamedTuple):
    """The rules of a step, loop or executor, and the place where they are lowered for all tasks in it."""

    rules: Sequence
    site: ReadSite


class RuleLowering:
    """Lowers the rules of one document."""

    def __init__(self, reads: NameReads, report: ProblemReporter) -> None:
        self._reads = reads
        self._report = report
        self._reader = NodeReader(report)

    def lower_scope_spec(self, spec: Node, site: ReadSite) -> Node:
        """A spec of a step, loop or the executor: the rules that its tasks inherit."""
        if not isinstance(spec, Mapping):
            return spec
        rules = _own_rules(spec)
        entries = []
        for entry in spec:
            if entry.key != "policy" or not isinstance(entry.value, Mapping):
                entries.append(entry)
                continue
            policy = [self._policy_entry(part, site) for part in entry.value if part.key != "rules"]
            if rules is not None:
                lowered = self._rules(rules, entry.value, site, [])
                policy.append(new_entry("rules", new_sequence(lowered, rules), entry.value.entries["rules"]))
            entries.append(new_entry("policy", new_mapping(policy, entry.value), entry))
        return new_mapping(entries, spec)

    def _policy_entry(self, entry: MappingEntry, site: ReadSite) -> MappingEntry:
        condition = site._replace(role=ReadPlace.CONDITION)
        return new_entry(entry.key, self._reads.rewrite(entry.value, condition), entry)

    def lower_task_policy(
        self, task: Mapping, site: ReadSite, inherited: InheritedRules | None
    ) -> tuple[Mapping | None, list[MappingEntry]]:
        """The task's policy, and the writes of its `set` that stay there.

        Names without a scope are written by every rule with which the pipeline goes on.
        """
        names, remaining = self._task_writes(task.get("set"), site._replace(role=ReadPlace.TASK_SET))
        retry = self._retry_rule(task.entries.get("retry"))
        spec = task.get("spec")
        own = _own_rules(spec)
        rules = own
        if own is None and inherited is not None:
            needed = names or retry is not None or self._differs(inherited, site)
            rules = inherited.rules if needed else None
        if rules is None and not names and retry is None:
            return None, remaining
        at = task.entries.get("set") or task.entries.get("retry") or task
        policy = spec.get("policy") if isinstance(spec, Mapping) else None
        source = policy if isinstance(policy, Mapping) else None
        lowered = self._rules(rules or new_sequence([], at), source, site, names)
        if retry is not None:
            lowered.insert(0, retry)
        extra = [entry for entry in source if entry.key != "rules"] if source is not None else []
        return new_mapping(
            [*extra, new_entry("rules", new_sequence(lowered, rules or at), at)], at
        ), remaining

    def _differs(self, inherited: InheritedRules, site: ReadSite) -> bool:
        """Whether rules of a scope around a task are other ones for it: an http answer is read otherwise."""
        source = inherited.rules
        lowered = (self._rules(source, None, at, []) for at in (inherited.site, site))
        of_scope, of_task = (node_value(new_sequence(rules, source)) for rules in lowered)
        return of_scope != of_task

    def _task_writes(
        self, node: Node | None, site: ReadSite
    ) -> tuple[list[MappingEntry], list[MappingEntry]]:
        names: list[MappingEntry] = []
        remaining: list[MappingEntry] = []
        for entry in entries_of(node):
            value = self._reads.rewrite(entry.value, site)
            if entry.key.startswith("step."):
                remaining.append(new_entry("run." + entry.key.removeprefix("step."), value, entry))
            elif entry.key.startswith(SCOPES):
                remaining.append(new_entry(entry.key, value, entry))
            else:
                names.append(new_entry(entry.key, value, entry))
        return names, remaining

    def _rules(
        self, rules: Sequence, policy: Mapping | None, site: ReadSite, names: list[MappingEntry]
    ) -> list[Node]:
        lowered: list[Node] = []
        errors_caught = has_else = False
        for item in rules.items:
            if not isinstance(item, Mapping):
                lowered.append(item)
                continue
            when = item.entries.get("when")
            guard = (
                self._reads.rewrite(when.value, site._replace(role=ReadPlace.RULE))
                if when is not None
                else None
            )
            has_else = has_else or "else" in item or (isinstance(guard, Scalar) and guard.value is True)
            after_error = not errors_caught and text_value(guard) != _OK_GUARD
            entries = []
            for entry in item:
                if entry.key == "when" and guard is not None:
                    entries.append(new_entry("when", guard, entry))
                elif entry.key in ("then", "else"):
                    body = self._body(entry.value, site, names, after_error=after_error)
                    entries.append(new_entry(entry.key, body, entry))
                else:
                    entries.append(entry)
            lowered.append(new_mapping(entries, item))
            errors_caught = errors_caught or text_value(guard) == ERROR_GUARD
        if has_else or (policy is not None and "on_unmatched" in policy and not names):
            return lowered
        at: Located = rules
        if not errors_caught:
            lowered.append(node_of({"when": ERROR_GUARD, "then": {"do": "fail"}}, at))
        then = [new_entry("do", node_of("continue", at))]
        if names:
            then.append(new_entry("set_iter", new_mapping(names, names[0]), names[0]))
        body = new_mapping([new_entry("then", new_mapping(then, at))], at)
        lowered.append(new_mapping([new_entry("else", body)], at))
        return lowered

    def _body(self, node: Node, site: ReadSite, names: list[MappingEntry], *, after_error: bool) -> Node:
        """A directive, or `{then: directive}` as an `else` may have it."""
        if not isinstance(node, Mapping):
            return node
        if list(node.entries) == ["then"]:
            entry = node.entries["then"]
            inner = self._body(entry.value, site, names, after_error=after_error)
            return new_mapping([new_entry("then", inner, entry)], node)
        return self._then(node, site._replace(role=ReadPlace.RULE_VALUE), names, after_error=after_error)

    def _then(
        self, then: Mapping, site: ReadSite, names: list[MappingEntry], *, after_error: bool
    ) -> Mapping:
        entries: dict[str, MappingEntry] = {}
        writes: dict[str, list[MappingEntry]] = {}
        for entry in then:
            value = self._reads.rewrite(entry.value, site)
            if entry.key == "to" and site.step is not None and (target := text_value(value)) is not None:
                value = new_text(site.step.first_parts.get(target, target), value)
            if entry.key != "set" or not isinstance(value, Mapping):
                entries[entry.key] = new_entry(entry.key, value, entry)
                continue
            for write in value:
                scope, key = _scope_of(write.key)
                writes.setdefault(scope, []).append(new_entry(key, write.value, write))
                entries.setdefault(scope, entry)
        if names and text_value(then.get("do")) in _GOES_ON:
            present = [_with_null(entry) if after_error else entry for entry in names]
            own = entries_of(entries["set_iter"].value) if "set_iter" in entries else ()
            writes["set_iter"] = [*present, *own, *writes.get("set_iter", [])]
            entries.setdefault("set_iter", names[0])
        for scope, scope_writes in writes.items():
            before = entries[scope].value if scope in then.entries and scope != "set" else None
            remaining = [] if scope == "set_iter" and names else entries_of(before)
            merged = new_mapping([*remaining, *scope_writes], entries[scope])
            entries[scope] = new_entry(scope, merged, entries[scope])
        return new_mapping(entries.values(), then)

    def _retry_rule(self, entry: MappingEntry | None) -> Mapping | None:
        """`retry` of a task as the first of its rules."""
        if entry is None or is_null(entry.value):
            return None
        value = entry.value
        if isinstance(value, Scalar):
            if value.value is False:
                return None
            attempts = 3 if value.value is True else self._reader.whole_number(value, "`retry`")
            if attempts is None:
                return None
            return _retry(ERROR_GUARD, {"attempts": max(attempts, 1)}, entry)
        retry = self._reader.mapping(value, "`retry`")
        if retry is None:
            return None
        self._reader.check_keys(retry, _RETRY_KEYS, "`retry`")
        options: dict[str, object] = {}
        attempts_node = retry.get("max_attempts")
        if attempts_node is not None:
            options["attempts"] = node_value(attempts_node)
        self._backoff(retry, options)
        return _retry(self._retry_guard(retry), options, entry)

    def _backoff(self, retry: Mapping, options: dict[str, object]) -> None:
        backoff = retry.entries.get("backoff")
        seconds = retry.entries.get("backoff_seconds")
        if backoff is not None:
            value = node_value(backoff.value)
            if isinstance(value, str) and value in _BACKOFFS:
                options["backoff"] = value
            elif isinstance(value, int | float) and not isinstance(value, bool):
                # A factor: the wait grows by it, and ours doubles.
                options["backoff"] = "exponential" if value > 1 else "none"
            else:
                hint = f"one of {', '.join(f'`{name}`' for name in sorted(_BACKOFFS))}, or a factor"
                message = f"`backoff` cannot be {describe_node(backoff.value)}"
                self._report("bad-value", backoff.value, message, hint)
        if seconds is not None:
            options["delay"] = node_value(seconds.value)
        elif options.get("backoff") not in (None, "none", "fixed"):
            options["delay"] = 1

    def _retry_guard(self, retry: Mapping) -> str:
        conditions: list[str] = []
        kinds = [str(item.value) for item in items_of(retry.get("retry_on")) if isinstance(item, Scalar)]
        if isinstance(single := retry.get("retry_on"), Scalar):
            kinds = [str(single.value)]
        if kinds:
            conditions.append(kind_condition("outcome", "outcome.http.status", kinds))
        statuses = retry.get("retry_on_status")
        if isinstance(statuses, Scalar):
            conditions.append(f"outcome.http.status == {literal_expression(statuses.value)}")
        elif isinstance(statuses, Sequence):
            listed = ", ".join(
                literal_expression(item.value) for item in statuses.items if isinstance(item, Scalar)
            )
            conditions.append(f"outcome.http.status in [{listed}]")
        if not conditions:
            return ERROR_GUARD
        joined = " or ".join(conditions)
        joined = f"({joined})" if len(conditions) > 1 or " or " in joined else joined
        return as_template(f"outcome.status == 'error' and {joined}")


def _retry(guard: str, options: dict[str, object], at: Located) -> Mapping:
    then = node_of({"do": "retry", **options}, at)  # type: ignore[dict-item]  # plain values of the document
    return new_mapping([new_entry("when", new_text(guard, at)), new_entry("then", then)], at)


def _own_rules(spec: Node | None) -> Sequence | None:
    policy = spec.get("policy") if isinstance(spec, Mapping) else None
    rules = policy.get("rules") if isinstance(policy, Mapping) else None
    return rules if isinstance(rules, Sequence) else None


def inherited_rules(scopes: Iterable[tuple[Node | None, ReadSite]]) -> InheritedRules | None:
    """The rules that a task without its own has from the scopes around it; the innermost come first."""
    rules_by_scope = ((_own_rules(spec), site) for spec, site in scopes)
    return next((InheritedRules(rules, site) for rules, site in rules_by_scope if rules is not None), None)


def _scope_of(key: str) -> tuple[str, str]:
    """The key of a `then` that writes a key of its `set`."""
    if key.startswith("step."):
        return "set_run", key.removeprefix("step.")
    if key.startswith(SCOPES):
        return "set", key
    return "set_ctx", key


def _with_null(entry: MappingEntry) -> MappingEntry:
    """A write that is null where an error has no such result."""
    text = text_value(entry.value)
    expression = inner_expression(text) if text is not None else None
    if expression is None or expression == "outcome.result" or not isinstance(entry.value, Scalar):
        return entry
    return new_entry(
        entry.key, new_text(as_template(f"{as_operand(expression)} | default(none)"), entry.value), entry
    )


def without_policy(spec: Node | None) -> list[MappingEntry]:
    """The entries of a spec beside its policy."""
    return list(without_keys(spec, "policy")) if isinstance(spec, Mapping) else []
