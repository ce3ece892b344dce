"""Executions with secrets: when they are looked up, what happens when they cannot be, and what a later process knows."""

import asyncio
import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.events.bodies import TaskProcessed, TaskStarted
from noetl.kernel import ExecutionState
from noetl.local import Local
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import Origin
from noetl.ports.credentials import StoredCredential
from noetl.server.logs import TaskLog
from noetl.stores.credentials import EncryptedCredentials, KeyPlace
from noetl.stores.results import FileResults
from noetl.stores.sqlite import SqliteStore
from noetl.worker.memory import Memory
from tests.credentials.servers import Tokens, listening
from tests.local.engine import Bench, source
from tests.web import Answer, Asked, Web, serving

TOKEN = "token/with spaces"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("TOKEN", TOKEN)
    return Bench(tmp_path)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    def answer(asked: Asked) -> Answer:
        return Answer({"path": asked.path}, 401 if asked.path == "/closed" else 200)

    with serving(answer) as web:
        yield web


def keep(bench: Bench, *credentials: StoredCredential) -> None:
    async def whole() -> None:
        store = SqliteStore.at(bench.home.store)
        for one in credentials:
            await EncryptedCredentials(store, KeyPlace("", bench.home.key)).set(one)
        await store.close()

    asyncio.run(whole())


def run(bench: Bench, text: str, *, resume: str = "", **request: Any) -> ExecutionState:
    async def whole() -> ExecutionState:
        store = SqliteStore.at(bench.home.store)
        try:
            async with Local(
                store,
                credentials=EncryptedCredentials(store, KeyPlace("", bench.home.key)),
                results=FileResults(bench.home.results),
                logs=TaskLog(bench.home.logs),
                catalogs=[bench.home.folder.parent],
            ) as local:
                started = await (local.resume(resume) if resume else local.start(source(text), **request))
                return await local.finished(started)
        finally:
            await store.close()

    return asyncio.run(whole())


def error_of(state: ExecutionState) -> ErrorInfo:
    assert state.status == "failed"
    assert state.error is not None
    return state.error


KEYCHAIN = "keychain:\n  - {name: token, kind: env, env: TOKEN}\n"


def start(tasks: str, keychain: str = KEYCHAIN) -> str:
    return f"{keychain}workflow:\n- step: start\n  tool:\n{tasks}"


LENGTH = "    - count: {kind: python, args: {t: '{{ %s }}'}, code: 'result = len(t)'}\n"


@pytest.mark.parametrize(
    ("keychain", "message"),
    [
        (
            "{name: gone, kind: env, env: ABSENT_VARIABLE}",
            "the credential `gone` cannot be had: the environment variable ABSENT_VARIABLE is not set",
        ),
        (
            "{name: kept, kind: postgres_credential}",
            "the credential `kept` cannot be had: the credential store has no `kept`",
        ),
        (
            "{name: cloud, kind: secret_manager, provider: moon}",
            "the credential `cloud` cannot be had: there is no client for the secret manager of `moon`",
        ),
        (
            "{name: api, kind: oauth2, token_url: 'http://127.0.0.1:9', client_id: c, client_secret: s}",
            "the credential `api` cannot be had: no token",
        ),
    ],
)
def test_an_entry_that_cannot_be_had_fails_the_execution_before_its_first_step(
    bench: Bench, keychain: str, message: str
) -> None:
    state = run(bench, start("    - t: {kind: noop}\n", f"keychain: [{keychain}]\n"))
    error = error_of(state)
    assert error.kind == "credential"
    assert message in error.message
    assert bench.names(state.execution_id) == [
        "PlaybookExecutionRequested",
        "PlaybookRequestEvaluated",
        "PlaybookProcessed",
    ]


@pytest.mark.parametrize(
    "task",
    [
        "{kind: http, url: 'http://127.0.0.1:9', auth: nobody}",
        "{kind: secrets, name: nobody}",
        "{kind: secrets, names: [nobody], provider: store}",
    ],
)
def test_so_does_a_name_that_nothing_knows(bench: Bench, task: str) -> None:
    error = error_of(run(bench, start(f"    - t: {task}\n", "")))
    assert (error.kind, error.details["credentials"]) == ("credential", ["nobody"])


