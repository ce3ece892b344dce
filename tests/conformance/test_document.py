"""The document model: the root, metadata, the executor, the workload (000 §2.1, 001 §1 to §5)."""

import pytest

from tests.playbooks import (
    HEADER,
    NOOP,
    ProblemPosition,
    error_codes,
    playbook_of,
    problem_of,
    problem_positions,
    problems_of,
    step,
)

WORKFLOW = "workflow:\n" + step(NOOP)
FULL = (
    HEADER
    + """keychain:
  - name: api
    kind: bearer
    env: API_TOKEN
executor:
  kind: local
  spec: { pool: small }
workload: { region: eu }
workbook:
  tasks:
    greet: { kind: noop }
"""
    + WORKFLOW
)


@pytest.mark.spec("000 §2.1 (1)")
@pytest.mark.parametrize("version", ["noetl.io/v3", "v2", "2", "[]", "''"])
def test_another_api_version_is_refused(version: str) -> None:
    assert problem_positions(HEADER.replace("noetl.io/v2", version) + WORKFLOW) == [
        ProblemPosition(1, 13, "api-version")
    ]


@pytest.mark.spec("000 §2.1 (1)")
def test_the_api_version_must_be_there() -> None:
    assert problem_positions(HEADER.split("\n", 1)[1] + WORKFLOW) == [ProblemPosition(1, 1, "missing-key")]


@pytest.mark.spec("000 §2.1 (2)")
@pytest.mark.parametrize("kind", ["playbook", "Workflow", "1"])
def test_another_kind_of_document_is_refused(kind: str) -> None:
    assert problem_positions(HEADER.replace("Playbook", kind) + WORKFLOW) == [
        ProblemPosition(2, 7, "not-a-playbook")
    ]


@pytest.mark.spec("000 §2.1 (3)")
@pytest.mark.parametrize(
    ("metadata", "positions"),
    [
        ("{ path: p }", [ProblemPosition(3, 11, "missing-key")]),
        ("{ name: n }", [ProblemPosition(3, 11, "missing-key")]),
        ("{ name: , path: p }", [ProblemPosition(3, 13, "missing-key")]),
        ("{ name: '', path: p }", [ProblemPosition(3, 19, "bad-value")]),
        ("{}", [ProblemPosition(3, 11, "missing-key"), ProblemPosition(3, 11, "missing-key")]),
        ("text", [ProblemPosition(3, 11, "wrong-type")]),
    ],
)
def test_metadata_has_a_name_and_a_path(metadata: str, positions: list[ProblemPosition]) -> None:
    head = HEADER.replace("{ name: page, path: docs/page }", metadata)
    assert problem_positions(head + WORKFLOW) == positions


@pytest.mark.spec("000 §2.1 (3)")
def test_metadata_must_be_there() -> None:
    assert error_codes("apiVersion: noetl.io/v2\nkind: Playbook\n" + WORKFLOW) == ["missing-key"]


@pytest.mark.spec("000 §2.1 (4)")
@pytest.mark.parametrize(
    ("workflow", "code"),
    [
        ("", "missing-key"),
        ("workflow: []", "bad-value"),
        ("workflow: {}", "wrong-type"),
        ("workflow:", "missing-key"),
    ],
)
def test_a_workflow_is_a_list_of_steps(workflow: str, code: str) -> None:
    assert error_codes(HEADER + workflow) == [code]


@pytest.mark.spec("000 §2.1 (5)")
def test_all_sections_together_and_none_of_the_optional_ones() -> None:
    assert problems_of(FULL) == ()
    assert problems_of(HEADER + WORKFLOW) == ()


@pytest.mark.spec("000 §2.1 (5)")
@pytest.mark.parametrize("section", ["keychain", "executor", "workload", "workbook"])
def test_an_optional_section_may_be_empty(section: str) -> None:
    assert problems_of(f"{section}:\n{WORKFLOW}") == ()


@pytest.mark.spec("000 §2.1 (5)")
def test_optional_sections_have_their_types() -> None:
    assert error_codes("keychain: { a: 1 }\n" + WORKFLOW) == ["wrong-type"]
    assert error_codes("executor: [local]\n" + WORKFLOW) == ["wrong-type"]
    assert error_codes("workload: [1]\n" + WORKFLOW) == ["wrong-type"]
    assert error_codes("workbook: text\n" + WORKFLOW) == ["wrong-type"]


@pytest.mark.spec("000 §2.1 (6)")
@pytest.mark.spec("001 §1 (2)")
@pytest.mark.parametrize("value", ["", " {}", " { a: 1 }"])
def test_vars_at_the_root_are_refused(value: str) -> None:
    assert problem_positions(f"vars:{value}\n{WORKFLOW}") == [ProblemPosition(4, 1, "root-vars")]


@pytest.mark.spec("001 §1 (1)")
def test_other_root_sections_are_refused() -> None:
    problem = problem_of("workload: {}\nworkfow: []\n" + WORKFLOW)
    assert (problem.line, problem.column, problem.code) == (5, 1, "unknown-key")
    assert problem.hint == "did you mean `workflow`?"


@pytest.mark.spec("001 §1 (3)")
def test_a_credential_by_name_may_be_declared_in_the_keychain() -> None:
    text = "keychain:\n  - { name: pg, kind: postgres_credential }\nworkflow:\n" + step(
        "tool: { kind: postgres, auth: pg, command: SELECT 1 }"
    )
    assert problems_of(text) == ()
    assert playbook_of(text).keychain["pg"].kind == "postgres_credential"


