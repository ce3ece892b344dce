"""Keys and values that nothing which the engine provides ever has."""

from pathlib import Path
from textwrap import dedent

import pytest

from noetl.dsl.checks.known_shapes import EVENT_SHAPE, STEP_SHAPE, outcome_shape
from noetl.loader import examine, installed_kinds
from tests.checks.check_fragments import assert_clean, assert_found, document_text
from tests.kernel.driver import Driver
from tests.playbooks import playbook_of

POLICY = """
- step: start
  tool:
    - name: get
      kind: http
      url: http://127.0.0.1
      set: {{ ctx.a: {write} }}
      spec:
        policy:
          rules:
            - when: {when}
              then: {{ do: retry }}
            - else: {{ then: {{ do: fail }} }}
"""
ARC = """
- step: start
  tool: {{ kind: http, url: http://127.0.0.1 }}
  next:
    spec: {{ mode: inclusive }}
    arcs:
      - step: end
        when: {when}
        args: {{ a: {args} }}
- step: end
  tool: {{ kind: noop }}
"""


def policy(when: str, write: str = "1") -> str:
    return POLICY.format(when=f'"{{{{ {when} }}}}"', write=write)


def arc(when: str, args: str = "1") -> str:
    return ARC.format(when=f'"{{{{ {when} }}}}"', args=args)


@pytest.mark.parametrize(
    ("when", "message", "hint"),
    [
        ("§outcome.http.staus == 503", "`outcome.http` has no `staus`", "`status`"),
        ("§outcome.eror.retryable", "`outcome` has no `eror`", "`error`"),
        ("§output.staus == 'ok'", "`output` has no `staus`", "`status`"),
        ("§outcome.error.retriable", "`outcome.error` has no `retriable`", "`retryable`"),
        ("§outcome['htpp'].status == 503", "`outcome` has no `htpp`", "`http`"),
        ("§outcome.http.staus | default(0) > 1", "`outcome.http` has no `staus`", "`status`"),
        ("§outcome.pg.sqlstat == '23505'", "`outcome.pg` has no `sqlstat`", "`sqlstate`"),
    ],
)
def test_a_key_that_looks_like_one_of_the_outcome(when: str, message: str, hint: str) -> None:
    (problem,) = assert_found("unknown-field", policy(when))
    assert (problem.message, problem.hint) == (message, f"did you mean {hint}?")


def test_the_writes_of_a_task_are_looked_at_too() -> None:
    assert_found("unknown-field", policy("outcome.status == 'error'", '"{{ §outcome.resutl.id }}"'))


@pytest.mark.parametrize(
    "when",
    [
        "outcome.http.headers.etag == 'x'",
        "outcome.result.staus == 1",
        "outcome.error.kind == 'timeout' and outcome.error.anything",
        "outcome.mine.own == 1",
        "outcome.meta.anything",
        "outcome.get('staus') == 1",
        "output.data.x == 1",
        "outcome.error.cause.message == 'x'",
        "'ok' == outcome.status",
        "outcome.status in ['ok', 'error']",
    ],
)
def test_what_tools_may_add_is_left_alone(when: str) -> None:
    assert_clean(policy(when))


@pytest.mark.parametrize(
    ("when", "message", "hint"),
    [
        ("§event.stauts == 'error'", "`event` has no `stauts`", "did you mean `status`?"),
        ("§event.loop.succeded > 1", "`event.loop` has no `succeded`", "did you mean `succeeded`?"),
        ("§steps.start.resutl.n == 1", "`steps.start` has no `resutl`", "did you mean `result`?"),
        ("§steps.start.n == 1", "`steps.start` has no `n`", "it has `status`, `result`, `error`"),
    ],
)
def test_events_and_steps_have_their_keys_and_no_others(when: str, message: str, hint: str) -> None:
    (problem,) = assert_found("unknown-field", arc(when))
    assert (problem.message, problem.hint) == (message, hint)


def test_a_key_of_the_event_that_looks_like_none_is_told_which_there_are() -> None:
    (problem,) = assert_found("unknown-field", arc("§event.zzz == 1"))
    assert problem.hint.startswith("it has `event_id`, ")


def test_an_arc_hands_on_what_the_event_has() -> None:
    assert_found("unknown-field", arc("event.error", '"{{ §event.reslut }}"'))
    assert_clean(arc("event.error", '"{{ event.result.anything }}"'))


@pytest.mark.parametrize(
    ("when", "message", "hint"),
    [
        ("outcome.status == §'eror'", "`outcome.status` is never `eror`", "did you mean `error`?"),
        ("outcome.status != §'success'", "`outcome.status` is never `success`", "it is `error` or `ok`"),
        ("§'errr' == output.status", "`output.status` is never `errr`", "did you mean `error`?"),
        (
            "outcome.error.kind == §'timout'",
            "`outcome.error.kind` is never `timout`",
            "did you mean `timeout`?",
        ),
        (
            "outcome.error.kind in ['sql', §'conection']",
            "`outcome.error.kind` is never `conection`",
            "did you mean `connection`?",
        ),
        ("_task == §'gte' and outcome.error", "`_task` is never `gte`", "did you mean `get`?"),
        ("steps.start.status == §'done'", "`steps.start.status` is never `done`", "it is "),
    ],
)
def test_a_text_that_never_comes(when: str, message: str, hint: str) -> None:
    (problem,) = assert_found("impossible-value", policy(when))
    assert problem.message == message
    assert problem.hint.startswith(hint)


