"""What may be written at a place: `¦` is the cursor."""

import time

import pytest

from noetl.dsl.completion.suggestions import Completer, Completion
from noetl.loader import installed_kinds, validate

KINDS = installed_kinds()
complete = Completer(KINDS).complete

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a, path: b}
workload: {n: 1, deep: {x: 2}}
keychain:
- {name: bank, kind: env}
"""
TASK = """\
workflow:
- step: start
  tool:
  - name: fetch
    kind: http
    url: https://example.org/
"""
RULE = f"""{HEAD}{TASK}    spec:
      policy:
        rules:
"""
ARC = f"{HEAD}{TASK}  next:\n    arcs:\n"
END = "- step: last\n  tool: {kind: noop}\n"


def at_cursor(text: str) -> Completion:
    before = text[: text.index("¦")]
    return complete(text.replace("¦", ""), before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def labels(text: str) -> list[str]:
    return [item.label for item in at_cursor(text).items]


def inserted(text: str, number: int) -> str:
    """The text with a suggestion in it."""
    completion = at_cursor(text)
    lines = text.replace("¦", "").split("\n")
    line = lines[completion.line - 1]
    insert = completion.items[number].insert
    lines[completion.line - 1] = line[: completion.start - 1] + insert + line[completion.end - 1 :]
    return "\n".join(lines)


KEY_PLACES = {
    "empty": "¦",
    "root": f"{HEAD}¦\n{TASK}",
    "root below a list": f"{HEAD}{TASK}¦",
    "metadata in brackets": HEAD.replace("path: b", "path: b, ¦") + TASK,
    "keychain": f"{HEAD}  ¦\n{TASK}".replace("- {name: bank, kind: env}", "- name: bank\n  kind: env"),
    "executor": f"{HEAD}executor:\n  ¦\n{TASK}",
    "executor spec": f"{HEAD}executor:\n  spec:\n    ¦\n{TASK}",
    "step": f"{HEAD}{TASK}  ¦\n",
    "step between keys": f"{HEAD}{TASK}".replace("  tool:", "  ¦\n  tool:"),
    "step spec": f"{HEAD}{TASK}  spec:\n    ¦\n",
    "step policy": f"{HEAD}{TASK}  spec:\n    policy:\n      ¦\n",
    "admit": f"{HEAD}{TASK}  spec:\n    policy:\n      admit:\n        ¦\n",
    "task": f"{HEAD}{TASK}    ¦\n",
    "new task": f"{HEAD}{TASK}  - ¦\n",
    "labelled task": f"{HEAD}{TASK}  - again:\n      kind: python\n      ¦\n",
    "task of one": f"{HEAD}workflow:\n- step: start\n  tool:\n    kind: shell\n    ¦\n",
    "task in brackets": f"{HEAD}workflow:\n- step: start\n  tool: {{kind: wait, ¦}}\n",
    "brackets over lines": f"{HEAD}workflow:\n- step: start\n  tool: {{\n    kind: wait,\n    ¦\n  }}\n",
    "task spec": f"{HEAD}{TASK}    spec:\n      ¦\n",
    "task policy": f"{HEAD}{TASK}    spec:\n      policy:\n        ¦\n",
    "rule": f"{RULE}        - ¦\n",
    "rule with when": f"{RULE}        - when: '{{{{ true }}}}'\n          ¦\n",
    "then": f"{RULE}        - when: '{{{{ true }}}}'\n          then:\n            ¦\n",
    "then in brackets": f"{RULE}        - else: {{then: {{do: retry, ¦}}}}\n",
    "loop": f"{HEAD}{TASK}  loop:\n    ¦\n",
    "loop spec": f"{HEAD}{TASK}  loop:\n    in: [1]\n    iterator: i\n    spec:\n      ¦\n",
    "router": f"{HEAD}{TASK}  next:\n    ¦\n",
    "router spec": f"{HEAD}{TASK}  next:\n    spec:\n      ¦\n",
    "arc": f"{ARC}    - step: last\n      ¦\n{END}",
    "arc in brackets": f"{ARC}    - {{step: last, ¦}}\n{END}",
}


@pytest.mark.parametrize("site", KEY_PLACES)
def test_no_suggested_key_is_unknown_there(site: str) -> None:
    text = KEY_PLACES[site]
    items = at_cursor(text).items
    assert items
    assert {item.kind for item in items} == {"key"}
    for number, item in enumerate(items):
        written = inserted(text, number)
        assert f"{item.label}:" in written
        codes = {problem.code for problem in validate(f"{written}\n")}
        assert not codes & {"unknown-key", "yaml-syntax", "duplicate-key"}, item.label


def test_keys_are_those_of_the_place() -> None:
    assert labels(KEY_PLACES["empty"])[:4] == ["apiVersion", "kind", "metadata", "workflow"]
    assert labels(KEY_PLACES["root"]) == ["executor", "workbook"]
    assert labels(KEY_PLACES["loop"])[:2] == ["in", "iterator"]
    assert "final_step" in labels(KEY_PLACES["executor spec"])
    assert "join" in labels(KEY_PLACES["step policy"])
    assert "max_in_flight" in labels(KEY_PLACES["loop spec"])
    assert labels(KEY_PLACES["router"]) == ["arcs", "spec"]
    assert set(labels(KEY_PLACES["rule with when"])) == {"then", "desc"}
    task = labels(KEY_PLACES["task"])
    assert "method" in task
    assert "code" not in task
    assert not {"kind", "name", "url"} & set(task), "they are there already"
    assert "code" in labels(KEY_PLACES["labelled task"])
    assert labels(KEY_PLACES["new task"])[0] == "kind"
    assert "url" not in labels(KEY_PLACES["new task"])


def test_a_key_says_what_it_is_for_and_whether_it_must_be() -> None:
    first = at_cursor(KEY_PLACES["loop"]).items[0]
    assert (first.label, first.insert, first.detail) == ("in", "in: ", "required")
    assert "collection" in first.doc


def test_what_is_written_is_replaced_and_comes_first() -> None:
    completion = at_cursor(f"{HEAD}{TASK}    me¦th\n")
    assert (completion.line, completion.start, completion.end) == (13, 5, 9)
    assert completion.items[0].insert == "method: "
    renamed = f"{HEAD}{TASK}    me¦: GET\n"
    assert at_cursor(renamed).items[0].insert == "method"
    assert inserted(renamed, 0).endswith("    method: GET\n")
    assert labels(f"{HEAD}{TASK}  - ki¦")[0] == "kind"


def test_kinds_and_the_values_of_a_key() -> None:
    kinds = at_cursor(f"{HEAD}{TASK}  - kind: ¦")
    assert [item.label for item in kinds.items] == KINDS.names
    assert {item.kind for item in kinds.items} == {"kind"}
    assert all(item.doc for item in kinds.items)
    assert set(labels(f"{HEAD}executor: {{kind: l¦}}\n{TASK}")) == {"local", "distributed", "hybrid"}
    assert labels(f"{HEAD}executor: {{kind: l¦}}\n{TASK}")[0] == "local"
    assert "retry" in labels(f"{RULE}        - else: {{then: {{do: ¦")
    assert at_cursor(f"{HEAD}{TASK}    method:¦\n").items[0].insert.startswith(" ")
    assert "POST" in labels(f"{HEAD}{TASK}    method: 'P¦'\n")
    assert {"true", "false"} <= set(labels(f"{HEAD}{TASK}    spec: {{follow_redirects: ¦}}\n"))
    assert labels(f"{HEAD}{TASK}    auth: ¦\n")[0] == "bank"


def test_steps_and_tasks_by_name_also_those_below() -> None:
    steps = at_cursor(f"{ARC}    - step: ¦\n{END}")
    assert [(item.label, item.kind) for item in steps.items] == [("start", "step"), ("last", "step")]
    assert labels(f"{HEAD}executor: {{spec: {{final_step: ¦}}}}\n{TASK}{END}") == ["start", "last"]
    jump = f"{RULE}        - else: {{then: {{do: jump, to: ¦}}}}\n  - parse: {{kind: noop}}\n"
    assert labels(jump) == ["fetch", "parse", "previous"]


def test_namespaces_are_those_that_exist_there() -> None:
    guard = labels(f"{ARC}    - step: last\n      when: '{{{{ ¦ }}}}'\n{END}")
    assert "event" in guard
    assert "outcome" not in guard
    rule = labels(f"{RULE}        - when: '{{{{ ¦")
    assert {"outcome", "fetch"} <= set(rule)
    assert "event" not in rule
    assert "keychain" in labels(f"{HEAD}{TASK}    headers: {{a: '{{{{ ¦ }}}}'}}\n")
    default = HEAD.replace("n: 1", "n: '{{ ¦ }}'")
    assert labels(default + TASK)[:2] == ["execution_id", "workload"]


NAMES = {
    "workload.": ["n", "deep"],
    "workload.deep.": ["x"],
    "ctx.": ["total", "page"],
    "ctx.page.": ["next"],
    "steps.": ["start", "last"],
    "steps.last.": ["status", "result", "error"],
    "args.": ["own", "brought"],
    "keychain.": ["bank"],
    "run.": ["seen"],
    "nothing.": [],
    "now().": [],
}


@pytest.mark.parametrize("owner", NAMES)
def test_names_of_a_namespace(owner: str) -> None:
    text = f"""{HEAD}workflow:
