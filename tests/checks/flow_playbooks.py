"""Small playbooks for the tests of the flow of names, and what is found in them."""

from noetl.dsl.document.problem import Problem
from noetl.loader import examine

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: flow, path: tests/flow }\n"
CODES = ("unset-name", "unknown-name", "concurrent-write")

TWO_WAYS = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: count, when: "{{ workload.full }}" }
        - { step: report }
  - step: count
    tool: [{ name: sum, kind: noop, set: { ctx.page: 1 } }]
    next: { arcs: [{ step: report }] }
  - step: report
    tool: [{ name: show, kind: noop, args: { page: "{{ ctx.page }}" } }]
"""
"""Only the way through `count` sets `ctx.page`."""


def findings(text: str) -> list[Problem]:
    """What the flow of names finds. The text begins with `workload:`, `executor:` or `workflow:`."""
    problems = examine(HEADER + text, "flow.yaml").problems
    return [problem for problem in problems if problem.code in CODES]


def messages(text: str) -> list[str]:
    return [problem.message for problem in findings(text)]


def part_position(text: str, part: str) -> tuple[int, int]:
    """Line and column of the one occurrence of a part of the text."""
    text = HEADER + text
    assert text.count(part) == 1, f"`{part}` stands {text.count(part)} times"
    at = text.index(part)
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
