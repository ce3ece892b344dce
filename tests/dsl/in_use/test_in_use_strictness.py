"""Canonical documents stay strict: what only the dialect in use has is refused there, with a hint to it."""

import pytest

from noetl.loader import examine
from tests.dsl.in_use.spelling_rows import CANONICAL

HINT = "--dialect in_use"
REFUSED = {
    "task set without a scope": ("- {step: s, tool: {kind: noop, set: {x: 1}}}", 5, 38),
    "then.set without a scope": (
        "- {step: s, tool: {kind: noop, spec: {policy: {rules: [{else: {do: continue, set: {x: 1}}}]}}}}",
        5,
        84,
    ),
    "step set without a scope": ("- {step: s, tool: {kind: noop}, set: {x: 1}}", 5, 39),
    "set of step": ("- {step: s, tool: {kind: noop}, set: {step.x: 1}}", 5, 39),
    "output of a task": (
        '- {step: s, tool: [{kind: noop}, {kind: noop, args: {x: "{{ output.data }}"}}]}',
        5,
        61,
    ),
    "output on an arc": (
        '- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, when: "{{ output.data.n == 1 }}"}]}}',
        5,
        67,
    ),
    "cond": ("- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, cond: n == 0}]}}", 5, 57),
    "step name": ("- {step: a/b, tool: {kind: noop}}", 5, 10),
    "step without tool and next": ("- {step: s}", 5, 10),
    "loop over a mapping": ("- {step: s, loop: {in: abc, iterator: i}, tool: {kind: noop}}", 5, 24),
    "cursor": (
        "- {step: s, loop: {cursor: {kind: postgres, claim: SELECT 1}, iterator: i}, tool: {kind: noop}}",
        5,
        20,
    ),
    "mode: cursor": (
        "- {step: s, loop: {in: [1], iterator: i, spec: {mode: cursor}}, tool: {kind: noop}}",
        5,
        55,
    ),
    "frame": ("- {step: s, loop: {in: [1], iterator: i, spec: {frame: {}}}, tool: {kind: noop}}", 5, 49),
    "inputs under spec": ("- {step: s, tool: {kind: http, spec: {url: http://x}}}", 5, 39),
    "timeout": ("- {step: s, tool: {kind: noop, timeout: 3}}", 5, 32),
    "timeout_seconds": ("- {step: s, tool: {kind: noop, timeout_seconds: 3}}", 5, 32),
    "verify_ssl": ("- {step: s, tool: {kind: http, url: http://x, verify_ssl: false}}", 5, 47),
    "follow_redirects": ("- {step: s, tool: {kind: http, url: http://x, follow_redirects: false}}", 5, 47),
    "pool": ("- {step: s, tool: {kind: postgres, dsn: x, command: SELECT 1, pool: {min_size: 1}}}", 5, 63),
    "retry": ("- {step: s, tool: {kind: noop, retry: 3}}", 5, 32),
    "backquoted text": ("- {step: s, tool: {kind: shell, command: 'echo {{`a`}}'}}", 5, 50),
    "SQL script": ("- {step: s, tool: {kind: duckdb, script: {uri: a.sql}}}", 5, 34),
    "libs list": ("- {step: s, tool: {kind: python, code: result = 1, libs: [json]}}", 5, 58),
    "braces in code": ("- {step: s, tool: {kind: python, code: 'x = {{ 1 if a }}'}}", 5, 41),
    "iterator of a task": (
        "- {step: s, tool: {kind: python, code: result = 1, iterator: {items: [1], item: i}}}",
        5,
        52,
    ),
    "transfer": ("- {step: s, tool: {kind: transfer, source: {}, target: {}}}", 5, 26),
    "token": (
        "- {step: s, tool: {kind: http, url: http://x, headers: {A: \"Bearer {{ token('k') }}\"}}}",
        5,
        71,
    ),
    "nats operation": ("- {step: s, tool: {kind: nats, operation: publish, subject: a, url: x}}", 5, 32),
    "row_concurrency": (
        "- {step: s, loop: {in: [1], iterator: i, spec: {row_concurrency: 2}}, tool: {kind: noop}}",
        5,
        49,
    ),
    "process": ("- {step: s, loop: {in: [1], iterator: i, spec: {process: row}}, tool: {kind: noop}}", 5, 49),
    "rules of a step": (
        "- {step: s, spec: {policy: {rules: [{else: {do: continue, set: {x: 1}}}]}}, tool: {kind: noop}}",
        5,
        65,
    ),
    "ducklake": ("- {step: s, tool: {kind: ducklake, command: SELECT 1}}", 5, 26),
    "agent": ("- {step: s, tool: {kind: agent, entrypoint: a/b}}", 5, 26),
}
LIFTED = {
    "method": "http",
    "url": "http",
    "endpoint": "http",
    "params": "http",
    "headers": "http",
    "auth": "http",
    "code": "python",
    "input": "noop",
    "command": "shell",
}
REFUSED |= {
    f"spec.{key}": (f"- {{step: s, tool: {{kind: {kind}, spec: {{{key}: a}}}}}}", 5, 35 + len(kind))
    for key, kind in LIFTED.items()
}
SECTIONS = {
    "task of a workbook": ("workbook: [{name: w, tool: {kind: transfer, source: {}, target: {}}}]", 4, 35),
    "oauth2 data": ("keychain: [{name: k, kind: oauth2, token_url: http://x, data: {client_id: a}}]", 4, 57),
    "oauth2 method": ("keychain: [{name: k, kind: oauth2, token_url: http://x, method: POST}]", 4, 57),
    "map": ("keychain: [{name: k, kind: bearer, map: {a: b}}]", 4, 36),
    "tracing": ("tracing: {}", 4, 1),
    "spec": ("spec: {}", 4, 1),
    "secrets": ("keychain: [{name: k, kind: secrets, map: {a: b}}]", 4, 28),
    "google_oauth": ("keychain: [{name: k, kind: google_oauth, ref: a}]", 4, 28),
    "oauth2 endpoint": ("keychain: [{name: k, kind: oauth2, endpoint: http://x}]", 4, 36),
}
CASES = {name: (f"workflow:\n{text}\n", line, column) for name, (text, line, column) in REFUSED.items()} | {
    name: (f"{text}\nworkflow:\n- {{step: s, tool: {{kind: noop}}}}\n", line, column)
    for name, (text, line, column) in SECTIONS.items()
}