def test_names_that_are_found_at_run_time_fail_their_task(bench: Bench) -> None:
    text = start(
        "    - t: {kind: http, url: 'http://127.0.0.1:9', auth: '{{ workload.who }}'}\n",
        "workload: {who: nobody}\n",
    )
    error = error_of(run(bench, text))
    assert error.kind == "credential"
    assert "the credential `nobody` cannot be had" in error.message
    error = error_of(
        run(
            bench,
            start(
                "    - t: {kind: secrets, name: x, provider: '{{ workload.who }}'}\n",
                "workload: {who: moon}\n",
            ),
        )
    )
    assert "there is no provider `moon`" in error.message


def test_the_credential_store_answers_for_names_and_for_entries_without_fields(
    bench: Bench, web: Web
) -> None:
    keep(
        bench,
        StoredCredential("door", "bearer", {"token": "kept-token"}),
        StoredCredential("pg", "postgres_credential", {"db_host": "h", "db_password": "kept-password"}),
    )
    text = start(
        f"    - go: {{kind: http, url: '{web.url}/', auth: door}}\n"
        "    - show: {kind: noop, args: {host: '{{ keychain.pg.host }}', password: '{{ keychain.pg.password }}', kind: '{{ keychain.pg.kind }}'}}\n",
        "keychain: [{name: pg, kind: postgres_credential}]\n",
    )
    state = run(bench, text)
    assert web.asked[-1].headers["authorization"] == "Bearer kept-token"
    assert state.result["host"] == "h"
    assert state.result["kind"] == "postgres_credential"
    assert state.result["password"] == {
        "$noetl": "secret",
        "name": "pg",
        "path": ["password"],
        "playbook": state.plan.playbook.hash,
    }


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
    for found in (*begun, state.result):
        assert found["upper"]["$noetl"] == "secret"
        assert found["text"]["parts"] == ["<", 0, ">"]
        assert found["basic"]["secrets"][0]["form"] == "base64", "it can be made again after a crash"
        assert (found["length"], found["count"]) == (len(TOKEN), 1)
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


def interrupted(bench: Bench, tasks: str) -> str:
    """An execution that a process left behind before its last task, which waits for a signal."""

    async def whole() -> str:
        store = SqliteStore.at(bench.home.store)
        waiting = asyncio.Event()

        def watch(_: str, events: Any, state: ExecutionState) -> None:
            if any(run.phase == "suspended" for run in state.runs.values()):
                waiting.set()

        async with Local(store, watch=watch) as local:
            started = await local.start(source(start(tasks)))
            await waiting.wait()
        await store.close()
        return started

    return asyncio.run(whole())


WAIT = "    - wait: {kind: wait, seconds: 0.2}\n"


def test_a_later_process_looks_secrets_up_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    say = "    - say: {kind: python, args: {t: '{{ keychain.token.value }}'}, code: \"result = f'<{t}>'\"}\n"
    left = interrupted(bench, say + WAIT + LENGTH % "say")
    monkeypatch.setenv("TOKEN", "another one")
    assert run(bench, "", resume=left).result == len("<another one>")


