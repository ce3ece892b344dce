"""A message says what is wrong and where; its hint says what to do."""

import pytest
from msgspec import Struct, inspect

from noetl.dsl.document.composer import compose
from noetl.dsl.document.problem_codes import CODES
from noetl.dsl.document.shape_check import ShapeChecker, describe_node, did_you_mean
from noetl.dsl.document.shape_messages import describe_type, inline_description
from noetl.dsl.document.source import Located, Mapping, Scalar, Sequence
from tests.playbooks import NOOP, problems_of, step

STEPS = "workflow:\n" + step(NOOP)
RULE = "tool: { kind: noop, spec: { policy: { rules: [%s] } } }"
HTTP = "tool: { kind: http, url: 'https://a.example', %s }"

IN_USE = "; documents in use have it: `--dialect in_use`, or `metadata.dialect: in_use`"

SAID = {
    "misspelt key": (
        step(HTTP % "methd: GET"),
        "a task of kind `http` has no key `methd`",
        "did you mean `method`?",
    ),
    "misspelt section": (
        "workload: {}\nworkfow: []\n" + STEPS,
        "a playbook has no key `workfow`",
        "did you mean `workflow`?",
    ),
    "misspelt kind": (step("tool: { kind: htpp }"), "there is no tool kind `htpp`", "did you mean `http`?"),
    "kind of a plugin": (
        step("tool: { kind: telegraph }"),
        "there is no tool kind `telegraph`",
        "`--tools` knows those of a file, `--allow-kind` accepts one that is not installed here",
    ),
    "missing input": (
        step("tool: { kind: http }"),
        "a task of kind `http` needs the key `url`",
        "add `url:`, address, with `http://` or `https://`",
    ),
    "wrong type": (
        step(HTTP % "spec: { timeout: fast }"),
        "`timeout` must be a number or a mapping or an expression, not the text `fast`",
        "",
    ),
    "number in quotes": (
        step("loop: { in: [1], iterator: n, spec: { max_in_flight: '5' } }\n" + NOOP),
        "`max_in_flight` must be a whole number or an expression, not the text `5`",
        "write the number without quotes",
    ),
    "text without quotes": (
        step("desc: 5\n" + NOOP),
        "`desc` must be text, not the number 5",
        "quote it to make it text",
    ),
    "expression where none is evaluated": (
        step("loop: { in: [1], iterator: n, spec: { window: '{{ 5 }}' } }\n" + NOOP),
        "`window` must be a whole number, not the text `{{ 5 }}`",
        "write the value itself: no expression is evaluated here",
    ),
    "value of a list": (
        "executor: { kind: remote }\n" + STEPS,
        "`kind` cannot be the text `remote`",
        "one of `distributed`, `hybrid`, `local`",
    ),
    "value nearly of a list": (
        step(HTTP % "method: PSOT"),
        "`method` cannot be the text `PSOT`",
        "did you mean `POST`?",
    ),
    "bound": (
        step(RULE % "{ else: { do: retry, attempts: 0 } }"),
        "`attempts` must be at least 1, not 0",
        "",
    ),
    "pattern": (
        step("tool: { kind: python, code: x = 1, spec: { memory: lots } }"),
        "`memory` cannot be the text `lots`",
        "bytes, such as `512MB` or `2 GiB`",
    ),
    "step of an arc": (
        step("next: { arcs: [{ step: strat }] }"),
        "there is no step `strat`",
        "did you mean `start`?",
    ),
    "no step at all": ("workflow: [start]", "a step must be a mapping, not the text `start`", ""),
    "empty step": (
        step("desc: later"),
        "the step `start` needs `tool` or `next`",
        "an end is `tool: { kind: noop }`" + IN_USE,
    ),
    "name": (
        step("loop: { in: [1], iterator: my item }\n" + NOOP),
        "an iterator cannot be the text `my item`",
        "letters, digits, `_` and `-`, and no digit or `-` first",
    ),
    "reserved name": (
        step(NOOP, name="ctx"),
        "a step's name cannot be `ctx`: that name has a meaning of its own",
        "choose another name",
    ),
    "draft construct": (
        step("when: true\n" + NOOP),
        "a step has no `when`",
        "use `spec.policy.admit`; or run `noetl upgrade --dialect draft`, or pass `--dialect draft`",
    ),
    "version 1": (
        "workload: {}\nname: old\n" + STEPS,
        "a playbook has no key `name`",
        "put it under `metadata`; or for version 1 of the language, set `apiVersion: noetl.io/v1`",
    ),
    "policy": (
        step("tool: { kind: noop, spec: { policy: { rule: [] } } }"),
        "a policy is an object containing `rules`, not a mapping without `rules`",
        "`rule`: did you mean `rules`?",
    ),
    "directive": (
        step(RULE % "{ else: continue }"),
        "`then` must be a mapping, not the text `continue`",
        "write `{ do: continue }`",
    ),
    "option": (
        step(RULE % "{ else: { do: fail, attempts: 2 } }"),
        "`attempts` belongs to `do: retry`, not `do: fail`",
        "remove it; it has no effect here",
    ),
    "jump": (
        step(RULE % "{ else: { do: jump, to: task_1 } }"),
        "the pipeline has no task `task_1`",
        "did you mean `task_0`?",
    ),
    "guard without braces": (
        step(RULE % "{ when: ctx.n == 1, then: { do: continue } }"),
        "a guard is an expression in braces; as it stands this is text",
        "write `{{ ctx.n == 1 }}`",
    ),
    "write": (
        step("set: { total: 1 }\n" + NOOP),
        "`total` does not say where to write",
        "write `ctx.total`, `iter.total` or `run.total`" + IN_USE,
    ),
    "workbook": (
        step("tool: { kind: workbook, task: fetch }"),
        "the workbook has no task `fetch`",
        "declare it under `workbook.tasks`",
    ),
    "task": (
        step("tool: [fetch]"),
        "a task is a mapping, not the text `fetch`",
        "write `- name: LABEL` with `kind: KIND`, or `- LABEL: { kind: KIND }`",
    ),
}


