"""Executions with secrets: when they are looked up, and what happens when they cannot be."""

import asyncio
import base64
import os

import pytest

from noetl.events.bodies import TaskStarted
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.ports.credentials import StoredCredential
from noetl.stores.sqlite.store import SqliteStore
from tests.credentials.credential_servers import Tokens, serve_application
from tests.local.local_engine import Bench, source
from tests.secrets.keychain_runs import LENGTH, TOKEN, error_of, run, set_credentials, start
from tests.web_server import WebServer


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
    name = keychain.removeprefix("{name: ").partition(",")[0]
    tasks = f"    - t: {{kind: noop, args: {{kind: '{{{{ keychain.{name}.kind }}}}'}}}}\n"
    state = run(bench, start(tasks, f"keychain: [{keychain}]\n"))
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


def test_entries_that_nothing_uses_are_not_looked_up(bench: Bench, web: WebServer) -> None:
    unused = f"{{name: unused, kind: oauth2, token_url: '{web.url}/token', client_id: c, client_secret: s}}"
    text = start(
        "    - t: {kind: noop, args: {kind: '{{ keychain.token.kind }}'}}\n",
        f"keychain: [{{name: gone, kind: env, env: ABSENT_VARIABLE}}, {unused}, {{name: token, kind: env, env: TOKEN}}]\n",
    )
    assert run(bench, text).result == {"kind": "env"}
    assert not web.requests


@pytest.mark.parametrize(
    "task",
    [
        "{kind: http, url: '%s/', auth: '{{ workload.who }}'}",
        "{kind: http, url: '%s/', auth: {type: bearer, token: '{{ keychain[workload.who].value }}'}}",
    ],
)
def test_of_entries_whose_names_are_computed_those_must_be_had_that_a_task_asks_for(
    bench: Bench, web: WebServer, task: str
) -> None:
    text = start(
        f"    - t: {task % web.url}\n",
        "workload: {who: token}\n"
        "keychain: [{name: gone, kind: env, env: ABSENT_VARIABLE}, {name: token, kind: env, env: TOKEN}]\n",
    )
    assert run(bench, text).status == "completed"
    assert web.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"
    error = error_of(run(bench, text, workload={"who": "gone"}))
    assert error.kind == "credential"
    assert "the environment variable ABSENT_VARIABLE is not set" in error.message


def test_a_secret_whose_name_is_computed_is_masked_before_its_task_asks_for_it(bench: Bench) -> None:
    text = start(
        '    - leak: {kind: python, code: \'result = __import__("os").environ["TOKEN"]\'}\n'
        "    - use: {kind: secrets, name: '{{ workload.who }}'}\n"
        "    - back: {kind: noop, args: {leak: '{{ leak }}'}}\n",
        "workload: {who: token}\nkeychain: [{name: token, kind: env, env: TOKEN}]\n",
    )
    assert run(bench, text).result["leak"]["$noetl"] == "secret"


def test_the_credential_store_answers_for_names_and_for_entries_without_fields(
    bench: Bench, web: WebServer
) -> None:
    set_credentials(
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
    assert web.requests[-1].headers["authorization"] == "Bearer kept-token"
    assert state.result["host"] == "h"
    assert state.result["kind"] == "postgres_credential"
    assert state.result["password"] == {
        "$noetl": "secret",
        "name": "pg",
        "path": ["password"],
        "playbook": state.plan.playbook.hash,
    }


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
        "keychain: [{name: gone, kind: env, env: ABSENT_VARIABLE}]\nworkflow:\n- step: start\n"
        "  tool: {kind: noop, args: {token: '{{ keychain.gone.value }}'}}\n"
    )
    error = error_of(run(bench, start("    - child: {kind: playbook, path: c}\n")))
    assert error.kind == "child_failed"
    assert "the credential `gone` cannot be had" in error.message


def test_a_token_is_had_once_and_again_after_it_was_refused(bench: Bench, web: WebServer) -> None:
    tokens = Tokens(expires_in=3600)

    async def run_to_end() -> ExecutionState:
        store = SqliteStore.at(bench.home.store)
        async with serve_application(tokens.application()) as url, Local(store) as local:
            keychain = f"keychain: [{{name: api, kind: oauth2, token_url: '{url}/token', client_id: ada, client_secret: s3cr3t}}]\n"
            text = (
                f"{keychain}workflow:\n- step: start\n  loop: {{in: '{{{{ range(20) | list }}}}', iterator: n, spec: {{mode: parallel, max_in_flight: 20}}}}\n"
                f"  tool: [{{go: {{kind: http, url: '{web.url}/open', auth: api}}}}]\n"
                "  next: {arcs: [{step: closed}]}\n"
                f"- step: closed\n  tool: [{{go: {{kind: http, url: '{web.url}/closed', auth: api, spec: {{policy: {{rules: [{{when: '{{{{ outcome.http.status == 401 }}}}', then: {{do: retry, attempts: 2}}}}]}}}}}}}}]\n"
            )
            state = await local.wait_for_end(await local.start(source(text)))
        await store.close()
        return state

    before = len(web.requests)
    error = error_of(asyncio.run(run_to_end()))
    assert error.kind == "http_status"
    sent = [request.headers["authorization"] for request in web.requests[before:]]
    assert sent == ["Bearer token-number-1"] * 21 + ["Bearer token-number-2"]
    assert len(tokens.asked) == 2


def test_an_inline_credential_is_exchanged_and_masked(bench: Bench, web: WebServer) -> None:
    tokens = Tokens()

    async def run_to_end() -> ExecutionState:
        store = SqliteStore.at(bench.home.store)
        async with serve_application(tokens.application()) as url, Local(store) as local:
            auth = f"{{type: oauth2, token_url: '{url}/token', client_id: ada, client_secret: '{{{{ keychain.token.value }}}}'}}"
            state = await local.wait_for_end(
                await local.start(
                    source(start(f"    - go: {{kind: http, url: '{web.url}/x', auth: {auth}}}\n"))
                )
            )
        await store.close()
        return state

    state = asyncio.run(run_to_end())
    assert state.status == "completed"
    assert web.requests[-1].headers["authorization"] == "Bearer token-number-1"
    assert (
        tokens.asked[0]["authorization"] == "Basic " + base64.b64encode(b"ada:token%2Fwith+spaces").decode()
    )
    (begun,) = [
        event.body for event in bench.events(state.execution_id) if isinstance(event.body, TaskStarted)
    ]
    assert begun.input["auth"]["client_secret"]["$noetl"] == "secret"


def test_nothing_is_looked_up_for_executions_without_secrets(bench: Bench) -> None:
    text = start('    - t: {kind: python, code: \'result = __import__("os").environ["TOKEN"]\'}\n', "")
    assert run(bench, text).result == TOKEN == os.environ["TOKEN"]
