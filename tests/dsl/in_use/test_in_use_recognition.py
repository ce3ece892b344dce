"""Which documents are in use: marks, counter-marks, and whose word counts."""

from pathlib import Path

import pytest

from noetl.loader import examine, upgrade
from tests.cli.command_line import run
from tests.dsl.in_use.spelling_rows import HEADER

NOOP = "workflow:\n- {step: s, tool: {kind: noop}}\n"
MARKS = {
    "set x": "workflow:\n- {step: s, tool: {kind: noop, set: {x: 1}}}",
    "set step.x": "workflow:\n- {step: s, tool: {kind: noop}, set: {step.x: 1}}",
    "task input": "workflow:\n- {step: s, tool: {kind: noop, input: {x: 1}}}",
    "step input": "workflow:\n- {step: s, tool: {kind: noop}, input: {x: 1}}",
    "step output": "workflow:\n- {step: s, tool: {kind: noop}, output: {store: kv}}",
    "output.status": "workflow:\n- {step: s, tool: {kind: noop, spec: {policy: {rules: [{when: \"{{ output.status == 'x' }}\", then: {do: fail}}]}}}}",
    "output.http": 'workflow:\n- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, when: "{{ output.http.status == 1 }}"}]}}',
    "call.done": "workflow:\n- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, when: \"{{ event.name == 'call.done' }}\"}]}}",
    "call.error": "workflow:\n- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, when: \"{{ event.name == 'call.error' }}\"}]}}",
    "loop.cursor": "workflow:\n- {step: s, tool: {kind: noop}, loop: {cursor: {claim: x}}}",
    "executor.profile": "executor: {profile: local}\n" + NOOP,
    "executor.version": "executor: {version: 2}\n" + NOOP,
    "executor.requires": "executor: {requires: [x]}\n" + NOOP,
    "workbook tool": "workbook: [{name: a, tool: {kind: noop}}]\n" + NOOP,
    "keychain scope": "keychain: [{name: k, kind: static, value: a, scope: global}]\n" + NOOP,
    "keychain map": "keychain: [{name: k, kind: static, map: {a: b}}]\n" + NOOP,
    "keychain kind secrets": "keychain: [{name: k, kind: secrets, map: {a: b}}]\n" + NOOP,
    "keychain kind google_id_token": "keychain: [{name: k, kind: google_id_token}]\n" + NOOP,
}
COUNTERS = {
    "args": "workflow:\n- {step: s, tool: {kind: noop, args: {x: 1}}}",
    "set_ctx": "workflow:\n- {step: s, tool: {kind: noop, spec: {policy: {rules: [{else: {do: continue, set_ctx: {x: 1}}}]}}}}",
    "outcome": "workflow:\n- {step: s, tool: {kind: noop, spec: {policy: {rules: [{when: \"{{ outcome.status == 'x' }}\", then: {do: fail}}]}}}}",
    "_prev": 'workflow:\n- {step: s, tool: {kind: http, url: "{{ _prev }}"}}',
    "step.done": "workflow:\n- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, when: \"{{ event.name == 'step.done' }}\"}]}}",
    "step.failed": "workflow:\n- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, when: \"{{ event.name == 'step.failed' }}\"}]}}",
    "executor.kind": "executor: {kind: local}\n" + NOOP,
    "spec.policy.join": "workflow:\n- {step: s, spec: {policy: {join: all}}, tool: {kind: noop}}",
}
NEITHER = {
    "set with scopes": "workflow:\n- {step: s, tool: {kind: noop, set: {ctx.x: 1, iter.y: 1, run.z: 1}}}",
    "set on an arc": "workflow:\n- {step: s, tool: {kind: noop}, next: {arcs: [{step: s, set: {x: 1}}]}}",
    "words in code and descriptions": "workflow:\n- {step: s, desc: '{{ output.data }}', tool: {kind: python, code: 'x = \"{{ output.data }}\"'}}",
    "words in texts": "workflow:\n- {step: s, tool: {kind: http, url: 'output.data outcome _prev', params: {a: \"{{ 'output.data' }}\"}}}",
    "args that are an expression": 'workflow:\n- {step: s, tool: {kind: noop, args: "{{ workload }}"}}',
}


@pytest.mark.parametrize(("mark", "text"), MARKS.items(), ids=MARKS)
def test_a_mark_makes_a_document_in_use(mark: str, text: str) -> None:
    loaded = examine(HEADER + text, "page.yaml")
    assert loaded.recognition is not None
    assert (loaded.dialect, mark in [seen.text for seen in loaded.recognition.marks]) == ("in_use", True)


@pytest.mark.parametrize(("mark", "text"), COUNTERS.items(), ids=COUNTERS)
def test_a_counter_mark_keeps_a_document_canonical(mark: str, text: str) -> None:
    alone = examine(HEADER + text, "page.yaml")
    assert alone.recognition is not None
    assert ([seen.text for seen in alone.recognition.counter_marks], alone.dialect) == ([mark], "canonical")
    both = examine(f"{HEADER}{text}\n- {{step: t, input: {{x: 1}}}}\n", "page.yaml")
    notes = [problem for problem in both.problems if problem.code == "mixed-dialects"]
    assert (both.dialect, len(notes)) == ("canonical", 1)
    assert mark in notes[0].message
    assert "step input" in notes[0].message


