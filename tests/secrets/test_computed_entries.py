"""Keychain entries that are computed from the workload and from entries before them."""

import asyncio
import base64
import hashlib
from pathlib import Path

import pytest

from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.ports.credentials import StoredCredential
from noetl.stores.sqlite.store import SqliteStore
from tests.credentials.credential_servers import Tokens, serve_application
from tests.local.local_engine import Bench, source
from tests.secrets.keychain_runs import LENGTH, TOKEN, error_of, run, set_credentials, start
from tests.secrets.secret_search import leaks
from tests.web_server import WebServer


def keychain(*entries: str, workload: str = "{}") -> str:
    return f"workload: {workload}\nkeychain:\n" + "".join(f"  - {entry}\n" for entry in entries)


TOKEN_ENTRY = "{name: token, kind: env, env: TOKEN}"


def test_an_entry_reads_the_workload(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_EU", "token of Europe")
    text = start(
        LENGTH % "keychain.shop.value",
        keychain(
            "{name: shop, kind: env, env: 'SHOP_{{ workload.region | upper }}'}", workload="{region: eu}"
        ),
    )
    assert run(bench, text).result == len("token of Europe")
    error = error_of(run(bench, text, workload={"region": "us"}))
    assert error.kind == "credential"
    assert "the environment variable SHOP_US is not set" in error.message


def test_an_entry_reads_those_before_it_and_signs_in_with_what_came_out(bench: Bench, web: WebServer) -> None:
    entries = keychain(
        TOKEN_ENTRY,
        "{name: twice, kind: static, value: '{{ keychain.token.value }}{{ keychain.token.value }}'}",
        "{name: api, kind: bearer, token: '{{ keychain.twice.value | upper }}'}",
    )
    text = start(f"    - t: {{kind: http, url: '{web.url}/', auth: api}}\n", entries)
    assert run(bench, text).status == "completed"
    assert web.requests[-1].headers["authorization"] == f"Bearer {(TOKEN * 2).upper()}"


def test_what_is_made_of_a_secret_is_masked_whatever_its_field_is_called(
    bench: Bench, tmp_path: Path
) -> None:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    coded = base64.b32encode(TOKEN.encode()).decode()
    text = start(
        "    - leak: {kind: python, args: {v: '{{ keychain.db }}'},"
        ' code: \'result = dict(v, text=v["host"] + v["user"])\'}\n'
        "    - print: {kind: python, args: {v: '{{ keychain.db.host }}'}, code: 'print(v, 5); result = v'}\n"
        "    - fail: {kind: python, args: {v: '{{ keychain.db.host }}'}, code: 'raise ValueError(v)'}\n",
        keychain(
            TOKEN_ENTRY,
            "{name: db, kind: postgres_credential, host: '{{ keychain.token.value | sha256 }}', "
            "user: '{{ keychain.token.value | reverse }}', port: 5432}",
        ),
    )
    state = run(bench, text)
    assert digest not in error_of(state).message
    assert leaks(tmp_path, str(state.error), secrets=(TOKEN, digest, TOKEN[::-1], coded)) == {}


def test_what_is_made_of_public_fields_alone_is_no_secret(bench: Bench) -> None:
    text = start(
        "    - t: {kind: noop, args: {url: '{{ keychain.api.url }}'}}\n",
        keychain(
            "{name: login, kind: basic, username: ada, password: open-sesame}",
            "{name: api, kind: api_credential, url: 'http://{{ keychain.login.username }}.example.com/{{ path }}'}",
            workload="{path: v2}",
        ),
    )
    assert run(bench, text).result == {"url": "http://ada.example.com/v2"}


def test_only_entries_that_something_uses_are_looked_up_and_those_that_they_read(
    bench: Bench, web: WebServer
) -> None:
    entries = keychain(
        f"{{name: login, kind: oauth2, token_url: '{web.url}/token', client_id: c, client_secret: s}}",
        "{name: unused, kind: bearer, token: '{{ keychain.login.access_token }}'}",
        TOKEN_ENTRY,
        "{name: used, kind: bearer, token: 'x-{{ keychain.token.value }}'}",
    )
    before = len(web.requests)
    state = run(bench, start(LENGTH % "keychain.used.token", entries))
    assert state.result == len(TOKEN) + 2
    assert len(web.requests) == before


def test_an_entry_that_reads_one_that_cannot_be_had_fails_before_the_first_step(bench: Bench) -> None:
    entries = keychain(
        "{name: gone, kind: env, env: ABSENT_VARIABLE}",
        "{name: api, kind: bearer, token: '{{ keychain.gone.value }}'}",
    )
    state = run(bench, start(LENGTH % "keychain.api.token", entries))
    assert error_of(state).message == (
        "the credential `api` cannot be had: the credential `gone` cannot be had: "
        "the environment variable ABSENT_VARIABLE is not set (set it where the worker runs)"
    )
    assert "StepStarted" not in bench.names(state.execution_id)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: api, kind: bearer, token: '{{ workload.absent }}'}", "`token`: "),
        ("{name: api, kind: bearer, token: '{{ workload.n }}'}", "`token` came out as a number"),
        (
            "{name: api, kind: bearer, token: '{{ keychain.token.value | from_json }}'}",
            "`token`: its expression fails, and why cannot be told without a secret",
        ),
        (
            "{name: api, kind: bearer, env: '{{ keychain.token.value }}'}",
            "the environment variable *** is not set",
        ),
    ],
)
def test_an_entry_that_cannot_be_computed_says_why_and_tells_no_secret(
    bench: Bench, tmp_path: Path, entry: str, message: str
) -> None:
    entries = keychain(TOKEN_ENTRY, entry, workload="{n: 5}")
    state = run(bench, start(LENGTH % "keychain.api.token", entries))
    assert error_of(state).kind == "credential"
    assert message in error_of(state).message
    assert leaks(tmp_path, error_of(state).message, secrets=(TOKEN,)) == {}


