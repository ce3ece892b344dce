"""Where a failure is said to be: the very expression, line of code or key that failed."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from noetl.api import open_local
from noetl.cli.report.execution_report import ExecutionReport
from noetl.cli.report.failed_attempts import FailedAttempts
from noetl.cli.report.follow_up import FollowUp
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.settings import read_settings
from tests.cli.command_line import run

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


@pytest.mark.parametrize("name", CASES)
def test_the_caret_stands_at_what_failed(name: str, tmp_path: Path) -> None:
    document, line, column = _marked(CASES[name])
    report = asyncio.run(_report(document, tmp_path))
    assert _excerpt(report) == _expected_excerpt("p.yaml", document.split("\n")[line - 1], line, column)


def _marked(text: str) -> tuple[str, int, int]:
    """The document without its mark, and where that stood."""
    text = dedent(text).lstrip("\n")
    before, _, after = (text if text.startswith("apiVersion") else HEADER + text).partition(MARK)
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def _expected_excerpt(file: str, text: str, line: int, column: int) -> list[str]:
    return [f"{file}:{line}:{column}", f"{line:>5} | {text}", "      | " + " " * (column - 1) + "^"]


def _excerpt(report: str) -> list[str]:
    lines = [line.removeprefix("  ") for line in report.split("\n")]
    caret = next((index for index, line in enumerate(lines) if re.fullmatch(r"      \| +\^", line)), 2)
    return lines[caret - 2 : caret + 1]


async def _report(document: str, folder: Path) -> str:
    """What is said at the end of an execution of the document, which must fail."""
    configuration = read_settings({"home": str(folder / ".noetl")}, environment={})
    attempts = FailedAttempts()
    source = PlaybookSource(document, "p.yaml", str(folder / "p.yaml"))

    def watch(execution_id: str, events: Sequence[Event], _: ExecutionState) -> None:
        attempts.observe(execution_id, events)

    async with open_local(configuration, watch=watch) as (local, _):
        state = await local.wait_for_end(await local.start(source))
    assert state.status == "failed"
    return ExecutionReport(state, FollowUp(configuration), source, attempts).ending()


def test_every_command_names_the_line_of_code_also_in_the_traceback(tmp_path: Path) -> None:
    document, line, column = _marked(CODE)
    (tmp_path / "p.yaml").write_text(document)
    done = run("run", "p.yaml", cwd=tmp_path)
    text = document.split("\n")[line - 1]
    assert _excerpt(done.err) == _expected_excerpt("p.yaml", text, line, column)
    assert f'File "p.yaml", line {line}, in divide\n' in done.err
    assert f'File "p.yaml", line {line + 1}, in <module>\n' in done.err
    assert "<code>" not in done.err
    seen = run("executions", "show", "latest", cwd=tmp_path)
    assert _excerpt(seen.out) == _expected_excerpt("p.yaml", text, line, column)
    failure = run("executions", "show", "latest", "-o", "json", cwd=tmp_path).json["explanation"]["failure"]
    assert (failure["line"], failure["column"]) == (line, column)


def test_a_script_in_a_file_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "fix.py").write_text("import json\n\ndef main():\n    return json.loads('{')\n")
    document = HEADER + "workflow: [{step: start, tool: {name: a, kind: python, script: jobs/fix.py}}]\n"
    report = asyncio.run(_report(document, tmp_path))
    assert _excerpt(report) == _expected_excerpt("jobs/fix.py", "return json.loads('{')", 4, 8)


def test_a_script_that_is_no_python_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "fix.py").write_text("x = 1\ny = = 2\n")
    document = HEADER + "workflow: [{step: start, tool: {name: a, kind: python, script: fix.py}}]\n"
    report = asyncio.run(_report(document, tmp_path))
    assert _excerpt(report) == _expected_excerpt("fix.py", "y = = 2", 2, 5)


def test_no_attempt_has_the_number_0(tmp_path: Path) -> None:
    document, *_ = _marked(INPUTS)
    (tmp_path / "p.yaml").write_text(document)
    done = run("run", "p.yaml", "-o", "json", cwd=tmp_path)
    assert done.json["error"]["attempt"] is None
    assert "step start failed: task a: expression: " in done.err
    seen = run("executions", "show", "latest", "-o", "json", cwd=tmp_path)
    assert (seen.json["explanation"]["error"].get("attempt"), seen.json["error"]["attempt"]) == (None, None)
    assert "attempt 0" not in done.err + run("executions", "show", "latest", cwd=tmp_path).out
