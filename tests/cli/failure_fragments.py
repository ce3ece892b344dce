"""Playbooks that fail at a mark: what each report has to point at."""

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: it, path: test/it}\n"
MARK = "»"
"""Stands before the character that must be pointed at."""

INPUTS = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            args:
              x: "{{ args.nope | default('') }}"
              y: "{{ args.nope | default('') }}{{ »ctx.nope }}"
    """
SECOND_TASK = """
    workflow:
      - step: start
        tool:
          - {name: first, kind: noop, set: {ctx.n: 1}}
          - {name: a, kind: noop, args: {x: "{{ 1 / ctx.n }}"}, set: {ctx.n: 0}}
          - {name: b, kind: noop, args: {x: "»{{ 1 / ctx.n }}"}}
    """
OPTIONAL_BEFORE = """
    workflow:
      - step: start
        tool: {name: a, kind: noop, args: {x: "{{ ctx.nope | default('') }}{{ »ctx.nope }}"}}
    """
SAME_TEXT_IN_GUARD = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec:
              policy:
                rules:
                  - {when: "{{ ctx.nope }}", then: {do: fail}}
                  - else: {then: {do: continue, set_ctx: {a: "{{ »ctx.nope }}"}}}
    """
FOLDED = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            args:
              text: >
                Dear {{ workload.name | default('you') }},
                this is {{ »ctx.sender.name }},
                bye
    """
BLOCK_WITHOUT_NAME = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            args:
              text: |
                Dear you,
                this is »{{ 1 // 0 }}
    """
GUARD = """
    workflow:
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - {step: start, when: "{{ event.name == 'step.failed' }}"}
            - {step: end, when: "»{{ 1 / 0 > 1 }}"}
      - {step: end, tool: {kind: noop}}
    """
ARC_ARGS = """
    workflow:
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - {step: end, args: {a: "{{ »ctx.nope }}"}}
      - {step: end, tool: {kind: noop}}
    """
ARC_SET = ARC_ARGS.replace("args: {a:", "set: {ctx.a:")
STEP_ARGS = """
    workflow:
      - step: start
        args: {a: "{{ »ctx.nope }}"}
        tool: {kind: noop}
    """
STEP_SET = """
    workflow:
      - step: start
        tool: {kind: noop}
        set: {ctx.a: "{{ »ctx.nope }}"}
    """
TASK_SET = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            set: {ctx.a: "{{ »ctx.nope }}"}
    """
RULE_SET = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec:
              policy:
                rules:
                  - when: "{{ outcome.status == 'error' }}"
                    then: {do: fail}
                  - else:
                      then:
                        do: continue
                        set_ctx: {a: "{{ »ctx.nope }}"}
    """
RULE = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec:
              policy:
                rules:
                  - when: "{{ outcome.status == 'error' }}"
                    then: {do: fail}
                  - when: "»{{ 1 / 0 }}"
                    then: {do: fail}
    """
RULE_FAILS = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec:
              policy:
                rules:
                  - {when: "{{ outcome.status == 'error' }}", then: {do: continue}}
                  - »when: "{{ outcome.status == 'ok' }}"
                    then: {do: fail, message: not good enough}
    """
ELSE_FAILS = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec:
              policy:
                rules:
                  - {when: "{{ outcome.status == 'error' }}", then: {do: continue}}
                  - else:
                      then: »{do: fail}
    """
DELAY = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec:
              policy:
                rules:
                  - {when: "{{ outcome.status == 'error' }}", then: {do: retry, delay: "{{ 'soon' }}"}}
                  - when: "{{ outcome.status == 'ok' }}"
                    then: {do: retry, delay: »"{{ 'later' }}"}
    """
LOOP = """
    workflow:
      - step: start
        loop: {in: "{{ »workload.rows }}", iterator: row}
        tool: {kind: noop}
    """
LOOP_OVER_NUMBER = """
    workflow:
      - step: start
        loop:
          in: »"{{ 1 + 1 }}"
          iterator: row
        tool: {kind: noop}
    """
ITERATION = """
    workflow:
      - step: start
        loop: {in: [1, 0], iterator: row}
        tool:
          - name: a
            kind: noop
            args: {x: "»{{ 1 / iter.row }}"}
    """
MAX_IN_FLIGHT = """
    workflow:
      - step: start
        loop:
          in: [1, 0]
          iterator: row
          spec: {mode: parallel, max_in_flight: »"{{ 'many' }}"}
        tool: {kind: noop}
    """
ADMISSION = """
    workflow:
      - step: start
        spec:
          policy:
            admit:
              rules:
                - when: "»{{ 1 / 0 }}"
                  then: {allow: true}
        tool: {kind: noop}
    """
