"""The tasks of a draft pipeline: `eval` becomes policy rules (003 §5, §6)."""

from collections.abc import Iterator

from noetl.dsl.dialects.constant_comparison import find_comparison
from noetl.dsl.dialects.draft.draft_variables import DraftVariables
from noetl.dsl.dialects.expression_text import ERROR_GUARD, Edit, TemplateTokens, edit_node, string_constant
from noetl.dsl.dialects.nodes import (
    NodeReader,
    is_null,
    new_entry,
    new_mapping,
    new_sequence,
    new_text,
    with_entry,
    without_keys,
)
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar, Sequence, node_of
from noetl.expr.language.lexer import SourceToken
from noetl.expr.use import Use

# Taken as they stand, never rendered.
_LITERAL = frozenset({"code", "document"})
_WRITES = frozenset({"set_iter", "set_run", "set_shared", "set_vars"})
_ELSE = frozenset({"else", "expr", "when"})

_DRAFT_STATUS = "('success' if outcome.status == 'ok' else outcome.status)"
"""The draft's `outcome.status` is `success` or `error`; the canonical one is `ok` or `error`."""
_OUTCOME = frozenset({"outcome", "output"})


class DraftTasks:
    """Upgrades the tasks of one step."""

    def __init__(self, variables: DraftVariables, report: ProblemReporter) -> None:
        self._variables = variables
        self._report = report
        self._reader = NodeReader(report)
        self._read_edits = variables.read_edits()

    def upgrade_pipeline(self, node: Node) -> Node:
        """A pipeline: a list of tasks, or a single one."""
        if isinstance(node, Sequence):
            return new_sequence((self._task(item) for item in node.items), node)
        if isinstance(node, Mapping):
            return new_sequence([self._task(node)], node)
        return node

    def _task(self, node: Node) -> Node:
        """`- label: {…}` with the label as `name`; other forms keep theirs."""
        if not isinstance(node, Mapping):
            return node
        if "kind" in node or "name" in node or len(node.entries) != 1:
            return self.upgrade_task(node)
        label = next(iter(node))
        if isinstance(label.value, Scalar) and label.value.value is None:
            return new_mapping([new_entry("name", new_text(label.key, label), label)], node)
        if not isinstance(label.value, Mapping):
            return node
        task = self.upgrade_task(label.value)
        if "name" in task:
            # Some kinds have an input `name`; the label must not take its place.
            return new_mapping([new_entry(label.key, task, label)], node)
        return new_mapping([new_entry("name", new_text(label.key, label), label), *task], node)

    def upgrade_task(self, task: Mapping) -> Mapping:
        """The task's own keys, `eval` as `spec.policy.rules`."""
        if is_null(task.get("eval")):
            task = without_keys(task, "eval")
        eval_entry = task.entries.get("eval")
        spec = task.entries.get("spec")
        rules = self._rules(eval_entry) if eval_entry else None
        entries: list[MappingEntry] = []
        for entry in task:
            if entry.key in _LITERAL:
                entries.append(entry)
            elif entry.key == "set":
                # Written after the task, so it can read `outcome`, as `eval` can.
                entries.append(new_entry(entry.key, self._edit(entry.value), entry))
            elif entry.key not in ("eval", "spec"):
                entries.append(new_entry(entry.key, edit_node(entry.value, self._read_edits), entry))
        if spec is not None:
            entries.append(new_entry("spec", edit_node(spec.value, self._read_edits), spec))
        if eval_entry is not None and rules is not None:
            entries.append(
                self._with_policy(new_mapping(entries, task).entries.get("spec"), eval_entry, rules)
            )
        return new_mapping(entries, task)

    def _with_policy(
        self, spec: MappingEntry | None, eval_entry: MappingEntry, rules: Sequence
    ) -> MappingEntry:
        """`spec` with these rules as its policy."""
        if spec is not None and not isinstance(spec.value, Mapping):
            return spec
        policy = spec.value.get("policy") if spec and isinstance(spec.value, Mapping) else None
        if isinstance(policy, Mapping) and "rules" in policy:
            self._report(
                "conflicting-keys",
                eval_entry,
                "the task has both `eval` and `spec.policy`",
                "keep one of them",
            )
        policy_entry = new_entry(
            "policy", with_entry(policy, new_entry("rules", rules, eval_entry)), eval_entry
        )
        return new_entry("spec", with_entry(spec.value if spec else None, policy_entry), spec or eval_entry)

    def _rules(self, eval_entry: MappingEntry) -> Sequence | None:
        """The rules, and the draft's own default behind them: an error that nothing matched fails."""
        items = self._reader.sequence(eval_entry.value, "`eval`")
        if not items:
            return None
        rules = [rule for item in items if (rule := self._rule(item)) is not None]
        if not any("else" in rule or _catches_errors(rule) for rule in rules):
            rules.append(
                new_mapping(
                    [
                        new_entry("when", new_text(ERROR_GUARD, eval_entry)),
                        new_entry("then", node_of({"do": "fail"}, eval_entry)),
                    ],
                    eval_entry,
                )
            )
        return new_sequence(rules, eval_entry.value)

    def _rule(self, node: Node) -> Mapping | None:
        rule = self._reader.mapping(node, "an entry of `eval`")
        if rule is None:
            return None
        otherwise = rule.entries.get("else")
        if otherwise is not None:
            then = new_entry("then", self._then(self._else_directive(rule, otherwise)), otherwise)
            return new_mapping([new_entry("else", new_mapping([then], otherwise), otherwise)], rule)
        condition = rule.entries.get("expr") or rule.entries.get("when")
        if condition is None:
            self._report("missing-key", rule, "an entry of `eval` needs `expr` or `else`")
            return None
        when = new_entry("when", self._edit(condition.value), condition)
        return new_mapping([when, new_entry("then", self._then(_directive(rule)), rule)], rule)

    def _else_directive(self, rule: Mapping, otherwise: MappingEntry) -> Mapping:
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
        body = self._reader.mapping(node, "`else`")
        if body is None:
            # What was reported has a harmless value, so nobody hears of it twice.
            return new_mapping([new_entry("do", new_text("continue", otherwise))], otherwise)
        return _directive(body)

    def _then(self, directive: Mapping) -> Mapping:
        """What a matching rule does, in its order; writes go to the scope that holds them now."""
        entries: dict[str, MappingEntry] = {}
        writes: dict[str, list[MappingEntry]] = {}
        for entry in directive:
            if entry.key in _WRITES and isinstance(entry.value, Mapping):
                for scope, write in self._writes(entry.key, entry.value):
                    writes.setdefault(scope, []).append(write)
                    entries.setdefault(scope, entry)
            elif entry.key == "backoff" and isinstance(entry.value, Scalar) and entry.value.value == "fixed":
                entries["backoff"] = new_entry("backoff", new_text("none", entry.value), entry)
            elif entry.key in ("set_vars", "set_shared"):
                self._reader.mapping(entry.value, f"`{entry.key}`")
            else:
                entries[entry.key] = new_entry(entry.key, self._edit(entry.value), entry)
        for scope, scope_writes in writes.items():
            entries[scope] = new_entry(scope, new_mapping(scope_writes, entries[scope].value), entries[scope])
        return new_mapping(entries.values(), directive)

    def _writes(self, scope: str, values: Mapping) -> list[tuple[str, MappingEntry]]:
        writes: list[tuple[str, MappingEntry]] = []
        for entry in values:
            value = self._edit(entry.value)
            if scope in ("set_iter", "set_run"):
                writes.append((scope, new_entry(entry.key, value, entry)))
            elif scope == "set_vars":
                target, key = self._variables.write_target(entry.key)
                writes.append((target, new_entry(key, value, entry)))
            else:
                shared = new_entry(entry.key, value, entry)
                writes += [
                    ("set_run", new_entry(key, node, entry))
                    for key, node in self._variables.shared_writes(shared)
                ]
        return writes

    def _edit(self, node: Node) -> Node:
        return edit_node(node, self._read_edits, status_edits)