def test_what_it_cannot_look_up_fails_with_the_reason(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    left = interrupted(bench, WAIT + LENGTH % "keychain.token.value")
    monkeypatch.delenv("TOKEN")
    error = error_of(run(bench, "", resume=left))
    assert error.kind == "credential"
    assert "the credential `token` cannot be had: the environment variable TOKEN is not set" in error.message


def test_what_only_the_last_process_knew_fails_and_never_goes_on_masked(bench: Bench) -> None:
    login = "    - login: {kind: python, spec: {secret: ['$.token']}, code: \"result = {'token': 'x' * 20, 'user': 'ada'}\"}\n"
    assert run(bench, start(login + LENGTH % "login.token", "")).result == 20
    left = interrupted(bench, login + WAIT + LENGTH % "login.user")
    assert run(bench, "", resume=left).result == 3
    left = interrupted(bench, login + WAIT + LENGTH % "login.token")
    error = error_of(run(bench, "", resume=left))
    assert error.kind == "credential"
    assert "`login` was masked, and is known only to the process that masked it" in error.message


def test_parts_inside_of_masked_parts_are_masked_with_them(bench: Bench) -> None:
    login = "    - login: {kind: python, spec: {secret: [all.token, all, '$.list[*]']}, code: \"result = {'all': {'token': 'x' * 20}, 'list': ['abc', 'defghi']}\"}\n"
    state = run(bench, start(login + "    - keep: {kind: noop, args: {all: '{{ login }}'}}\n", ""))
    kept = state.result["all"]
    assert [kept["all"]["$noetl"], *(one["$noetl"] for one in kept["list"])] == ["secret"] * 3
    shown = run(
        bench,
        start(login + "    - show: {kind: python, args: {l: '{{ login.list }}'}, code: 'result = l'}\n", ""),
    ).result
    assert [one["$noetl"] for one in shown] == ["secret", "secret"]
    use = "    - use: {kind: python, args: {t: '{{ login.all.token }}', l: '{{ login.list }}'}, code: 'result = [len(t), len(l[0])]'}\n"
    assert run(bench, start(login + use, "")).result == [20, 3]


def test_memory_has_an_end() -> None:
    memory = Memory(room=100)
    first = memory.keep("x" * 48, Origin("a", execution="e"))
    second = memory.keep({"deep": ["y" * 30]}, Origin("b", execution="e"))
    assert memory[first.key] == "x" * 48
    third = memory.keep("z" * 48, Origin("c", execution="e"))
    assert [one.key in memory for one in (first, second, third)] == [False, True, True]
    assert memory[msgspec.structs.replace(second, path=("deep", 0)).key] == "y" * 30
    assert set(memory) == {second.key, third.key}


def test_a_path_of_spec_secret_that_is_none_fails_the_task(bench: Bench) -> None:
    error = error_of(
        run(bench, start("    - t: {kind: python, spec: {secret: ['$[']}, code: 'result = 1'}\n", ""))
    )
    assert error.kind == "input"
    assert "`spec.secret`" in error.message


def test_children_get_the_secrets_of_their_parents_and_use_their_own(bench: Bench) -> None:
    child = bench.home.folder.parent / "child.yaml"
    child.write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: c, path: c}\n"
        "keychain: [{name: token, kind: static, value: the child has another}]\n"
        "workflow:\n- step: start\n  tool:\n"
        "    - use: {kind: python, args: {a: '{{ workload.a }}', b: '{{ keychain.token.value }}'}, code: 'result = {\"n\": [len(a), len(b)], \"b\": b}'}\n"
    )
    text = start(
        "    - child: {kind: playbook, path: c, args: {a: '{{ keychain.token.value }}'}}\n"
        + LENGTH % "child.b"
        + "    - n: {kind: noop, args: {n: '{{ [count, child.n] }}'}}\n"
    )
    n = len("the child has another")
    assert run(bench, text).result == {"n": [n, [len(TOKEN), n]]}


def test_a_child_that_nobody_waits_for_begins_though_its_parent_ends_at_once(bench: Bench) -> None:
    (bench.home.folder.parent / "child.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: c, path: c}\n"
        "keychain: [{name: token, kind: static, value: the child has another}]\n"
        "workflow: [{step: start, tool: {kind: python, args: {t: '{{ keychain.token.value }}'}, code: 'result = len(t)'}}]\n"
    )
    state = run(bench, start("    - child: {kind: playbook, path: c, spec: {wait: false}}\n"))
    assert state.status == "completed"
    child = state.result["execution_id"]
    assert bench.names(child)[0] == "PlaybookExecutionRequested"
    assert bench.names(child)[-1] == "PlaybookProcessed"


