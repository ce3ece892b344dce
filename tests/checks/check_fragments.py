"""Small playbooks for the checks: a fragment, with `§` in front of every place a problem is expected at."""

from textwrap import dedent

from noetl.dsl.document.problem import Problem
from noetl.loader import examine

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/checks, dialect: canonical }\n"

OWN = frozenset(
    {
        "dead-arc",
        "endless-jump",
        "error-falls-through",
        "failure-loop",
        "impossible-value",
        "join-any-cycle",
        "join-exclusive",
        "join-single",
        "keychain-scope",
        "loop-step-done",
        "namespace-scope",
        "no-way-out",
        "parallel-set-ctx",
        "secret-in-result",
        "sql-paste",
        "swallowed-failure",
        "undeclared-auth",
        "unknown-field",
        "unknown-keychain",
        "unreachable-step",
        "unused-reducer",
    }
)
"""The codes that the tests in this folder are about."""


def document_text(fragment: str) -> str:
    """The playbook around a fragment: steps, or root keys, or a whole document already."""
    text = dedent(fragment).lstrip("\n")
    if "\napiVersion:" in f"\n{text}":
        return text
    if text.replace("§", "").startswith("- step:"):
        return HEADER + "workflow:\n" + text
    return HEADER + text


def problems(fragment: str) -> list[Problem]:
    """What the checks say about it. A fragment that cannot even be read is a mistake in the test."""
    all_problems = examine(document_text(fragment), "test.yaml").problems
    strangers = [
        problem for problem in all_problems if problem.severity == "error" and problem.code not in OWN
    ]
    assert not strangers, strangers
    return [problem for problem in all_problems if problem.code in OWN]


def assert_found(code: str, fragment: str) -> list[Problem]:
    """The fragment has this problem at each mark, and no other of ours."""
    text = document_text(fragment)
    expected = []
    clean: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        before, mark, after = line.partition("§")
        while mark:
            expected.append((code, number, len(before) + 1))
            head, mark, after = after.partition("§")
            before += head
        clean.append(before + after)
    reported = problems("\n".join(clean))
    assert [(problem.code, problem.line, problem.column) for problem in reported] == expected, reported
    assert all(problem.message for problem in reported)
    return reported


def assert_clean(fragment: str) -> None:
    assert problems(fragment) == []
