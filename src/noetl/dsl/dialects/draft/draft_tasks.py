"""The tasks of a draft pipeline: `eval` becomes policy rules (003 §5, §6)."""

from noetl.dsl.dialects.draft.draft_variables import Variables
from noetl.dsl.dialects.draft.outcome_status import status_edits
from noetl.dsl.dialects.node_reader import Reader
from noetl.dsl.dialects.nodes import entry, is_nothing, mapping, merged, sequence, text, without
from noetl.dsl.dialects.template_edits import rewritten_node
from noetl.dsl.document.shape_check import Report
from noetl.dsl.document.source import Entry, Mapping, Node, Scalar, Sequence, node_of

_ERROR = "{{ outcome.status == 'error' }}"
# Taken as they stand, never rendered.
_LITERAL = frozenset({"code", "document"})
_WRITES = frozenset({"set_iter", "set_run", "set_shared", "set_vars"})
_ELSE = frozenset({"else", "expr", "when"})


class Tasks:
    """Upgrades the tasks of one step."""

    def __init__(self, variables: Variables, report: Report) -> None:
        self._variables = variables
        self._report = report
        self._read = Reader(report)
        self._names = variables.finder()

    def pipeline(self, node: Node) -> Node:
        """A pipeline: a list of tasks, or a single one."""
        if isinstance(node, Sequence):
            return sequence((self._task(item) for item in node.items), node)
        if isinstance(node, Mapping):
            return sequence([self._task(node)], node)
        return node

    def _task(self, node: Node) -> Node:
        """`- label: {…}` with the label as `name`; other forms keep theirs."""
        if not isinstance(node, Mapping):
            return node
        if "kind" in node or "name" in node or len(node.entries) != 1:
            return self.body(node)
        label = next(iter(node))
        if isinstance(label.value, Scalar) and label.value.value is None:
            return mapping([entry("name", text(label.key, label), label)], node)
        if not isinstance(label.value, Mapping):
            return node
        task = self.body(label.value)
        if "name" in task:
            # Some kinds have an input `name`; the label must not take its place.
            return mapping([entry(label.key, task, label)], node)
        return mapping([entry("name", text(label.key, label), label), *task], node)

    def body(self, task: Mapping) -> Mapping:
        """The task's own keys, `eval` as `spec.policy.rules`."""
        if is_nothing(task.get("eval")):
            task = without(task, "eval")
        given = task.entries.get("eval")
        spec = task.entries.get("spec")
        rules = self._rules(given) if given else None
        entries: list[Entry] = []
        for item in task:
            if item.key in _LITERAL:
                entries.append(item)
            elif item.key not in ("eval", "spec"):
                entries.append(entry(item.key, rewritten_node(item.value, self._names), item))
        if spec is not None:
            entries.append(entry("spec", rewritten_node(spec.value, self._names), spec))
        if given is not None and rules is not None:
            entries.append(self._with_policy(mapping(entries, task).entries.get("spec"), given, rules))
        return mapping(entries, task)

    def _with_policy(self, spec: Entry | None, given: Entry, rules: Sequence) -> Entry:
        """`spec` with these rules as its policy."""
        if spec is not None and not isinstance(spec.value, Mapping):
            return spec
        policy = spec.value.get("policy") if spec and isinstance(spec.value, Mapping) else None
        if isinstance(policy, Mapping) and "rules" in policy:
            self._report(
                "conflicting-keys", given, "the task has both `eval` and `spec.policy`", "keep one of them"
            )
        added = entry("policy", merged(policy, entry("rules", rules, given)), given)
        return entry("spec", merged(spec.value if spec else None, added), spec or given)

    def _rules(self, given: Entry) -> Sequence | None:
        """The rules, and the draft's own default behind them: an error that nothing matched fails."""
        items = self._read.sequence(given.value, "`eval`")
        if not items:
            return None
        rules = [rule for item in items if (rule := self._rule(item)) is not None]
        if not any("else" in rule or _catches_errors(rule) for rule in rules):
            rules.append(
                mapping(
                    [entry("when", text(_ERROR, given)), entry("then", node_of({"do": "fail"}, given))], given
                )
            )
        return sequence(rules, given.value)

    def _rule(self, node: Node) -> Mapping | None:
        rule = self._read.mapping(node, "an entry of `eval`")
        if rule is None:
            return None
        otherwise = rule.entries.get("else")
        if otherwise is not None:
            then = entry("then", self._then(self._otherwise(rule, otherwise)), otherwise)
            return mapping([entry("else", mapping([then], otherwise), otherwise)], rule)
        condition = rule.entries.get("expr") or rule.entries.get("when")
        if condition is None:
            self._report("missing-key", rule, "an entry of `eval` needs `expr` or `else`")
            return None
        when = entry("when", self._value(condition.value), condition)
        return mapping([when, entry("then", self._then(_directive(rule)), rule)], rule)

    def _otherwise(self, rule: Mapping, otherwise: Entry) -> Mapping:
        """`else: {do: …}`, `else: {then: {…}}`, or an empty `else` beside its directive."""
        node = otherwise.value
        if isinstance(node, Scalar) and node.value is None:
            return _directive(rule)
        if extra := [key for key in rule.entries if key != "else"]:
            self._report(
                "conflicting-keys",
                rule.entries[extra[0]],
                f"`{extra[0]}` stands beside an `else` that says more",
            )
        body = self._read.mapping(node, "`else`")
        if body is None:
            # What was reported has a harmless value, so nobody hears of it twice.
            return mapping([entry("do", text("continue", otherwise))], otherwise)
        return _directive(body)

    def _then(self, directive: Mapping) -> Mapping:
        """What a matching rule does, in its order; writes go to the scope that holds them now."""
        entries: dict[str, Entry] = {}
        writes: dict[str, list[Entry]] = {}
        for item in directive:
            if item.key in _WRITES and isinstance(item.value, Mapping):
                for scope, write in self._writes(item.key, item.value):
                    writes.setdefault(scope, []).append(write)
                    entries.setdefault(scope, item)
            elif item.key == "backoff" and isinstance(item.value, Scalar) and item.value.value == "fixed":
                entries["backoff"] = entry("backoff", text("none", item.value), item)
            elif item.key in ("set_vars", "set_shared"):
                self._read.mapping(item.value, f"`{item.key}`")
            else:
                entries[item.key] = entry(item.key, self._value(item.value), item)
        for scope, found in writes.items():
            entries[scope] = entry(scope, mapping(found, entries[scope].value), entries[scope])
        return mapping(entries.values(), directive)

    def _writes(self, scope: str, values: Mapping) -> list[tuple[str, Entry]]:
        found: list[tuple[str, Entry]] = []
        for item in values:
            value = self._value(item.value)
            if scope in ("set_iter", "set_run"):
                found.append((scope, entry(item.key, value, item)))
            elif scope == "set_vars":
                target, key = self._variables.written(item.key)
                found.append((target, entry(key, value, item)))
            else:
                shared = entry(item.key, value, item)
                found += [("set_run", entry(key, node, item)) for key, node in self._variables.shared(shared)]
        return found

    def _value(self, node: Node) -> Node:
        return rewritten_node(node, self._names, status_edits)


def _directive(rule: Mapping) -> Mapping:
    """The keys of an entry that say what to do; a `then` of its own counts as well."""
    then = rule.get("then")
    own = without(rule, "then", *_ELSE)
    return mapping([*own, *then], rule) if isinstance(then, Mapping) else own


def _catches_errors(rule: Mapping) -> bool:
    when = rule.get("when")
    return isinstance(when, Scalar) and when.value in (True, _ERROR)
