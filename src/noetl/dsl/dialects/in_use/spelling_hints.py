"""What is said of spellings in use where a document is read as canonical: one hint, one note."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from noetl.dsl.dialects.in_use.recognition import (
    KEYCHAIN_KINDS_IN_USE,
    SCOPES,
    Recognition,
    entries_of,
    items_of,
    tasks_of,
    workbook_items,
)
from noetl.dsl.dialects.in_use.survey import directives, rules_of_spec
from noetl.dsl.dialects.nodes import text_value
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.problem_codes import CODES
from noetl.dsl.document.shape_check import closest_words
from noetl.dsl.document.source import Located, Mapping, Node, Scalar, Sequence

HINT = "documents in use have it: `--dialect in_use`, or `metadata.dialect: in_use`"

_TASK_KEYS = frozenset(
    {"timeout", "timeout_seconds", "verify_ssl", "follow_redirects", "pool", "retry", "iterator", "operation"}
)
_SPEC_KEYS = frozenset(
    {"method", "url", "endpoint", "params", "headers", "code", "input", "auth", "command"}
    | {"timeout_seconds", "verify_ssl"}
)
_SEPARATORS = re.compile(r"[/.\s]")
_KINDS = frozenset({"transfer", "agent", "ducklake"})
_STEP_KEYS = frozenset({"output", "set"})
_LOOP_KEYS = frozenset({"cursor"})
_KEYCHAIN_KEYS = frozenset({"map", "endpoint", "method", "headers", "data"})
_ARC_KEYS = frozenset({"cond"})
_ROUTER_KEYS = frozenset({"on_no_match"})
_KEYS = {
    "a step": _STEP_KEYS,
    "a loop": _LOOP_KEYS,
    "an arc": _ARC_KEYS,
    "`spec`": _ROUTER_KEYS | _SPEC_KEYS,
}
"""By what has no such key."""
_UNKNOWN_WORD = re.compile(r"(?:no key|no tool kind|no keychain kind) `([^`]+)`")
_SUGGESTED = re.compile(r"did you mean `([^`]+)`")
_WORDS = (
    (("namespace-scope", "expression-syntax"), ("`output`", "unexpected ``", "no function `token`")),
    (
        ("impossible-value",),
        (
            "`output.status` is never `success`",
            *(
                f".error.kind` is never `{kind}`"
                for kind in ("rate_limit", "auth", "server_error", "client_error")
            ),
        ),
    ),
    (("unknown-field",), ("`output` has no `response`",)),
    (("unset-name",), ("sets `loop_index`", "sets `_index`", "sets `_total`", "sets `result`")),
)
"""What problems with expressions say, by their codes, where the dialect would understand."""


def explain_spellings(root: Mapping, problems: list[Problem]) -> list[Problem]:
    """The problems; those that the dialect in use does not have say so in their hint."""
    places = {(at.line, at.column) for at in _spellings(root)}

    def explain(problem: Problem) -> Problem:
        is_word = any(
            problem.code in codes and word in problem.message for codes, words in _WORDS for word in words
        )
        # Code with braces may not compile; then the problem stands at some line of it.
        is_rendered = problem.hint.startswith("code is never rendered")
        is_refused = problem.severity == "error"
        if not (is_word or (is_refused and (is_rendered or (problem.line, problem.column) in places))):
            return problem
        return replace(problem, hint=f"{problem.hint}; {HINT}" if problem.hint else HINT)

    return [explain(problem) for problem in problems]


def suggest_spellings(problems: list[Problem]) -> list[Problem]:
    """The problems of a document in use; unknown words close to one of the dialect suggest that."""

    def suggest(problem: Problem) -> Problem:
        match = _UNKNOWN_WORD.search(problem.message)
        if match is None:
            return problem
        words = _words_near(problem)
        known = _SUGGESTED.search(problem.hint)
        # The nearest of all, those of canonical documents included.
        near = closest_words(match[1], [*words, *(known.groups() if known is not None else ())])
        if not near or near[0] not in words:
            return problem
        return replace(problem, hint=f"did you mean `{near[0]}`?")

    return [suggest(problem) for problem in problems]


def _words_near(problem: Problem) -> frozenset[str]:
    """The words of the dialect that an unknown one may be meant for."""
    if problem.code == "unknown-kind":
        return _KINDS
    if problem.code == "bad-value":
        return KEYCHAIN_KINDS_IN_USE
    owner = problem.message.partition(" has no key ")[0]
    if owner.startswith("the spec of"):
        return _SPEC_KEYS
    if owner.startswith("a keychain entry"):
        return _KEYCHAIN_KEYS
    return _KEYS.get(owner, _TASK_KEYS | {"script"})


def note_mixture(recognition: Recognition, problems: list[Problem], file: str) -> list[Problem]:
    """The problems with one note that names both dialects; of what only one of them refuses, the first."""
    mark, counter = recognition.marks[0], recognition.counter_marks[0]
    note = Problem(
        file,
        mark.line,
        mark.column,
        "mixed-dialects",
        CODES["mixed-dialects"].severity,
        f"{mark} is of the dialect in use and {counter} is canonical: the document is read as canonical",
        "write all of it in one dialect, or say which with `--dialect` or `metadata.dialect`",
    )
    errors = [problem for problem in problems if problem.severity == "error"]
    refused = sorted(problem for problem in errors if problem.hint.endswith(HINT))
    # What half a document is warned about says little; all of it comes when it is in one dialect.
    others = [problem for problem in (errors if refused else problems) if problem not in refused]
    if len(refused) > 1:
        more = f"{refused[0].message} (and {len(refused) - 1} more of that dialect)"
        refused = [replace(refused[0], message=more)]
    return [note, *others, *refused]


def _spellings(root: Mapping) -> Iterator[Located]:
    """Where something stands that only the dialect in use has."""
    yield from (root.entries[key] for key in ("tracing", "spec") if key in root)
    for item in items_of(root.get("keychain")):
        for entry in entries_of(item):
            if entry.key in ("map", "endpoint", "method", "headers", "data", "auth", "ref"):
                yield entry
            elif entry.key in ("kind", "type") and text_value(entry.value) in KEYCHAIN_KINDS_IN_USE:
                yield entry.value
    for item in workbook_items(root.get("workbook")):
        if isinstance(item, Mapping):
            tool = item.get("tool")
            yield from _task(tool if isinstance(tool, Mapping) else item)
    for step in items_of(root.get("workflow")):
        if isinstance(step, Mapping):
            yield from _step(step)


def _step(step: Mapping) -> Iterator[Located]:
    name = step.get("step")
    if name is not None and (
        _SEPARATORS.search(text_value(name) or "") or not {"tool", "next"} & set(step.entries)
    ):
        yield name
    yield from _writes(step.get("set"))
    loop = step.get("loop")
    if isinstance(loop, Mapping):
        if "cursor" in loop:
            yield loop
            yield loop.entries["cursor"]
        for entry in entries_of(loop.get("spec")):
            if entry.key in ("frame", "process", "row_concurrency"):
                yield entry
            elif text_value(entry.value) == "cursor":
                yield entry.value
        if isinstance(collection := loop.get("in"), Scalar):
            yield collection
    router = step.get("next")
    for arc in items_of(router.get("arcs")) if isinstance(router, Mapping) else ():
        yield from (entry for entry in entries_of(arc) if entry.key == "cond")
    yield from _rules(step.get("spec"))
    for task in tasks_of(step.get("tool")):
        yield from _task(task)


def _task(task: Mapping) -> Iterator[Located]:
    kind = task.get("kind")
    if kind is not None and text_value(kind) in _KINDS:
        yield kind
    for entry in task:
        if entry.key in _TASK_KEYS or entry.key == "script":
            yield entry
        elif entry.key == "libs" and isinstance(entry.value, Sequence):
            yield entry
            yield entry.value
    yield from (entry for entry in entries_of(task.get("spec")) if entry.key in _SPEC_KEYS)
    yield from _writes(task.get("set"))
    yield from _rules(task.get("spec"))


def _rules(spec: Node | None) -> Iterator[Located]:
    for rule in rules_of_spec(spec):
        for then in directives(rule):
            yield from _writes(then.get("set"))


def _writes(node: Node | None) -> Iterator[Located]:
    return (entry for entry in entries_of(node) if not entry.key.startswith(SCOPES))
