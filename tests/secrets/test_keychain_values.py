"""What expressions and tools make of secrets, and what is masked of it."""

import json

import pytest

from noetl.events.bodies import TaskProcessed, TaskStarted
from tests.local.local_engine import Bench
from tests.secrets.keychain_runs import TOKEN, error_of, run, start
from tests.web_server import WebServer


def test_filters_work_on_the_values_and_what_they_make_is_masked(bench: Bench) -> None:
    text = start(
        "    - hash: {kind: python, args: {t: '{{ keychain.token.value | upper }}', n: '{{ keychain.token.value | length }}'}, code: 'result = [t, n]'}\n"
    )
    state = run(bench, text)
    (begun,) = [
        event.body for event in bench.events(state.execution_id) if isinstance(event.body, TaskStarted)
    ]
    assert begun.input["args"]["t"]["$noetl"] == "secret"
    assert state.result[0]["$noetl"] == "secret"
    assert state.result[1] == len(TOKEN)


def test_filters_work_on_what_stands_for_a_secret_in_a_result_and_what_they_make_is_masked(
    bench: Bench,
) -> None:
    made = {
        "upper": "{{ looked.value | upper }}",
        "text": "<{{ looked.value }}>",
        "basic": "{{ looked.value | b64encode }}",
        "length": "{{ looked.value | length }}",
        "count": "{{ _attempt }}",
    }
    looked = "    - looked: {kind: secrets, name: token}\n"
    state = run(
        bench, start(f"{looked}    - use: {{kind: python, args: {json.dumps(made)}, code: result = args}}\n")
    )
    begun = [
        event.body.input["args"]
        for event in bench.events(state.execution_id)
        if isinstance(event.body, TaskStarted) and event.body.task == "use"
    ]
    for values in (*begun, state.result):
        assert values["upper"]["$noetl"] == "secret"
        assert values["text"]["parts"] == ["<", 0, ">"]
        assert values["basic"]["secrets"][0]["form"] == "base64", "it can be made again after a crash"
        assert (values["length"], values["count"]) == (len(TOKEN), 1)
    assert len(begun) == 1


def test_what_holds_a_secret_can_be_handed_on_and_used_in_later_steps(bench: Bench) -> None:
    text = (
        start(
            "    - say: {kind: python, args: {t: '{{ keychain.token.value }}'}, code: \"result = {'text': f'<{t}>', 'all': [t]}\"}\n"
        )
        + "  next: {arcs: [{step: then, args: {got: '{{ event.result }}'}, set: {ctx.text: '{{ event.result.text }}'}}]}\n"
        + "- step: then\n  loop: {in: '{{ args.got.all }}', iterator: one}\n  tool:\n"
        + "    - use: {kind: python, args: {a: '{{ iter.one }}', b: '{{ ctx.text ~ \"!\" }}'}, code: 'result = [len(a), len(b)]'}\n"
    )
    assert run(bench, text).result == [[len(TOKEN), len(TOKEN) + 3]]


def test_a_large_value_with_secrets_in_it_is_whole_for_tools_that_take_references(bench: Bench) -> None:
    much = (
        "    - much: {kind: python, args: {t: '{{ keychain.token.value }}'}, code: 'result = [t] * 5000'}\n"
    )
    use = "    - use: {kind: python, args: {all: '{{ much }}'}, code: 'result = sum(map(len, all))'}\n"
    state = run(bench, start(much + use))
    assert state.result == 5000 * len(TOKEN)
    assert any(bench.home.results.rglob("*"))


def test_outside_of_inputs_a_secret_can_only_be_handed_on(bench: Bench) -> None:
    say = start("    - say: {kind: python, args: {t: '{{ keychain.token.value }}'}, code: 'result = t'}\n")
    joined = run(
        bench,
        say
        + "  next: {arcs: [{step: then, args: {x: 'a {{ event.result }}'}}]}\n- step: then\n  tool: {kind: noop}\n",
    )
    error = error_of(joined)
    assert error.kind == "credential"
    assert "only the inputs and args of tasks can read" in error.message
    guarded = run(
        bench,
        say
        + "  next: {arcs: [{step: then, when: '{{ event.result is defined and event.result != none }}'}]}\n- step: then\n  tool: {kind: noop}\n",
    )
    assert guarded.status == "completed"


def test_parts_inside_of_masked_parts_are_masked_with_them(bench: Bench) -> None:
    login = "    - login: {kind: python, spec: {secret: [all.token, all, '$.list[*]']}, code: \"result = {'all': {'token': 'x' * 20}, 'list': ['abc', 'defghi']}\"}\n"
    state = run(bench, start(login + "    - keep: {kind: noop, args: {all: '{{ login }}'}}\n", ""))
    result = state.result["all"]
    assert [result["all"]["$noetl"], *(marker["$noetl"] for marker in result["list"])] == ["secret"] * 3
    markers = run(
        bench,
        start(login + "    - show: {kind: python, args: {l: '{{ login.list }}'}, code: 'result = l'}\n", ""),
    ).result
    assert [marker["$noetl"] for marker in markers] == ["secret", "secret"]
    use = "    - use: {kind: python, args: {t: '{{ login.all.token }}', l: '{{ login.list }}'}, code: 'result = [len(t), len(l[0])]'}\n"
    assert run(bench, start(login + use, "")).result == [20, 3]


def test_a_path_of_spec_secret_that_is_none_fails_the_task(bench: Bench) -> None:
    error = error_of(
        run(bench, start("    - t: {kind: python, spec: {secret: ['$[']}, code: 'result = 1'}\n", ""))
    )
    assert error.kind == "input"
    assert "`spec.secret`" in error.message


def test_a_short_secret_is_warned_of_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "abc")
    text = start(
        "    - one: {kind: noop, args: {a: '{{ keychain.token.value }}', b: 'x abc'}}\n    - two: {kind: noop}\n"
    )
    state = run(bench, text)
    assert state.result["a"]["$noetl"] == "secret"
    assert state.result["b"] == "x abc"
    done = [event.body for event in bench.events(state.execution_id) if isinstance(event.body, TaskProcessed)]
    assert ["warnings" in body.outcome.meta for body in done] == [True, False]
    assert "`value` of the credential `token` is so short" in done[0].outcome.meta["warnings"][0]


def test_headers_that_sign_in_are_never_recorded(bench: Bench, web: WebServer) -> None:
    text = start(
        f"    - go: {{kind: http, url: '{web.url}/', headers: {{Authorization: Bearer abc, cookie: a=b, X-Other: c}}}}\n",
        "",
    )
    state = run(bench, text)
    assert web.requests[-1].headers["authorization"] == "Bearer abc"
    (begun,) = [
        event.body for event in bench.events(state.execution_id) if isinstance(event.body, TaskStarted)
    ]
    headers = begun.input["headers"]
    assert [headers[name]["$noetl"] for name in ("Authorization", "cookie")] == ["secret", "secret"]
    assert headers["X-Other"] == "c"


def test_a_stored_object_is_masked_if_it_is_text_and_not_read_again(bench: Bench) -> None:
    long = "    - long: {kind: shell, command: 'for i in $(seq 50000); do echo \"$T $i\"; done', env: {T: '{{ keychain.token.value }}'}}\n"
    state = run(bench, start(long))
    assert state.status == "completed"
    stored = [path.read_bytes() for path in bench.home.results.rglob("*") if path.is_file()]
    assert stored
    assert not any(TOKEN.encode() in data for data in stored)
    assert any(b"*** 49999" in data for data in stored)