@pytest.mark.parametrize("text", NEITHER.values(), ids=NEITHER)
def test_a_document_without_marks_is_canonical(text: str) -> None:
    loaded = examine(HEADER + text, "page.yaml")
    assert loaded.recognition is not None
    assert (loaded.dialect, loaded.recognition.marks, loaded.recognition.counter_marks) == (
        "canonical",
        (),
        (),
    )


def test_the_caller_and_the_document_override_what_is_recognised() -> None:
    marked, counted = HEADER + MARKS["set x"] + "\n", HEADER + COUNTERS["args"] + "\n"
    declared = marked.replace("docs/page", "docs/page, dialect: canonical")
    assert examine(marked, "page.yaml", dialect="canonical").dialect == "canonical"
    assert examine(counted, "page.yaml", dialect="in_use").dialect == "in_use"
    assert examine(declared, "page.yaml").dialect == "canonical"
    assert examine(declared, "page.yaml", dialect="in_use").dialect == "in_use"
    assert (
        examine(counted.replace("docs/page", "docs/page, dialect: in_use"), "page.yaml").dialect == "in_use"
    )


def test_a_document_half_in_each_dialect_gets_one_note_and_not_fifty_errors() -> None:
    steps = "".join(
        f"- {{step: s{n}, tool: {{kind: noop, args: {{a: 1}}, set: {{x{n}: 1}}}}}}\n" for n in range(50)
    )
    problems = examine(f"{HEADER}workflow:\n{steps}", "page.yaml").problems
    errors = [problem for problem in problems if problem.code not in ("unreachable-step", "mixed-dialects")]
    notes = [problem for problem in problems if problem.code == "mixed-dialects"]
    assert [(note.line, note.column, note.severity) for note in notes] == [(5, 53, "warning")]
    assert notes[0].message == (
        "`set x0` in line 5 is of the dialect in use and `args` in line 5 is canonical: the document is read as canonical"
    )
    assert [problem.message.endswith("(and 49 more of that dialect)") for problem in errors] == [True]


def test_of_a_document_half_in_each_dialect_nothing_else_is_said_that_comes_of_it() -> None:
    rules = "[{when: \"{{ output.status == 'success' }}\", then: {do: continue, set: {y: 1}}}]"
    in_use = f"tool: {{kind: http, url: 'http://x', retry: 3, spec: {{policy: {{rules: {rules}}}}}}}"
    canonical = in_use.replace("output", "outcome").replace("success", "ok").replace("set:", "set_ctx:")
    canonical = canonical.replace(" retry: 3,", "")
    steps = "".join(
        f"- {{step: s{n}, {in_use if n % 2 else canonical}, next: {{arcs: [{{step: s{n + 1}}}]}}}}\n"
        for n in range(30)
    )
    problems = examine(
        f"{HEADER}workflow:\n{steps}- {{step: s30, tool: {{kind: noop}}}}\n", "page.yaml"
    ).problems
    assert {problem.code for problem in problems} == {"mixed-dialects", "unknown-key"}
    assert len(problems) == 2


def test_a_document_in_one_dialect_gets_no_note() -> None:
    for text in (MARKS["set x"], COUNTERS["args"]):
        assert [problem.code for problem in examine(HEADER + text + "\n", "page.yaml").problems] == []


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("- {step: s, tool: {kind: noop, inptu: {a: 1}}, input: {}}", 5, 32, "input"),
        ("- {step: s, tool: {kind: noop, input: {}}, ouput: {}}", 5, 44, "output"),
        ("- {step: s, tool: {kind: noop, input: {}, retry: {max_attemps: 3}}}", 5, 51, "max_attempts"),
        ("- {step: s, tool: {kind: noop, input: {}, timeout_secs: 3}}", 5, 43, "timeout_seconds"),
        ("- {step: s, tool: {kind: http, input: {}, url: http://x, verify_sll: true}}", 5, 58, "verify_ssl"),
        (
            "- {step: s, loop: {cursor: {kind: postgres, dsn: x, claim: SELECT 1}, iterator: r, spec: {mode: cursor, frame: {max_row: 3}}}, tool: {kind: noop}}",
            5,
            113,
            "max_rows",
        ),
        ("- {step: s, tool: {kind: tranfer, input: {}}}", 5, 26, "transfer"),
        (
            "- {step: s, tool: {kind: noop, input: {}, output: {inline_max_byte: 3}}}",
            5,
            52,
            "inline_max_bytes",
        ),
        ("- {step: s, tool: {kind: postgres, dsn: x, input: {}, pool: {min_sze: 1}}}", 5, 62, "min_size"),
        ("- {step: s, tool: {kind: noop, input: {}}, next: {arcs: [{step: s, conds: x}]}}", 5, 68, "cond"),
        (
            "- {step: s, tool: {kind: noop, input: {}}, next: {spec: {on_no_math: quiet}}}",
            5,
            58,
            "on_no_match",
        ),
        ("- {step: s, tool: {kind: duckdb, input: {}, script: {url: a.sql}}}", 5, 54, "uri"),
        (
            "- {step: s, tool: {kind: duckdb, input: {}, script: {uri: a, source: {tpye: file}}}}",
            5,
            71,
            "type",
        ),
        (
            "- {step: s, tool: {kind: transfer, input: {}, source: {}, target: {table: t}, maping: {}}}",
            5,
            79,
            "mapping",
        ),
    ],
)
def test_a_spelling_close_to_a_known_one_gets_a_suggestion(
    text: str, line: int, column: int, hint: str
) -> None:
    problems = examine(f"{HEADER}workflow:\n{text}\n", "page.yaml").problems
    places = {(problem.line, problem.column): problem.hint for problem in problems}
    assert f"did you mean `{hint}`?" in places[line, column]


