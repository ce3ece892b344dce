"""`output` in rules, a task's `set`, arcs and a step's `set`, by the words that canonical documents have."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noetl.dsl.dialects.expression_text import Edit, string_constant
from noetl.dsl.dialects.in_use.survey import SQL_KINDS

if TYPE_CHECKING:
    from noetl.dsl.dialects.in_use.read_edits import PathTokens

_STATUS_OF_KIND = {
    "rate_limit": "{s} == 429",
    "auth": "{s} in [401, 403]",
    "server_error": "{s} >= 500",
    "client_error": "400 <= {s} < 500 and {s} not in [401, 403, 429]",
}
"""Kinds of errors in use that are statuses of an answer, as conditions on the status."""


def is_after_task(role: str) -> bool:
    """Whether the outcome of a task is at hand in a place."""
    return role in ("RULE", "RULE_VALUE", "TASK_SET")


def body_path(base: str, rest: Sequence[str], kind: str) -> tuple[str, int]:
    """What `data.…` of a result stands for, and how many keys of `rest` that takes.

    Of an http answer its body is meant, unless the key is one of the answer itself.
    """
    if kind != "http" or not rest:
        return base, 0
    match rest[0]:
        case "data" | "body":
            return f"{base}.data", 1
        case "headers":
            return f"{base}.headers", 1
        case "status_code":
            return f"{base}.status", 1
        case _:
            return f"{base}.data", 0


def outcome_edit(path: "PathTokens", kind: str, *, in_set: bool, guard: bool) -> Edit | None:
    """`output` after a task: in rules the envelope, in the task's own `set` its result."""
    keys = path.keys
    if len(keys) == 1:
        return path.replaced(1, "outcome.result" if in_set else "outcome")
    match keys[1]:
        case "data" | "response":
            if in_set and kind not in SQL_KINDS:
                base = "outcome.result.data" if kind == "http" else _data_or_result("outcome.result")
                used = 1 if kind == "http" and keys[2:3] in (("data",), ("body",)) else 0
                return path.replaced(2 + used, base)
            base, used = body_path("outcome.result", keys[2:], kind)
            return path.replaced(2 + used, base)
        case "ref":
            return path.replaced(2, "(outcome.ref | default(none))")
        case _ if in_set:
            return path.replaced(1, "outcome.result")
        case "status":
            return _status_edit(path, "outcome", "ok") if len(keys) == 2 else path.replaced(1, "outcome")
        case "error":
            return _error_edit(path, "outcome", "outcome.http.status", guard=guard)
        case _:
            return path.replaced(1, "outcome")


def routing_edit(path: "PathTokens", kind: str, *, guard: bool) -> Edit | None:
    """`output` on an arc and in a step's `set`: the event that ended the step."""
    keys = path.keys
    if len(keys) == 1:
        return path.replaced(1, "event.result")
    match keys[1]:
        case "data" | "response":
            base, used = body_path("event.result", keys[2:], kind)
            return path.replaced(2 + used, base)
        case "status":
            return path.replaced(1, "event")
        case "error":
            return _error_edit(path, "event", "event.error.status", guard=guard)
        case "http":
            if keys[2:3] == ("status",):
                return path.replaced(3, "(event.error.status | default(event.result.status))")
            return path.replaced(2, "event.result")
        case "ref":
            return path.replaced(2, "event.result_ref")
        case _:
            return path.replaced(1, "event.result")


def _data_or_result(result: str) -> str:
    return f"({result}.data | default({result}))"


def _status_edit(path: "PathTokens", owner: str, ok: str) -> Edit:
    """`success` is called otherwise; compared with constants, those change, else the value does."""
    comparison = path.comparison(2)
    if comparison is None:
        return path.replaced(2, f"('success' if {owner}.status == '{ok}' else {owner}.status)")
    texts = [string_constant(token) for token in comparison.constants]
    names = [f"'{ok if text == 'success' else text}'" for text in texts]
    return Edit(
        comparison.start, comparison.end, _compare(f"{owner}.status", names, negated=comparison.negated)
    )


def _compare(path: str, constants: list[str], *, negated: bool) -> str:
    if len(constants) == 1:
        return f"{path} {'!=' if negated else '=='} {constants[0]}"
    return f"{path} {'not in' if negated else 'in'} [{', '.join(dict.fromkeys(constants))}]"


def _error_edit(path: "PathTokens", owner: str, status: str, *, guard: bool) -> Edit:
    keys = path.keys
    if keys[2:3] == ("status",):
        return path.replaced(3, status)
    if keys[2:3] != ("kind",) or len(keys) > 3:
        return path.replaced(1, owner)
    # In a condition what is absent compares as false; a value must not read it.
    number = status if guard else f"({status} | default(0))"
    comparison = path.comparison(3)
    if comparison is None:
        return path.replaced(3, _kind_name(owner, number))
    texts = [string_constant(token) for token in comparison.constants]
    if not set(texts) & set(_STATUS_OF_KIND):
        names = [f"'{text}'" for text in texts]
        text = _compare(f"{owner}.error.kind", names, negated=comparison.negated)
        return Edit(comparison.start, comparison.end, text)
    condition = kind_condition(owner, number, texts)
    if comparison.negated:
        single = len(texts) == 1 and texts[0] == "rate_limit"
        condition = condition.replace("==", "!=") if single else f"not ({condition})"
    elif " or " in condition or " and " in condition:
        condition = f"({condition})"
    return Edit(comparison.start, comparison.end, condition)


def kind_condition(owner: str, status: str, kinds: Sequence[str]) -> str:
    """Holds for errors of these kinds, as they are called in use; not in brackets."""
    conditions = [_STATUS_OF_KIND[kind].format(s=status) for kind in kinds if kind in _STATUS_OF_KIND]
    names = [f"'{kind}'" for kind in kinds if kind not in _STATUS_OF_KIND]
    if names:
        conditions.append(_compare(f"{owner}.error.kind", names, negated=False))
    several = len(conditions) > 1
    return " or ".join(f"({text})" if several and " and " in text else text for text in conditions)


def _kind_name(owner: str, number: str) -> str:
    """The name in use of the kind of an error."""
    names = "".join(f"'{name}' if {test.format(s=number)} else " for name, test in _STATUS_OF_KIND.items())
    return f"({names}{owner}.error.kind)"