@pytest.mark.spec("001 §1 (3)")
def test_keychain_entries_have_a_name_and_a_kind_that_exists() -> None:
    assert error_codes("keychain: [{ kind: env }]\n" + WORKFLOW) == ["missing-key"]
    assert error_codes("keychain: [{ name: a }]\n" + WORKFLOW) == ["missing-key"]
    assert error_codes("keychain: [{ name: a, kind: envv }]\n" + WORKFLOW) == ["bad-value"]
    entry = "{ name: a, kind: env, env: A }"
    assert error_codes(f"keychain: [{entry}, {entry}]\n" + WORKFLOW) == ["duplicate-key"]


@pytest.mark.spec("001 §1 (4)")
@pytest.mark.parametrize(
    ("body", "key"),
    [
        (f"timeout: 5\n{NOOP}", "timeout"),
        (f"join: all\n{NOOP}", "join"),
        (f"loop: {{ in: [1], iterator: n, mode: parallel }}\n{NOOP}", "mode"),
        ("next: { mode: inclusive, arcs: [] }", "mode"),
        ("tool: { kind: http, url: 'https://a.example', timeout: 5 }", "timeout"),
        ("tool: { kind: noop, policy: { rules: [] } }", "policy"),
    ],
)
def test_a_knob_outside_spec_is_refused(body: str, key: str) -> None:
    problem = problem_of(step(body))
    assert problem.code == "unknown-key"
    assert f"`{key}`" in problem.message


@pytest.mark.spec("001 §1 (5)")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (f'when: "{{{{ ctx.a }}}}"\n{NOOP}', "step-when"),
        ("tool: { kind: noop, eval: [] }", "draft-eval"),
        ('tool: { kind: noop, expr: "{{ 1 }}" }', "draft-expr"),
        (f"spec: {{ next_mode: inclusive }}\n{NOOP}", "draft-next-mode"),
        (f"next: []\n{NOOP}", "draft-next-list"),
        (f"next: start\n{NOOP}", "draft-next-list"),
        (f"vars: {{ a: 1 }}\n{NOOP}", "draft-vars"),
        (f"pipe: []\n{NOOP}", "draft-pipe"),
        ("tool: { pipe: [{ kind: noop }] }", "draft-pipe"),
        (f"case: []\n{NOOP}", "draft-case"),
    ],
)
def test_what_the_canonical_form_has_removed_is_refused_with_its_own_code(body: str, code: str) -> None:
    problem = problem_of(step(body))
    assert problem.code == code
    assert problem.hint


@pytest.mark.spec("001 §1 (6)")
def test_tasks_without_a_name_are_labelled_by_their_position() -> None:
    text = step("tool:\n  - kind: noop\n  - { name: middle, kind: noop }\n  - kind: noop")
    assert [task.label for task in playbook_of(text).workflow[0].tasks] == ["task_0", "middle", "task_2"]


@pytest.mark.spec("001 §3")
def test_metadata_has_a_version_a_description_tags_labels_and_free_keys() -> None:
    head = (
        HEADER.replace("{ name: page, path: docs/page }", "").rstrip()
        + """
  name: amadeus_ai_api
  path: api_integration/amadeus_ai_api
  version: "2.0"
  description: Complete Amadeus AI travel API integration
  tags: [api, travel, llm]
  labels: { team: travel }
  owner: anyone
"""
    )
    metadata = playbook_of(head + WORKFLOW).metadata
    assert metadata.name == "amadeus_ai_api"
    assert metadata.path == "api_integration/amadeus_ai_api"
    assert metadata.version == "2.0"
    assert metadata.tags == ("api", "travel", "llm")
    assert metadata.labels == {"team": "travel"}


@pytest.mark.spec("001 §4")
@pytest.mark.parametrize("kind", ["distributed", "local", "hybrid"])
def test_an_executor_has_a_kind_and_a_spec(kind: str) -> None:
    executor = playbook_of(
        f"executor: {{ kind: {kind}, spec: {{ pool: small, queue: nats }} }}\n" + WORKFLOW
    ).executor
    assert executor.kind == kind
    assert executor.spec == {"pool": "small", "queue": "nats"}


@pytest.mark.spec("001 §4")
def test_another_executor_is_refused() -> None:
    assert problem_positions("executor: { kind: remote }\n" + WORKFLOW) == [
        ProblemPosition(4, 19, "bad-value")
    ]
    assert problem_positions("executor: { kind: local, pool: small }\n" + WORKFLOW) == [
        ProblemPosition(4, 26, "unknown-key")
    ]
    assert problem_positions("executor: { kind: local, spec: 5 }\n" + WORKFLOW) == [
        ProblemPosition(4, 32, "wrong-type")
    ]


@pytest.mark.spec("001 §5")
def test_nothing_in_a_playbook_can_write_to_the_workload() -> None:
    assert error_codes(step("set: { workload.region: us }\n" + NOOP)) == ["bad-write"]
    assert error_codes(step("tool: { kind: noop, set: { workload.region: us } }")) == ["bad-write"]
    then = "{ do: continue, set_workload: { region: us } }"
    policy = f"{{ rules: [{{ else: {then} }}] }}"
    assert error_codes(step(f"tool: {{ kind: noop, spec: {{ policy: {policy} }} }}")) == ["unknown-key"]


@pytest.mark.spec("001 §7")
@pytest.mark.parametrize("name", ["ctx", "iter", "args", "outcome", "event", "_prev"])
def test_a_runtime_scope_is_no_section_of_the_document(name: str) -> None:
    assert problem_positions(f"workload: {{}}\n{name}: {{ a: 1 }}\n{WORKFLOW}") == [
        ProblemPosition(5, 1, "unknown-key")
    ]