- step: start
  set: {{ctx.total: 1}}
  next: {{arcs: [{{step: last, args: {{brought: 1}}, set: {{ctx.page.next: 2}}}}]}}
- step: last
  args: {{own: 1}}
  loop: {{in: [1], iterator: row}}
  tool:
  - kind: http
    url: "https://example.org/{{{{ {owner}¦ }}}}"
    set: {{run.seen: 1}}
"""
    assert labels(text) == NAMES[owner]
    iterations = labels(text.replace(f"{owner}¦", "iter.¦"))
    assert iterations == ["row", "count", "first", "index", "last", "parent"]
    assert labels(text.replace(f"{owner}¦", "¦"))[0] == "row"


def test_event_outcome_and_filters() -> None:
    assert "result" in labels(f"{ARC}    - step: last\n      when: '{{{{ event.¦ }}}}'\n")
    assert "kind" in labels(f"{RULE}        - when: '{{{{ outcome.error.k¦ }}}}'\n")
    filters = at_cursor(f"{HEAD}{TASK}    body: |\n      a\n      {{{{ workload.n | to¦ }}}}\n")
    assert filters.items[0].label.startswith("to")
    assert {item.kind for item in filters.items} == {"function"}
    assert (filters.start, filters.end) == (23, 25)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{TASK}    # a ¦",
        f"{HEAD}{TASK}    body: |\n      ¦\n",
        f"{HEAD}{TASK}    url: {{{{ 'work¦",
        f"{HEAD}{TASK}      ¦",
        f"{HEAD}{TASK}    url: 'x'  # the ¦",
        f"{HEAD}workload:\n  a: 1\n  ¦\n",
    ],
)
def test_nothing_is_suggested_where_nothing_is_known(text: str) -> None:
    assert labels(text) == []


def test_text_that_is_broken_elsewhere_does_not_matter() -> None:
    broken = f"a: [\nb: }}\n\tc\n'\n{HEAD}{TASK}    me¦\n  - {{kind: \n- step: [\n"
    assert labels(broken)[0] == "method"
    assert labels(f"{HEAD}{TASK}  next: {{arcs: [{{step: ¦\n{END}") == ["start", "last"]


def test_every_place_of_a_text_has_an_answer() -> None:
    text = (
        f'{RULE}        - else: {{then: {{do: jump, to: "x"}}}}\n    body: >\n      {{{{ a.b | c }}}}\n{END}'
    )
    for cut in (
        text,
        text.replace("}", ""),
        text.replace("  ", " "),
        text.replace("'", '"').replace(":", ""),
    ):
        for number, line in enumerate([*cut.split("\n"), ""], start=1):
            for column in range(1, len(line) + 3):
                completion = complete(cut, number, column)
                assert 1 <= completion.start <= completion.end <= max(len(line), 0) + 1
    beyond = complete(text, 1_000, 1_000)
    assert (beyond.line, beyond.start, beyond.end) == (1_000, 1, 1)


@pytest.mark.parametrize("piece", ["[", "{a: ", "- ", "a:\n", "'{{ ", "  - a: [x,\n"])
def test_a_long_text_takes_no_more_time_than_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = f"{HEAD}workload: {piece * (length // len(piece))}"
        begun = time.process_time()
        complete(text, text.count("\n") + 1, 1_000_000)
        return time.process_time() - begun

    assert seconds(200_000) < 20 * seconds(20_000) + 1
