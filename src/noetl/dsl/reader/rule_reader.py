"""Lists of rules: the policies of tasks and the admission of steps."""

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar, get_args

from noetl.dsl.document.context import ELSE, ExpressionRole, PlaybookPart
from noetl.dsl.document.playbook import (
    Admission,
    AdmitRule,
    Break,
    Continue,
    Directive,
    Fail,
    Guard,
    Jump,
    Policy,
    RetryTask,
    Rule,
    Then,
    Write,
)
from noetl.dsl.document.shape_check import describe_node, did_you_mean, is_empty
from noetl.dsl.document.shapes import REFUSED_KEYS, AllowShape, PolicyShape, ThenShape
from noetl.dsl.document.source import Mapping, Node, Scalar, Sequence
from noetl.dsl.document.spec import inheritable_spec
from noetl.dsl.reader.reader_context import ReaderContext, position_of, scalar_text
from noetl.expr.expression import Expression
from noetl.expr.template import Template

_T = TypeVar("_T")

_TAGS = {directive: str(directive.__struct_config__.tag) for directive in get_args(Directive)}
_DIRECTIVES = frozenset(_TAGS.values())
_OPTIONS = {option: tag for directive, tag in _TAGS.items() for option in directive.__struct_fields__}
"""The directive that each option of a `then` belongs to."""


class PipelineLabels(NamedTuple):
    """What a rule needs to know of the pipeline around it; no labels means any."""

    labels: Collection[str] | None
    label: str
    previous: str | None


def read_policy(
    context: ReaderContext, node: Node, part: PlaybookPart, pipeline: PipelineLabels
) -> Policy | None:
    """A task's policy; None if it is no object with rules (000 §13)."""
    rules = node.get("rules") if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or not isinstance(rules, Sequence):
        described = (
            describe_node(node) if not isinstance(node, Mapping) else "a mapping without a list of `rules`"
        )
        message = f"a policy is an object containing `rules`, not {described}"
        context.report("policy-shape", node, message, "write `policy: { rules: […] }`")
        return None
    context.read_rules[id(rules)] = rules
    shaped = context.shape_checker.check_struct(node, PolicyShape, "a policy")
    if shaped is None:
        return None

    def read_then(then: Node, index: int) -> Then | None:
        return _read_then(context, then, part._replace(rule=index), pipeline)

    parsed_rules, otherwise = _read_rules(context, rules, part, read_then)
    on_unmatched = scalar_text(shaped.get("on_unmatched")) or "continue"
    return Policy(
        rules=tuple(Rule(when, then, position_of(at)) for when, then, at in parsed_rules),
        otherwise=otherwise,
        on_unmatched=on_unmatched,  # type: ignore[arg-type]  # the shape allows these two alone
        position=position_of(node),
    )


def check_unused_rules(context: ReaderContext, spec: Mapping | None, labels: Collection[str] | None) -> None:
    """Rules that a scope offers to tasks, but none inherits, are checked where they stand."""
    offered = inheritable_spec(spec)
    policy = offered.get("policy") if offered else None
    rules = policy.get("rules") if isinstance(policy, Mapping) else None
    if policy is not None and rules is not None and id(rules) not in context.read_rules:
        read_policy(context, policy, PlaybookPart(ExpressionRole.POLICY), PipelineLabels(labels, "", ""))


def read_admission(context: ReaderContext, node: Mapping, step: str) -> Admission | None:
    """The gate of a step, already in shape but for its rules."""
    part = PlaybookPart(ExpressionRole.ADMIT, step)
    rules = node.get("rules")
    if not isinstance(rules, Sequence):
        return None
    parsed_rules, otherwise = _read_rules(context, rules, part, lambda then, _: _read_allow(context, then))
    admit_rules = tuple(AdmitRule(when, allow, position_of(at)) for when, allow, at in parsed_rules)
    on_deny = scalar_text(node.get("on_deny")) or ("wait" if _reads_signals(admit_rules) else "park")
    timeout = node.get("timeout")
    if timeout is not None and on_deny != "wait":
        message = f"`timeout` belongs to `on_deny: wait`, not `on_deny: {on_deny}`"
        context.report("directive-option", timeout, message, "remove it; it has no effect here")
    return Admission(
        rules=admit_rules,
        otherwise=otherwise,
        on_deny=on_deny,  # type: ignore[arg-type]  # the shape allows these alone
        position=position_of(node),
        timeout=read_number(context, timeout, part),
    )