@pytest.mark.parametrize("fault", SAID)
def test_what_is_said(fault: str) -> None:
    text, message, hint = SAID[fault]
    problem = next(problem for problem in problems_of(text) if problem.severity == "error")
    assert (problem.message, problem.hint) == (message, hint)


def test_messages_and_hints_are_parts_of_sentences() -> None:
    for text, _, _ in SAID.values():
        for problem in problems_of(text):
            for sentence in (problem.message, problem.hint):
                assert not sentence.endswith((".", "!", " "))
                assert sentence[:1] == sentence[:1].lower()
                assert sentence.count("`") % 2 == 0


def test_every_code_has_a_summary_of_one_sentence() -> None:
    for code in CODES.values():
        assert code.summary.endswith(".")
        assert code.summary[0].isupper() or code.summary[0] == "`"


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("methd", "method"), ("ulr", "url"), ("header", "headers"), ("METHOD", ""), ("zzz", ""), ("", "")],
)
def test_did_you_mean_names_the_nearest_word_or_nothing(word: str, nearest: str) -> None:
    hint = did_you_mean(word, ["url", "method", "headers", "json"])
    assert hint == (f"did you mean `{nearest}`?" if nearest else "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "the number 5"),
        ("1.5", "the number 1.5"),
        ("true", "`true`"),
        ("text", "the text `text`"),
        ("[1]", "a list"),
        ("{ a: 1 }", "a mapping"),
        ("~", "empty"),
        ("x" * 50, "the text `" + "x" * 39 + "…`"),
    ],
)
def test_a_value_in_words(text: str, words: str) -> None:
    node = compose(text)
    assert node is not None
    assert describe_node(node) == words


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (str, "text"),
        (int, "a whole number"),
        (int | float, "a number"),
        (str | None, "text"),
        (bool, "`true` or `false`"),
        (list[str] | dict[str, int], "a list or a mapping"),
    ],
)
def test_a_type_in_words(type_: type, words: str) -> None:
    assert describe_type(inspect.type_info(type_)) == words


def test_a_description_in_passing_keeps_abbreviations() -> None:
    assert inline_description("The collection.") == "the collection"
    assert inline_description("A list.") == "a list"
    assert inline_description("SQL to run.") == "SQL to run"


class Inner(Struct, forbid_unknown_fields=True):
    size: int


class Outer(Struct, forbid_unknown_fields=True):
    inner: Inner
    items: list[Inner] = []


def test_the_shaper_keeps_what_fits_and_reports_the_rest_at_its_place() -> None:
    reported: list[tuple[int, int, str]] = []

    def report(code: str, at: Located, message: str, hint: str = "") -> None:
        reported.append((at.line, at.column, code))

    node = compose("inner: { size: 1, sise: 2 }\nitems: [{ size: x }, 5, { size: 3 }]\nother: 1")
    assert node is not None
    fitting = ShapeChecker(report).check_struct(node, Outer, "it")
    assert reported == [
        (1, 19, "unknown-key"),
        (2, 17, "wrong-type"),
        (2, 22, "wrong-type"),
        (3, 1, "unknown-key"),
    ]
    assert fitting is not None
    items = fitting.get("items")
    assert isinstance(items, Sequence)
    assert len(items.items) == 2
    assert isinstance(items.items[0], Mapping)
    assert items.items[0].entries == {}
    last = items.items[1]
    assert isinstance(last, Mapping)
    size = last.get("size")
    assert isinstance(size, Scalar)
    assert size.value == 3
