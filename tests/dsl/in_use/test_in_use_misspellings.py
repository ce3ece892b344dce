"""Names that nothing sets are null in use; one that is close to a known name is probably misspelt."""

import pytest

from noetl.loader import examine

DOCUMENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: m, path: m}
workload: {city: Rome}
workflow:
- step: start
  tool: {kind: python, input: {n: 1}, code: "result = {'n': n}"}
  set: {total: "{{ output.n }}"}
  next: {arcs: [{step: report}]}
- step: report
  tool:
  - name: show
    kind: noop
    input:
      first: "{{ city }}"
      value: VALUE
"""
LINE = 16


def warnings_of(value: str) -> list[tuple[int, int, str, str]]:
    loaded = examine(DOCUMENT.replace("VALUE", value), "m.yaml")
    assert (loaded.dialect, loaded.playbook is not None) == ("in_use", True), loaded.problems
    assert {(problem.code, problem.severity) for problem in loaded.problems} <= {("unset-name", "warning")}
    return [(problem.line, problem.column, problem.message, problem.hint) for problem in loaded.problems]


@pytest.mark.parametrize(
    ("value", "column", "name", "meant"),
    [
        ('"{{ outpt.data }}"', 18, "outpt", "output"),
        ('"{{ worklod.city }}"', 18, "worklod", "workload"),
        ('"{{ itr.x }}"', 18, "itr", "iter"),
        ('"{{ ctxx.a }}"', 18, "ctxx", "ctx"),
        ("'{{ totl }}'", 18, "totl", "total"),
        ('{a: ["of {{ 1 + 2 }} {{ strt.n }}"]}', 38, "strt", "start"),
        ("of {{ stat.n }}", 20, "stat", "start"),
        ('"\\x41 {{ outpt }}"', 14, "outpt", "output"),
        ("|\n        {{ outpt.data }}", 14, "outpt", "output"),
    ],
)
def test_a_name_close_to_a_known_one_is_warned_about(value: str, column: int, name: str, meant: str) -> None:
    message = f"nothing sets `{name}`: it is null here"
    assert warnings_of(value) == [(LINE, column, message, f"did you mean `{meant}`?")]


@pytest.mark.parametrize(
    "value",
    [
        '"{{ nothing_like_it.x }}"',
        '"{{ outpt.data | default(1) }}"',
        '"{{ outpt is defined }}"',
        '"{{ ct }}"',
        '"{{ totals_all }}"',
        '"{{ city }} {{ total }} {{ start.n }} {{ output.data }}"',
    ],
)
def test_other_names_are_null_in_silence(value: str) -> None:
    assert warnings_of(value) == []


def test_a_comment_silences_the_warning() -> None:
    assert warnings_of('"{{ outpt.data }}"  # noetl: ignore unset-name') == []


def test_a_document_with_very_many_names_is_warned_about_some() -> None:
    reads = " ".join(f"{{{{ workload{number} }}}}" for number in range(100, 400))
    assert len(warnings_of(f'"{reads}"')) == 100


HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: m, path: m}\n"
STEP = "workflow:\n- {step: start, tool: {kind: noop, input: {a: 1}}}\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        (
            HEAD
            + "workflow:\n- {step: s, input: {}, loop: {cursr: {claim: x}, iterator: i}, tool: {kind: noop}}\n",
            *(5, 31, "a loop has no key `cursr`", "did you mean `cursor`?"),
        ),
        (
            HEAD + "keychain: [{name: k, kind: oauth2, endpont: x}]\n" + STEP,
            *(4, 36, "a keychain entry of kind `oauth2` has no key `endpont`", "did you mean `endpoint`?"),
        ),
        (
            HEAD + "workflow:\n- {step: s, tool: {kind: http, input: {}, url: x, spec: {metod: x}}}\n",
            *(5, 58, "the spec of a `http` task has no key `metod`", "did you mean `method`?"),
        ),
        (
            HEAD.replace("path: m}", "path: m, dialect: in_us}") + STEP,
            *(3, 39, "`dialect` cannot be the text `in_us`", "did you mean `in_use`?"),
        ),
        (
            HEAD
            + "workflow:\n- {step: s, tool: {kind: python, input: {}, libs: [json, {a: b}], code: x = 1}}\n",
            *(5, 58, "a package of `libs` must be text, not a mapping", ""),
        ),
        (
            HEAD + "workflow:\n- {step: s, tool: {kind: shell, input: {}, cmds: [ls, true]}}\n",
            *(5, 55, "a command of `cmds` must be text, not `true`", ""),
        ),
        (
            HEAD + "workflow:\n- {step: s, tool: {kind: shell, input: {}, cmds: []}}\n",
            *(5, 50, "`cmds` is empty", "write the commands, each as text"),
        ),
    ],
)
def test_what_is_nearly_right_is_told_apart_from_what_was_meant(
    text: str, line: int, column: int, message: str, hint: str
) -> None:
    problems = examine(text, "m.yaml").problems
    errors = {
        (error.line, error.column, error.message, error.hint)
        for error in problems
        if error.severity == "error"
    }
    assert (line, column, message, hint) in errors
