"""A key that means nothing is refused everywhere but where keys are free."""

import pytest

from tests.playbooks import (
    HEADER,
    NOOP,
    ProblemPosition,
    error_codes,
    problem_of,
    problem_positions,
    problems_of,
    step,
)

END = step(NOOP, name="end")
STEPS = "workflow:\n" + step(NOOP)
RULE = "tool: { kind: noop, spec: { policy: { rules: [%s] } } }"

MISSPELT = {
    "root": (HEADER + "workfow: []\n" + STEPS, "workfow", "workflow"),
    "executor": ("executor: { kin: local }\n" + STEPS, "kin", "kind"),
    "step": (step("tol: []\n" + NOOP), "tol", "tool"),
    "step spec": (step("spec: { timout: 5 }\n" + NOOP), "timout", "timeout"),
    "step policy": (step("spec: { policy: { admitt: {} } }\n" + NOOP), "admitt", "admit"),
    "admission": (step("spec: { policy: { admit: { rules: [], on_denny: drop } } }\n" + NOOP), "on_denny", "on_deny"),
    "join": (step("spec: { policy: { join: { count: 2, cont: 3 } } }\n" + NOOP), "cont", "count"),
    "lease": (step("spec: { lease: { tl: 5 } }\n" + NOOP), "tl", "ttl"),
    "loop": (step("loop: { in: [1], iterator: n, spek: {} }\n" + NOOP), "spek", "spec"),
    "loop spec": (step("loop: { in: [1], iterator: n, spec: { mod: parallel } }\n" + NOOP), "mod", "mode"),
    "loop policy": (
        step("loop: { in: [1], iterator: n, spec: { policy: { exce: local } } }\n" + NOOP), "exce", "exec",
    ),
    "task": (step("tool: { kind: noop, descr: words }"), "descr", "desc"),
    "task spec": (step("tool: { kind: noop, spec: { timout: 5 } }"), "timout", "timeout"),
    "result spec": (step("tool: { kind: noop, spec: { result: { tll: 5 } } }"), "tll", "ttl"),
    "http": (step("tool: { kind: http, url: 'https://a.example', heders: {} }"), "heders", "headers"),
    "http spec": (
        step("tool: { kind: http, url: 'https://a.example', spec: { verfy: true } }"), "verfy", "verify",
    ),
    "policy": (step("tool: { kind: noop, spec: { policy: { rules: [], on_unmatch: fail } } }"), "on_unmatch", "on_unmatched"),
    "rule": (step(RULE % "{ wen: true, when: true, then: { do: continue } }"), "wen", "when"),
    "then": (step(RULE % "{ else: { do: retry, attemps: 3 } }"), "attemps", "attempts"),
    "router": (step("next: { arcs: [{ step: end }], spce: {} }") + END, "spce", "spec"),
    "router spec": (step("next: { arcs: [{ step: end }], spec: { mod: inclusive } }") + END, "mod", "mode"),
    "arc": (step("next: { arcs: [{ step: end, arg: {} }] }") + END, "arg", "args"),
    "workbook task": ("workbook: { tasks: { a: { kind: noop, arg: {} } } }\n" + STEPS, "arg", "args"),
}  # fmt: skip
FREE = {
    "metadata": HEADER.replace("path: docs/page", "path: docs/page, owner: me, nme: x") + STEPS,
    "executor spec": "executor: { kind: local, spec: { quue: nats, anything: { at: all } } }\n" + STEPS,
    "workload": "workload: { tool: 1, steps: [] }\n" + STEPS,
    "credential": "keychain: [{ name: a, kind: mail_credential, mount: kv, pth: x }]\n" + STEPS,
    "args": step("tool: { kind: noop, args: { kindd: 1 } }"),
    "arc spec": step("next: { arcs: [{ step: end, spec: { free: 1 } }] }") + END,
}


@pytest.mark.parametrize("case", MISSPELT)
def test_a_misspelt_key_gets_the_key_that_was_meant(case: str) -> None:
    text, key, nearest = MISSPELT[case]
    (problem,) = [problem for problem in problems_of(text) if problem.severity == "error"]
    assert problem.code == "unknown-key"
    assert f"`{key}`" in problem.message
    assert problem.hint == f"did you mean `{nearest}`?"


@pytest.mark.parametrize("case", FREE)
def test_keys_are_free_in_some_places(case: str) -> None:
    assert problems_of(FREE[case]) == ()


def test_a_key_like_no_other_gets_the_keys_there_are() -> None:
    assert problem_of("workload: {}\nzzz: 1\n" + STEPS).hint.startswith("known keys: ")
    hint = problem_of(step("tool: { kind: http, url: 'https://a.example', zzz: 1 }")).hint
    assert "`method`" in hint
    assert "`headers`" in hint


def test_inputs_and_spec_of_an_allowed_kind_are_free() -> None:
    text = step("tool: { kind: telegraph, wire: { a: '{{ ctx.a }}' }, spec: { volts: 5 } }")
    assert error_codes(text, allow_kinds=["telegraph"]) == []


def test_but_not_what_every_task_has() -> None:
    allowed = ["telegraph"]
    assert error_codes(step("tool: { kind: telegraph, args: [1] }"), allow_kinds=allowed) == ["wrong-type"]
    assert error_codes(step("tool: { kind: telegraph, spec: { policy: [] } }"), allow_kinds=allowed) == [
        "policy-shape"
    ]
    assert error_codes(step("tool: { kind: telegraph, wire: '{{ 1 + }}' }"), allow_kinds=allowed) == [
        "expression-syntax"
    ]
    assert error_codes(step("tool: { kind: telegraph, eval: [] }"), allow_kinds=allowed) == ["draft-eval"]


def test_every_unknown_key_is_told() -> None:
    text = step("one: 1\ntwo: 2\ntool: { kind: noop, three: 3, four: 4 }")
    assert problem_positions(text) == [
        ProblemPosition(6, 3, "unknown-key"),
        ProblemPosition(7, 3, "unknown-key"),
        ProblemPosition(8, 23, "unknown-key"),
        ProblemPosition(8, 33, "unknown-key"),
    ]
