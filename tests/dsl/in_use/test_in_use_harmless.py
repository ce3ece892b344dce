"""Spellings that every document may have: accepted in canonical ones, which mean what they meant."""

import pytest

from noetl.loader import examine
from tests.dsl.in_use.spelling_rows import CANONICAL, run_text

CHILD = "{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: c, path: c}, workflow: [{step: c, tool: {kind: noop}}]}"
HARMLESS = {
    "job": """\
        - {step: s, tool: {kind: noop, args: {same: "{{ job.uuid == execution_id and job.id == job.execution_id and job.id == execution_id }}"}}}
        """,
    "call.done": """\
        - {step: s, tool: {kind: noop, args: {same: true}}, next: {arcs: [{step: t, when: "{{ event.name == 'call.done' }}"}, {step: t, when: "{{ event.name == 'call.error' }}"}]}}
        - {step: t, tool: {kind: noop, args: {same: true}}}
        """,
    "on_no_match": """\
        - {step: s, tool: {kind: noop, args: {same: true}}, next: {spec: {on_no_match: quiet}, arcs: [{step: s, when: "{{ ctx.again }}"}]}}
        """,
    "no effect": """\
        - step: s
          spec: {policy: {admit: {mode: all, rules: [{else: {then: {allow: true}}}]}}}
          loop: {in: [1], iterator: i, spec: {policy: {results: {mode: all}}}}
          tool: {kind: noop, args: {i: "{{ i }}"}}
          next: {arcs: [{step: t, when: "{{ event.name == 'loop.done' }}"}]}
        - {step: t, tool: {kind: noop, args: {same: true}}}
        """,
    "iterator named run": """\
        - {step: s, loop: {in: [{id: 1}], iterator: run}, tool: {kind: noop, args: {i: "{{ run.id }}"}}, next: {arcs: [{step: t, args: {same: "{{ event.result == [{'i': 1}] }}"}, when: "{{ event.name == 'loop.done' }}"}]}}
        - {step: t, tool: {kind: noop, args: {same: "{{ args.same }}"}}}
        """,
    "shell cmds": """\
        - {step: s, tool: [{name: a, kind: shell, cmds: ["x=1", "test $x = 1"]}, {name: b, kind: noop, args: {same: "{{ a.returncode == a.exit_code }}"}}]}
        """,
    "numeric keys": """\
        - {step: s, tool: [{name: a, kind: python, code: "result = {1: 2}"}, {name: b, kind: noop, args: {same: "{{ a == {'1': 2} }}"}}]}
        """,
    "output": """\
        - {step: s, output: {inline_max_bytes: 2000}, tool: {kind: noop, args: {same: true}, output: {inline_max_bytes: 3000}}}
        """,
    "output_select": """\
        - {step: s, tool: {kind: noop, args: {same: true}, output_select: {same: result.same}}}
        """,
    "noop result": """\
        - {step: s, tool: {kind: noop, result: {same: true}}}
        """,
    "artifact result_ref": """\
        - {step: s, tool: {kind: python, code: "result = ['a' * 100000]"}, next: {arcs: [{step: t, args: {ref: "{{ event.result_ref }}"}, when: "{{ event.name == 'step.done' }}"}]}}
        - {step: t, tool: [{name: a, kind: artifact, input: {result_ref: "{{ args.ref }}"}}, {name: b, kind: noop, args: {same: "{{ (a[0] | length) == 100000 }}"}}]}
        """,
    "playbook task": f"""\
        - {{step: s, tool: [{{kind: playbook, task: child, document: {CHILD}}}, {{kind: noop, args: {{same: true}}}}]}}
        """,
}
SECTIONS = {
    "executor": "executor: {kind: local, version: 2, requires: [http], spec: {policy: {defaults: {a: 1}, results: {b: 1}, limits: {c: 1}}}}",
    "workbook": 'workbook: [{name: w, tool: {kind: python, code: "result = 1"}, assert: {expects: [n]}}]',
    "keychain": "keychain: [{name: k, type: static, map: {token: abcdefgh}, scope: shared, auto_renew: true, ttl: 60}]",
}
STEP = "workflow:\n- {step: s, tool: {kind: noop, args: {same: true}}}\n"


@pytest.mark.parametrize("workflow", HARMLESS.values(), ids=HARMLESS)
def test_a_canonical_document_may_have_it(workflow: str) -> None:
    execution = run_text(CANONICAL + "workflow:\n" + workflow, {}, "canonical")
    assert (execution.status, execution.error, execution.result) == ("completed", None, {"same": True})


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_a_section_of_a_canonical_document_may_have_it(section: str) -> None:
    loaded = examine(f"{CANONICAL}{section}\n{STEP}", "page.yaml", dialect="canonical")
    assert {problem.code for problem in loaded.problems} <= {"no-effect"}
    assert loaded.playbook is not None


def test_names_of_the_document_itself_win() -> None:
    workflow = """\
workload: {job: {id: 7, uuid: 8}}
workflow:
- step: s
  tool:
  - {name: a, kind: python, code: "result = {'data': 1, 'elapsed_ms': 2, 'body': 3, 'exit_code': 4, 'stdout': 5, 'returncode': 6}"}
  - {name: b, kind: noop, args: {job: "{{ job.id + job.uuid }}", body: "{{ a.body }}", code: "{{ a.returncode }}"}}
"""
    execution = run_text(CANONICAL + workflow, {}, "canonical")
    assert execution.result == {"job": 15, "body": 3, "code": 6}


def test_a_mapping_that_is_no_answer_has_no_other_names() -> None:
    workflow = """\
workflow:
- step: s
  tool:
  - {name: a, kind: python, code: "result = {'data': 1, 'exit_code': 4}"}
  - {name: b, kind: python, args: {a: "{{ a }}"}, code: "result = [a.get('body'), a.get('returncode'), 'body' in a]"}
  - {name: c, kind: noop, args: {b: "{{ b }}", body: "{{ a.body is defined }}"}}
"""
    execution = run_text(CANONICAL + workflow, {}, "canonical")
    assert execution.result == {"b": [None, None, False], "body": False}


NESTED = "{{apiVersion: noetl.io/v2, kind: Playbook, metadata: {{name: c, path: c{}}}, workflow: [{{step: c, tool: {}}}]}}"


@pytest.mark.parametrize(
    ("declared", "tool"),
    [
        ("", "{kind: noop, result: {same: true}}"),
        (", dialect: canonical", "{kind: shell, cmds: ['true']}"),
        (", dialect: in_use", "{kind: noop, input: {same: '{{ nobody }}'}, retry: 2}"),
    ],
)
def test_a_playbook_inside_of_a_canonical_one_may_have_it(declared: str, tool: str) -> None:
    task = f"{{kind: playbook, document: {NESTED.format(declared, tool)}}}"
    execution = run_text(f"{CANONICAL}workflow:\n- {{step: s, tool: {task}}}\n", {}, "canonical")
    assert (execution.status, execution.error) == ("completed", None)


def test_a_playbook_inside_of_a_canonical_one_is_not_taken_for_one_in_use() -> None:
    task = f"{{kind: playbook, document: {NESTED.format('', '{kind: noop, retry: 2, input: {}}')}}}"
    loaded = examine(f"{CANONICAL}workflow:\n- {{step: s, tool: {task}}}\n", "page.yaml")
    assert [problem.message for problem in loaded.problems if problem.severity == "error"] == [
        "a task of kind `noop` has no key `retry`"
    ]