NOT_ADMITTED = """
    workflow:
      - step: start
        spec:
          policy:
            admit:
              »rules:
                - {when: "{{ workload.x | default(false) }}", then: {allow: true}}
              on_deny: fail
        tool: {kind: noop}
    """
TASK_TIMEOUT = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: noop
            spec: {timeout: "{{ »ctx.seconds }}"}
    """
TIMEOUT_IS_TEXT = TASK_TIMEOUT.replace('"{{ »ctx.seconds }}"', "»\"{{ 'soon' }}\"")
TIME_IS_OVER = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: shell
            command: [sleep, "60"]
            spec: {timeout: »0.05}
    """
WORKLOAD = """
    workload:
      a: 1
      b: "{{ »workload.nope }}"
    workflow:
      - {step: start, tool: {kind: noop}}
    """
OUTPUT = """
    executor: {spec: {output: {a: "{{ »ctx.nope }}"}}}
    workflow:
      - {step: start, tool: {kind: noop}}
    """
CODE = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: python
            code: |
              def divide(a):

                  # all of the text counts
                  return »1 / a
              result = divide(0)
    """
ONE_LINE_OF_CODE = """
    workflow:
      - step: start
        tool: {name: a, kind: python, code: "result = »{}['k']"}
    """
CODE_IN_LIBRARY = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: python
            code: |
              import json
              result = »json.loads("{")
    """
CODE_AFTER_CODE = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: python
            code: |
              try:
                  {}["k"]
              except KeyError:
                  »raise ValueError("no")
    """
CODE_OF_ITERATION = """
    workflow:
      - step: start
        loop: {in: [1, 0], iterator: row}
        tool:
          - name: a
            kind: python
            args: {row: "{{ iter.row }}"}
            code: |

              result = »1 / row
    """
CODE_OF_WORKBOOK = """
    workbook:
      tasks:
        shared:
          kind: python
          code: |
            »raise ValueError("no")
    workflow:
      - step: start
        tool: {name: a, kind: workbook, task: shared}
    """
RESULT_IS_NO_JSON = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: python
            »code: |
              result = object()
    """
JUDGED_CODE = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: python
            code: |
              raise ValueError("no")
            spec:
              policy:
                rules:
                  - {when: "»{{ 1 / 0 }}", then: {do: fail}}
    """
SQLITE = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: sqlite
            command: |
              CREATE TABLE t (a);

              INSERT INTO t VALUES (1);
              SELECT
                »nope
              FROM t
    """
SQLITE_LIST = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: sqlite
            command:
              - CREATE TABLE t (a);
              - »SELECT nope FROM t
              - SELECT 1
    """
SQLITE_TEMPLATE = """
    workload: {table: t}
    workflow:
      - step: start
        tool:
          - name: a
            kind: sqlite
            command: |
              CREATE TABLE {{ workload.table }} (a);
              »SELECT nope FROM {{ workload.table }}
    """
SQLITE_LONGER_TEMPLATE = """
    workload: {list: "1\\n, 2\\n"}
    workflow:
      - step: start
        tool:
          - name: a
            kind: sqlite
            »command: |
              SELECT {{ workload.list }};
              SELECT nope
    """
DUCKDB = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: duckdb
            command: |
              CREATE TABLE t (a INTEGER);
              SELECT a,
                »FROM FROM t
    """
CREDENTIAL = """
    workflow:
      - step: start
        tool:
          - name: a
            kind: http
            url: http://127.0.0.1:1/
            auth: »nobody
    """
NO_SCRIPT = """
    workflow:
      - step: start
        tool: {name: a, kind: python, script: »nowhere.py}
    """
SHELL = """
    workflow:
      - step: start
        tool:
          - name: »a
            kind: shell
            command: exit 3
    """
V1 = """
    apiVersion: noetl.io/v1
    kind: Playbook
    name: it
    path: test/it
    workbook:
      - task: say
        type: python
        with:
          text: |
            Dear you,
            this is {{ »input.nope.nope }}
        code: |
          def main(input):
              return input
    workflow:
      - step: start
        run:
          - task: say
    """
V1_CODE = """
    apiVersion: noetl.io/v1
    kind: Playbook
    name: it
    path: test/it
    workbook:
      - task: say
        type: python
        code: |
          def main(input):
              return »input["nope"]
    workflow:
      - step: start
        run:
          - task: say
    """
DRAFT = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: it, path: test/it, dialect: draft}
    workflow:
      - step: start
        tool:
          - name: say
            kind: noop
            args:
              text: |
                {{ vars.there | default(1) }}
                »{{ vars.nope }}
    """

CASES = {
    name.lower(): text for name, text in list(globals().items()) if isinstance(text, str) and MARK in text[1:]
}