def _directive(rule: Mapping) -> Mapping:
    """The keys of an entry that say what to do; a `then` of its own counts as well."""
    then = rule.get("then")
    own = without_keys(rule, "then", *_ELSE)
    return new_mapping([*own, *then], rule) if isinstance(then, Mapping) else own


def _catches_errors(rule: Mapping) -> bool:
    when = rule.get("when")
    return isinstance(when, Scalar) and when.value in (True, ERROR_GUARD)


def status_edits(template: TemplateTokens) -> Iterator[Edit]:
    """Gives every `outcome.status` its draft meaning; a comparison with constants changes those instead.

    An `outcome` of which no key is written out becomes a value with that status, wherever it goes then.
    """
    for use in template.uses:
        if use.path[0] not in _OUTCOME:
            continue
        keys = template.path_ends(use)
        if len(keys) == 1:
            name, end = keys[0]
            yield Edit(use.offset, end, f"dict({name}, status={_DRAFT_STATUS[1:-1]})")
            continue
        key, end = keys[1]
        if key != "status":
            continue
        constants = _compared_constants(template, use, end) if len(keys) == 2 else None
        if constants is None:
            yield Edit(use.offset, end, template.operand_text(_DRAFT_STATUS, use, end))
            continue
        for token in constants:
            if string_constant(token) == "success":
                yield Edit(token.offset, token.offset + len(token.text), token.text[0] + "ok" + token.text[0])


def _compared_constants(template: TemplateTokens, use: Use, end: int) -> list[SourceToken] | None:
    """The constants the status is compared with, or None if that is not all there is to it."""
    comparison = find_comparison(template, use, end)
    # The draft's status is never `ok`: a comparison with it must stay false.
    if comparison is None or any(string_constant(token) == "ok" for token in comparison.constants):
        return None
    return comparison.constants