@pytest.mark.parametrize(("kind", "near"), [("secret", "secrets"), ("google_oath", "google_oauth")])
def test_a_kind_of_keychain_entries_close_to_a_known_one_gets_a_suggestion(kind: str, near: str) -> None:
    text = f"{HEADER}keychain: [{{name: k, kind: {kind}, map: {{a: b}}}}]\n{NOOP}\n"
    hints = [problem.hint for problem in examine(text, "page.yaml").problems]
    assert f"did you mean `{near}`?" in hints


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- {step: s, loop: {cursor: {kind: duckdb, clam: SELECT 1}, iterator: r, spec: {mode: cursor}}, tool: {kind: noop}}",
            "a cursor needs `claim`",
        ),
        (
            "- {step: s, loop: {cursor: {kind: duckdb, claim: SELECT 1}, iterator: r, spec: {mode: cursor, frame: 3}}, tool: {kind: noop}}",
            "`frame` must be a mapping, not the number 3",
        ),
        (
            "- {step: s, loop: {cursor: {kind: duckdb, claim: SELECT 1}, iterator: r, spec: {mode: cursor, row_concurrency: many}}, tool: {kind: noop}}",
            "`row_concurrency` must be a whole number, not the text `many`",
        ),
        ("- {step: s, tool: {kind: agent, entrypoit: a, input: {}}}", "an `agent` needs `entrypoint`"),
        (
            "- {step: s, tool: {kind: transfer, input: {}, source: {kind: http}, target: {table: t}}}",
            "a `transfer` cannot read from the text `http`",
        ),
        (
            "- {step: s, tool: {kind: transfer, input: {}, source: {query: SELECT 1, dsn: x}, target: {table: t, dsn: x}, mapping: 3}}",
            "`mapping` must be a mapping, not the number 3",
        ),
        (
            "- {step: s, tool: {kind: duckdb, input: {}, script: {uri: a, source: {type: catalog}}}}",
            "SQL cannot be read from the text `catalog`",
        ),
        (
            "- {step: s, tool: {kind: duckdb, input: {}, script: {uri: s3://a/b, source: {type: s3, auth: k, region: r}}}}",
            "`region` cannot stand beside the name of a credential",
        ),
    ],
)
def test_what_is_wrong_in_the_dialect_is_said_once(text: str, message: str) -> None:
    problems = examine(f"{HEADER}workflow:\n{text}\n", "page.yaml").problems
    assert [problem.message for problem in problems if problem.severity == "error"] == [message]


def test_validate_tells_which_marks_made_it_so(tmp_path: Path) -> None:
    page = tmp_path / "page.yaml"
    page.write_text(HEADER + MARKS["set x"] + "\n", "utf-8")
    assert "page.yaml: in_use: `set x` in line 5" in run("validate", "-v", "page.yaml", cwd=tmp_path).err
    assert "in_use" not in run("validate", "page.yaml", cwd=tmp_path).err
    assert run("validate", "--dialect", "canonical", "page.yaml", cwd=tmp_path).code == 2
    page.write_text(HEADER + COUNTERS["args"] + "\n", "utf-8")
    assert "page.yaml: canonical" in run("validate", "-v", "page.yaml", cwd=tmp_path).err


def test_upgrade_prints_the_canonical_form(tmp_path: Path) -> None:
    page = tmp_path / "page.yaml"
    text = HEADER + MARKS["task input"] + "\n"
    page.write_text(text, "utf-8")
    printed = run("upgrade", "page.yaml", cwd=tmp_path)
    assert (printed.code, printed.out) == (0, upgrade(text, "page.yaml"))
    assert "dialect: canonical" in printed.out
    page.write_text(printed.out, "utf-8")
    again = run("upgrade", "page.yaml", cwd=tmp_path)
    assert (again.out, "already canonical" in again.err) == (printed.out, True)