def read_number(context: ReaderContext, node: Node | None, part: PlaybookPart) -> float | Expression | None:
    """An optional number that may be an expression, already in shape."""
    if not isinstance(node, Scalar) or node.value is None:
        return None
    return context.read_expression(node, part) if isinstance(node.value, str) else float(node.value)


def read_integer(context: ReaderContext, node: Node | None, part: PlaybookPart) -> int | Expression | None:
    value = read_number(context, node, part)
    return int(value) if isinstance(value, float) else value


def _read_rules(
    context: ReaderContext, rules: Sequence, part: PlaybookPart, read: Callable[[Node, int], _T | None]
) -> tuple[list[tuple[Guard, _T, Mapping]], _T | None]:
    """The `when` rules in order and the one `else`, wherever it stands."""
    parsed_rules: list[tuple[Guard, _T, Mapping]] = []
    otherwise: _T | None = None
    first_else: Mapping | None = None
    for item in rules.items:
        if not isinstance(item, Mapping):
            context.report("rule-shape", item, f"a rule is a mapping, not {describe_node(item)}", _FORMS)
            continue
        _refuse_other_keys(context, item)
        if "else" in item:
            if first_else is not None:
                hint = f"the first stands in line {first_else.line}"
                context.report(
                    "two-else", item.entries["else"], "there is one `else` in a list of rules", hint
                )
                continue
            first_else = item
            otherwise = _read_else(context, item, read)
        elif "when" in item and not is_empty(item.entries["when"].value):
            guard = context.read_guard(item.entries["when"].value, part)
            then = item.get("then")
            if then is None:
                context.report("rule-shape", item, "the rule does not say what follows", "add `then:`")
            elif (verdict := read(then, len(parsed_rules))) is not None:
                parsed_rules.append((guard, verdict, item))
        elif not set(item.entries) & set(REFUSED_KEYS["Rule"]):
            context.report("rule-shape", item, "a rule needs `when` or `else`", _FORMS)
    return parsed_rules, otherwise


_FORMS = 'write `- when: "{{ … }}"` with `then: …`, or `- else:` with `then: …`'


def _read_else(context: ReaderContext, item: Mapping, read: Callable[[Node, int], _T | None]) -> _T | None:
    """`else: {then: X}`, `else: X`, and an empty `else:` beside `then: X` are equal."""
    if "when" in item:
        context.report("rule-shape", item.entries["when"], "a rule has `when` or `else`, not both")
    body = item.entries["else"].value
    beside = item.get("then")
    if not is_empty(body) and beside is not None:
        context.report("rule-shape", item.entries["then"], "`then` stands both under and beside `else`")
    inner = body.get("then") if isinstance(body, Mapping) and list(body.entries) == ["then"] else body
    chosen = beside if is_empty(body) else inner
    if chosen is None or is_empty(chosen):
        context.report("rule-shape", item, "the `else` does not say what follows", "add `then:`")
        return None
    return read(chosen, ELSE)


def _refuse_other_keys(context: ReaderContext, rule: Mapping) -> None:
    known = ("when", "then", "else", "desc")
    for entry in rule:
        if entry.key in known:
            continue
        if (moved := REFUSED_KEYS["Rule"].get(entry.key)) is not None:
            context.report(moved.code, entry, moved.message, moved.hint)
        else:
            hint = did_you_mean(entry.key, known) or _FORMS
            context.report("unknown-key", entry, f"a rule has no key `{entry.key}`", hint)


def _read_allow(context: ReaderContext, node: Node) -> bool | None:
    shaped = context.shape_checker.check_struct(node, AllowShape, "the verdict of an admission rule")
    allow = shaped.get("allow") if shaped else None
    return bool(allow.value) if isinstance(allow, Scalar) else None