def test_a_secret_in_the_workload_stays_one(bench: Bench, tmp_path: Path) -> None:
    child = (
        "{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: c, path: c}, workload: {t: ''}, "
        "keychain: [{name: own, kind: api_credential, host: '{{ workload.t | upper }}'}], "
        "workflow: [{step: start, tool: {kind: python, args: {h: '{{ keychain.own.host }}'}, code: 'result = [h]'}}]}"
    )
    text = start(
        f"    - call: {{kind: playbook, args: {{t: '{{{{ keychain.token.value }}}}'}}, document: {child}}}\n"
        "    - count: {kind: python, args: {t: '{{ call }}'}, code: 'result = [len(t[0]), t[0].isupper()]'}\n"
    )
    state = run(bench, text)
    assert state.result == [len(TOKEN), True]
    assert leaks(tmp_path, secrets=(TOKEN, TOKEN.upper())) == {}


def test_a_child_gets_what_its_parent_computed_from_its_own_workload(bench: Bench, tmp_path: Path) -> None:
    child = (
        "{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: c, path: c}, workload: {t: ''}, "
        "workflow: [{step: start, tool: {kind: python, args: {h: '{{ workload.t }}'}, code: 'result = len(h)'}}]}"
    )
    entries = keychain(
        TOKEN_ENTRY,
        "{name: own, kind: bearer, token: '{{ keychain.token.value }}-{{ workload.n }}'}",
        workload="{n: 5}",
    )
    text = start(
        f"    - call: {{kind: playbook, args: {{t: '{{{{ keychain.own.token }}}}'}}, document: {child}}}\n",
        entries,
    )
    assert run(bench, text).result == len(TOKEN) + 2
    assert run(bench, text, workload={"n": 5000}).result == len(TOKEN) + 5
    assert leaks(tmp_path, secrets=(TOKEN, f"{TOKEN}-5000")) == {}


def test_a_credential_of_the_store_under_another_name(bench: Bench, web: WebServer) -> None:
    set_credentials(bench, StoredCredential("door", "bearer", {"token": "kept-token"}))
    entries = keychain(
        "{name: api, kind: credential, credential: '{{ workload.which }}'}", workload="{which: door}"
    )
    text = start(f"    - t: {{kind: http, url: '{web.url}/', auth: api}}\n", entries)
    assert run(bench, text).status == "completed"
    assert web.requests[-1].headers["authorization"] == "Bearer kept-token"
    error = error_of(run(bench, text, workload={"which": "window"}))
    assert "the credential store has no `window`" in error.message


def test_an_entry_follows_the_token_that_it_reads(bench: Bench) -> None:
    """The first token lasts for the second that every value is good for; then comes another one."""
    tokens = Tokens(expires_in=1)

    async def work() -> ExecutionState:
        async with serve_application(tokens.application()) as url:
            entries = keychain(
                f"{{name: login, kind: oauth2, token_url: '{url}/token', client_id: c, client_secret: s}}",
                "{name: api, kind: bearer, token: '<{{ keychain.login.access_token }}>'}",
            )
            text = start(
                "    - wait: {kind: wait, seconds: 1.1}\n"
                "    - use: {kind: python, args: {t: '{{ keychain.api.token }}'}, code: 'result = t[-2]'}\n",
                entries,
            )
            store = SqliteStore.at(bench.home.store)
            try:
                async with Local(store) as local:
                    return await local.wait_for_end(await local.start(source(text)))
            finally:
                await store.close()

    assert asyncio.run(work()).result == str(len(tokens.asked))
    assert len(tokens.asked) > 1


def test_an_entry_is_masked_that_only_another_one_reads(bench: Bench, tmp_path: Path) -> None:
    entries = keychain(TOKEN_ENTRY, "{name: api, kind: bearer, token: '{{ keychain.token.value | sha256 }}'}")
    leak = '    - leak: {kind: python, code: \'result = __import__("os").environ["TOKEN"] + "!"\'}\n'
    assert run(bench, start(leak + LENGTH % "keychain.api.token", entries)).result == 64
    assert leaks(tmp_path, secrets=(TOKEN,)) == {}