def test_a_child_whose_credential_cannot_be_had_fails_before_its_first_step(bench: Bench) -> None:
    (bench.home.folder.parent / "child.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: c, path: c}\n"
        "keychain: [{name: gone, kind: env, env: ABSENT_VARIABLE}]\nworkflow:\n- step: start\n  tool: {kind: noop}\n"
    )
    error = error_of(run(bench, start("    - child: {kind: playbook, path: c}\n")))
    assert error.kind == "child_failed"
    assert "the credential `gone` cannot be had" in error.message


def test_a_token_is_had_once_and_again_after_it_was_refused(bench: Bench, web: Web) -> None:
    tokens = Tokens(expires_in=3600)

    async def whole() -> ExecutionState:
        store = SqliteStore.at(bench.home.store)
        async with listening(tokens.application()) as url, Local(store) as local:
            keychain = f"keychain: [{{name: api, kind: oauth2, token_url: '{url}/token', client_id: ada, client_secret: s3cr3t}}]\n"
            text = (
                f"{keychain}workflow:\n- step: start\n  loop: {{in: '{{{{ range(20) | list }}}}', iterator: n, spec: {{mode: parallel, max_in_flight: 20}}}}\n"
                f"  tool: [{{go: {{kind: http, url: '{web.url}/open', auth: api}}}}]\n"
                "  next: {arcs: [{step: closed}]}\n"
                f"- step: closed\n  tool: [{{go: {{kind: http, url: '{web.url}/closed', auth: api, spec: {{policy: {{rules: [{{when: '{{{{ outcome.http.status == 401 }}}}', then: {{do: retry, attempts: 2}}}}]}}}}}}}}]\n"
            )
            state = await local.finished(await local.start(source(text)))
        await store.close()
        return state

    before = len(web.asked)
    error = error_of(asyncio.run(whole()))
    assert error.kind == "http_status"
    sent = [one.headers["authorization"] for one in web.asked[before:]]
    assert sent == ["Bearer token-number-1"] * 21 + ["Bearer token-number-2"]
    assert len(tokens.asked) == 2


def test_an_inline_credential_is_exchanged_and_masked(bench: Bench, web: Web) -> None:
    tokens = Tokens()

    async def whole() -> ExecutionState:
        store = SqliteStore.at(bench.home.store)
        async with listening(tokens.application()) as url, Local(store) as local:
            auth = f"{{type: oauth2, token_url: '{url}/token', client_id: ada, client_secret: '{{{{ keychain.token.value }}}}'}}"
            state = await local.finished(
                await local.start(
                    source(start(f"    - go: {{kind: http, url: '{web.url}/x', auth: {auth}}}\n"))
                )
            )
        await store.close()
        return state

    state = asyncio.run(whole())
    assert state.status == "completed"
    assert web.asked[-1].headers["authorization"] == "Bearer token-number-1"
    assert (
        tokens.asked[0]["authorization"] == "Basic " + base64.b64encode(b"ada:token%2Fwith+spaces").decode()
    )
    (begun,) = [
        event.body for event in bench.events(state.execution_id) if isinstance(event.body, TaskStarted)
    ]
    assert begun.input["auth"]["client_secret"]["$noetl"] == "secret"


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


def test_headers_that_sign_in_are_never_recorded(bench: Bench, web: Web) -> None:
    text = start(
        f"    - go: {{kind: http, url: '{web.url}/', headers: {{Authorization: Bearer abc, cookie: a=b, X-Other: c}}}}\n",
        "",
    )
    state = run(bench, text)
    assert web.asked[-1].headers["authorization"] == "Bearer abc"
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


def test_nothing_is_looked_up_for_executions_without_secrets(bench: Bench) -> None:
    text = start('    - t: {kind: python, code: \'result = __import__("os").environ["TOKEN"]\'}\n', "")
    assert run(bench, text).result == TOKEN == os.environ["TOKEN"]