def _read_then(
    context: ReaderContext, node: Node, part: PlaybookPart, pipeline: PipelineLabels
) -> Then | None:
    if isinstance(node, Scalar) and scalar_text(node) in _DIRECTIVES:
        message = f"`then` must be a mapping, not {describe_node(node)}"
        context.report("wrong-type", node, message, f"write `{{ do: {scalar_text(node)} }}`")
        return None
    shaped = context.shape_checker.check_struct(node, ThenShape, "`then`")
    if shaped is None:
        return None
    do = scalar_text(shaped.get("do"))
    for key, owner in _OPTIONS.items():
        if do and key in shaped and do != owner:
            message = f"`{key}` belongs to `do: {owner}`, not `do: {do}`"
            context.report(
                "directive-option", shaped.entries[key], message, "remove it; it has no effect here"
            )
    writing = part._replace(role=ExpressionRole.POLICY_WRITE)
    writes = _read_writes(context, shaped, writing)
    set_prev = shaped.get("set_prev")
    directive = _read_directive(context, do, shaped, part, pipeline)
    if directive is None:
        return None
    prev: Template | None = context.read_template(set_prev, writing) if set_prev is not None else None
    return Then(directive, position_of(node), writes, prev)


_SCOPES = {"set_iter": "iter", "set_ctx": "ctx", "set_run": "run"}


def _read_writes(context: ReaderContext, then: Mapping, part: PlaybookPart) -> tuple[Write, ...]:
    """All writes of a rule in document order: each sees those before it."""
    writes: list[Write] = []
    for entry in then:
        if (scope := _SCOPES.get(entry.key)) is not None:
            writes += context.read_writes(entry.value, scope, part)
        elif entry.key == "set":
            writes += context.read_prefixed_writes(entry.value, part)
    return tuple(writes)


def _read_directive(
    context: ReaderContext, do: str, then: Mapping, part: PlaybookPart, pipeline: PipelineLabels
) -> Directive | None:
    match do:
        case "continue":
            return Continue()
        case "break":
            return Break()
        case "fail":
            message = then.get("message")
            return Fail(context.read_template(message, part) if message is not None else None)
        case "jump":
            target = _read_jump_target(context, then, pipeline)
            return Jump(target) if target is not None else None
        case "retry":
            backoff = scalar_text(then.get("backoff")).replace("fixed", "none") or "none"
            attempts = read_integer(context, then.get("attempts"), part)
            delay = read_number(context, then.get("delay"), part)
            return RetryTask(
                attempts=3 if attempts is None else attempts,
                backoff=backoff,  # type: ignore[arg-type]  # the shape allows these alone
                delay=0.0 if delay is None else delay,
                max_delay=_plain_number(then.get("max_delay")),
                jitter=_plain_number(then.get("jitter")),
            )
        case _:
            return None


def _read_jump_target(context: ReaderContext, then: Mapping, pipeline: PipelineLabels) -> str | None:
    to = then.get("to")
    if to is None:
        context.report(
            "missing-key",
            then,
            "a jump needs the key `to`",
            "add `to:`, the label of a task of this pipeline",
        )
        return None
    target = scalar_text(to)
    if target == "previous":
        if pipeline.previous is None:
            context.report("jump-target", to, f"there is no task before `{pipeline.label}`")
        return pipeline.previous
    if pipeline.labels is not None and target not in pipeline.labels:
        known = ", ".join(f"`{label}`" for label in pipeline.labels)
        hint = did_you_mean(target, pipeline.labels) or f"the pipeline has {known}"
        context.report("jump-target", to, f"the pipeline has no task `{target}`", hint)
        return None
    return target


def _plain_number(node: Node | None) -> float | None:
    if isinstance(node, Scalar) and isinstance(node.value, int | float):
        return float(node.value)
    return None


def _reads_signals(rules: tuple[AdmitRule, ...]) -> bool:
    return any(
        use.path[:2] == ("ctx", "signals")
        for rule in rules
        if isinstance(rule.when, Expression)
        for use in rule.when.uses
    )
