import pytest

from noetl.loader import examine
from tests.checks.check_fragments import assert_clean, assert_found, document_text


@pytest.mark.spec("001 §1 (3)")
def test_credentials_are_declared() -> None:
    fragment = """
        keychain: [{ name: warehouse, kind: postgres_credential }]
        workflow:
          - step: start
            tool: { kind: postgres, auth: %s, query: SELECT 1 }
        """
    (problem,) = assert_found("undeclared-auth", fragment % "§warehuose")
    assert problem.hint == "did you mean `warehouse`?"
    assert problem.severity == "warning"
    assert_clean(fragment % "warehouse")
    assert_clean(fragment % '"{{ workload.credential }}"')


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            "query: SELECT * FROM t WHERE id = §{{ args.id }}",
            'query: SELECT * FROM t WHERE id = %s\n      params: ["{{ args.id }}"]',
            id="a value",
        ),
        pytest.param(
            "command: |\n        INSERT INTO t\n        VALUES ('§{{ ctx.a }}', '§{{ ctx.b }}')",
            'command: |\n        INSERT INTO t\n        VALUES (%s, %s)\n      params: ["{{ ctx.a }}", "{{ ctx.b }}"]',
            id="values in a block",
        ),
        pytest.param(
            'commands:\n        - SELECT 1\n        - "DELETE FROM §{{ workload.table }}"',
            "commands:\n        - SELECT 1\n        - DELETE FROM t",
            id="in a list",
        ),
        pytest.param(
            'query: "SELECT 1 {% if ctx.n %} LIMIT §{{ ctx.n }} {% endif %}"',
            'query: "SELECT 1 {% if ctx.n %} LIMIT {{ ctx.n | int }} {% endif %}"',
            id="a number says so",
        ),
        pytest.param(
            "query: \"SELECT '{{ execution_id }}' , §{{ args.x | upper }}\"",
            "query: \"SELECT '{{ execution_id }}' , {{ iter.index }} , {{ 1 + 1 }}\"",
            id="what the engine makes is safe",
        ),
        pytest.param(
            'query: "SELECT §{{ ctx.a }}"',
            'query: "{{ ctx.statement }}"',
            id="a whole statement is no paste",
        ),
    ],
)
def test_values_are_bound_not_pasted(bad: str, good: str) -> None:
    step = "- step: start\n  tool:\n    - name: ask\n      kind: sqlite\n      "
    assert_found("sql-paste", step + bad + "\n")
    assert_clean(step + good + "\n")


def test_text_that_is_no_sql_may_be_put_together() -> None:
    assert_clean("""
        - step: start
          tool: { kind: sqlite, database: "{{ workload.folder }}/a.db", query: SELECT 1 }
        """)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            '- { name: show, kind: noop, args: { key: "{{ §keychain.api.value }}" } }',
            "- { name: show, kind: noop, args: { key: api } }",
            id="the result of a noop",
        ),
        pytest.param(
            '- { name: child, kind: playbook, path: a/b, args: { key: "{{ §keychain.api.value }}" } }',
            "- { name: child, kind: playbook, path: a/b, args: { key: api } }",
            id="the workload of a child",
        ),
        pytest.param(
            '- { name: keep, kind: artifact, action: put, content: { key: "{{ §keychain.api.value }}" } }',
            '- { name: call, kind: http, url: http://a, headers: { x-key: "{{ keychain.api.value }}" } }',
            id="an artifact",
        ),
        pytest.param(
            '- { name: look, kind: secrets, set: { ctx.key: "{{ §outcome.result.value }}" } }',
            '- { name: look, kind: secrets }\n    - { name: use, kind: python, args: { key: "{{ look }}" }, code: result = 1 }',
            id="the context",
        ),
        pytest.param(
            '- { name: look, kind: secrets }\n    - { name: show, kind: noop, args: { key: "{{ §look.value }}" } }',
            "- { name: look, kind: secrets }\n    - { name: show, kind: noop }",
            id="what a task looked up, by its label",
        ),
        pytest.param(
            '- { name: look, kind: secrets }\n    - { name: show, kind: noop, args: { key: "{{ §_prev.value }}" } }',
            '- { name: look, kind: secrets }\n    - { name: call, kind: shell, command: [a, "{{ _prev.value }}"] }',
            id="what the task before looked up",
        ),
        pytest.param(
            '- { name: look, kind: secrets }\n  next: { arcs: [{ step: end, args: { key: "{{ §event.result.value }}" } }] }\n'
            "- step: end\n  tool: { kind: noop }",
            "- { name: look, kind: secrets }\n    - { name: call, kind: http, url: http://a }\n"
            '  next: { arcs: [{ step: end, args: { answer: "{{ event.result.data }}" } }] }\n'
            "- step: end\n  tool: { kind: noop }",
            id="the args of a token",
        ),
    ],
)
def test_secrets_are_used_and_not_kept(bad: str, good: str) -> None:
    head = "keychain: [{ name: api, kind: env, env: API }]\nworkflow:\n- step: start\n  tool:\n    "
    assert_found("secret-in-result", head + bad + "\n")
    assert_clean(head + good + "\n")


def test_of_two_steps_with_one_name_the_first_counts() -> None:
    twice = """
        - step: start
          next: { arcs: [{ step: start, when: "{{ workload.again }}" }] }
        - step: start
          tool:
            - { name: a, kind: noop, set: { ctx.a: "{{ outcome.result }}" } }
            - { name: b, kind: noop, set: { ctx.b: "{{ outcome.result }}" } }
          next: { arcs: [{ step: start, when: false }] }
        """
    assert [problem.code for problem in examine(document_text(twice), "test.yaml").problems] == [
        "duplicate-step"
    ]