@pytest.mark.parametrize(("text", "line", "column"), CASES.values(), ids=CASES)
def test_a_canonical_document_is_refused_with_a_hint_to_the_dialect(
    text: str, line: int, column: int
) -> None:
    loaded = examine(CANONICAL + text, "page.yaml")
    errors = [problem for problem in loaded.problems if problem.severity == "error"]
    assert loaded.playbook is None
    hints = {(error.line, error.column): error.hint for error in errors if HINT in error.hint}
    assert (line, column) in hints
    assert "metadata.dialect: in_use" in hints[line, column]


@pytest.mark.parametrize(
    "value",
    ["{{ loop_index }}", "{{ _index }}", "{{ _total }}", "{{ result.x }}"],
)
def test_a_name_that_only_the_dialect_sets_is_warned_about_with_that_hint(value: str) -> None:
    text = f"{CANONICAL}workflow:\n- {{step: s, loop: {{in: [1], iterator: i}}, tool: {{kind: noop, args: {{a: '{value}'}}}}}}\n"
    (problem,) = examine(text, "page.yaml").problems
    assert (problem.code, HINT in problem.hint) == ("unset-name", True)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("output.status == 'success'", "impossible-value"),
        ("output.error.kind == 'rate_limit'", "impossible-value"),
        ("output.error.kind in ['timeout', 'auth']", "impossible-value"),
        ("outcome.error.kind == 'server_error'", "impossible-value"),
        ("output.error.kind != 'client_error'", "impossible-value"),
        ("output.response.x == 1", "unknown-field"),
    ],
)
def test_what_outcomes_have_only_in_the_dialect_is_warned_about_with_that_hint(
    condition: str, code: str
) -> None:
    rules = f'[{{when: "{{{{ {condition} }}}}", then: {{do: break}}}}, {{else: {{do: fail}}}}]'
    text = (
        f"{CANONICAL}workflow:\n- {{step: s, tool: {{kind: noop, spec: {{policy: {{rules: {rules}}}}}}}}}\n"
    )
    (problem,) = examine(text, "page.yaml").problems
    assert (problem.code, HINT in problem.hint) == (code, True)


def test_a_problem_of_every_dialect_has_no_such_hint() -> None:
    text = f"{CANONICAL}workflow:\n- {{step: s, tool: {{kind: nop}}, nxt: {{}}}}\n"
    assert all(HINT not in problem.hint for problem in examine(text, "page.yaml").problems)


def test_code_with_braces_is_refused_at_its_line() -> None:
    text = f"{CANONICAL}workflow:\n- step: s\n  tool:\n    kind: python\n    code: |\n      a = 1\n      b = {{{{ 1 if a }}}}\n"
    (problem,) = examine(text, "page.yaml").problems
    assert (problem.line, HINT in problem.hint) == (10, True)