def test_an_arc_that_depends_on_more_than_a_misspelt_event_is_warned_about() -> None:
    assert_found("impossible-value", arc("event.name == §'step.dnoe' or ctx.signals.go"))
    assert_found("impossible-value", arc("event.status != §'sucess'"))


def test_a_dead_arc_is_reported_once_and_says_what_was_meant() -> None:
    fragment = arc("event.name == 'step.dnoe'").replace('when: "', 'when: §"')
    (problem,) = assert_found("dead-arc", fragment)
    assert problem.hint == "`event.name` is never `step.dnoe`: did you mean `step.done`?"


def test_a_name_that_the_template_sets_is_its_own() -> None:
    assert_clean(arc("true", "\"{% set event = {'name': 'x'} %}{{ event.name == 'x' }}\""))


WORKLOAD = """
workload: {{ api: http://127.0.0.1, db: {{ host: a, port: 1 }}, text: a }}
workflow:
  - step: start
    tool: {{ kind: http, url: "{{{{ {path} }}}}" }}
"""


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("§workload.apii", "did you mean `api`?"),
        ("§workload.db.hsot", "did you mean `host`?"),
        ("§workload['pai']", "did you mean `api`?"),
    ],
)
def test_a_key_that_looks_like_a_declared_one(path: str, hint: str) -> None:
    (problem,) = assert_found("unknown-field", WORKLOAD.format(path=path))
    assert problem.hint == hint


@pytest.mark.parametrize(
    "path",
    [
        "workload.region",
        "workload.db.zone",
        "workload.apii | default('x')",
        "workload.text.tex",
        "workload.api",
    ],
)
def test_a_request_may_bring_other_keys(path: str) -> None:
    assert_clean(WORKLOAD.format(path=path))


def test_the_keys_are_those_that_the_engine_gives() -> None:
    """What the kernel puts into `event` and `steps` is what is known here."""
    steps = dedent("""
        - step: start
          loop: {in: [1], iterator: n}
          tool: {kind: noop}
          next: {arcs: [{step: end, args: {event: "{{ event }}", steps: "{{ steps }}"}}]}
        - step: end
          tool: {kind: noop, args: {all: "{{ args }}"}}
        """)
    driver = Driver(playbook_of(steps.lstrip()))
    driver.start()
    driver.run()
    seen = driver.state.result["all"]
    assert set(seen["event"]) == set(EVENT_SHAPE)
    assert EVENT_SHAPE["loop"] is not None
    assert set(seen["event"]["loop"]) == set(EVENT_SHAPE["loop"])
    assert set(seen["steps"]["start"]) == set(STEP_SHAPE)


def test_helpers_are_known_by_their_keys() -> None:
    shape = outcome_shape(installed_kinds())
    assert {"status", "headers"} <= set(shape["http"] or ())
    assert {"sqlstate", "code", "message", "constraint", "detail"} <= set(shape["pg"] or ())
    assert {"exception_type", "message", "traceback"} <= set(shape["py"] or ())


@pytest.mark.parametrize(
    ("read", "hint"),
    [
        ("iter.indx", "did you mean `iter.index`?"),
        ("execution", "did you mean `execution_id`?"),
        ("worklaod.api", "did you mean `workload`?"),
    ],
)
def test_a_misspelt_name_of_the_engine_is_named(read: str, hint: str) -> None:
    text = document_text(f'- step: start\n  tool: {{ kind: noop, args: {{ a: "{{{{ {read} }}}}" }} }}\n')
    assert [problem.hint for problem in examine(text, "t.yaml").problems] == [hint]


def test_no_playbook_of_ours_is_suspected() -> None:
    root = Path(__file__).parents[2]
    files = [*root.glob("examples/**/*.yaml"), *root.glob("tests/**/*.yaml")]
    assert len(files) >= 50
    suspected = [
        problem
        for file in files
        for problem in examine(file.read_text(), str(file)).problems
        if problem.code in ("unknown-field", "impossible-value")
    ]
    assert suspected == []


def test_what_a_task_hands_to_the_playbook_in_it_is_there() -> None:
    inner = (
        "{ apiVersion: noetl.io/v2, kind: Playbook, metadata: { name: i, path: i }, workload: { api: a }, "
        'workflow: [{ step: start, tool: { kind: noop, args: { a: "{{ workload.apis }}" } } }] }'
    )
    assert_clean(f"- step: start\n  tool: {{ kind: playbook, args: {{ apis: [] }}, document: {inner} }}\n")
