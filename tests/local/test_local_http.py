"""HTTP tasks in running playbooks."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import noetl
from tests.playbooks import document_of
from tests.tools.http_calls import Seen, serving

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def ran(handler: Handler, text: str) -> tuple[noetl.Execution, list[Seen]]:
    """The execution of a playbook in which `URL` is where the server is, and what the server saw."""

    async def play() -> tuple[noetl.Execution, list[Seen]]:
        async with serving(handler) as server:
            return await noetl.arun(document_of(text.lstrip().replace("URL", server.url))), server.seen

    return asyncio.run(play())


@pytest.fixture
def home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def guarded(request: web.Request) -> web.Response:
    """Lets in who has logged in."""
    if request.path == "/login":
        response = web.json_response({"hello": (await request.post())["user"]})
        response.set_cookie("session", "cookie-of-the-session")
        return response
    if request.cookies.get("session") != "cookie-of-the-session":
        raise web.HTTPUnauthorized
    return web.json_response({"secret": 42})


def test_a_login_holds_for_the_rest_of_its_run(home_folder: Path) -> None:
    execution, _ = ran(
        guarded,
        """
- step: start
  tool:
    - { name: login, kind: http, method: POST, url: URL/login, form: { user: ada } }
    - { name: fetch, kind: http, url: URL/data }
  next: { arcs: [{ step: other, when: "{{ event.result.data.secret == 42 }}" }] }
- step: other
  tool: { name: again, kind: http, url: URL/data, spec: { success: [401] } }
""",
    )
    assert (execution.status, execution.result["status"]) == ("completed", 401)
    written = [path.read_bytes() for path in (home_folder / ".noetl").rglob("*") if path.is_file()]
    assert written
    assert not any(b"cookie-of-the-session" in data for data in written)


def test_a_storm_of_refusals_is_weathered_by_policy(home_folder: Path) -> None:
    tries: Counter[str] = Counter()

    async def busy(request: web.Request) -> web.Response:
        tries[request.query["n"]] += 1
        if tries[request.query["n"]] < 3:
            return web.Response(status=429, headers={"Retry-After": "0"}, text="later")
        return web.json_response(int(request.query["n"]))

    execution, seen = ran(
        busy,
        """
- step: start
  loop: { in: "{{ range(100) | list }}", iterator: n, spec: { mode: parallel, max_in_flight: 100 } }
  tool:
    - name: ask
      kind: http
      url: URL/
      params: { n: "{{ n }}" }
      spec:
        policy:
          rules:
            - when: "{{ outcome.http.status == 429 and outcome.error.retryable }}"
              then: { do: retry, attempts: 5, delay: "{{ outcome.error.retry_after }}" }
    - { name: take, kind: noop, args: { n: "{{ _prev.data }}" } }
""",
    )
    assert execution.result == [{"n": n} for n in range(100)]
    assert len(seen) == 300


def test_a_thousand_requests_of_one_loop_are_under_way_at_once(home_folder: Path) -> None:
    all_here = asyncio.Event()
    here = 0

    async def patient(request: web.Request) -> web.Response:
        nonlocal here
        here += 1
        if here == 1_000:
            all_here.set()
        await all_here.wait()  # so none is answered before all are there
        return web.json_response(int(request.query["n"]))

    execution, seen = ran(
        patient,
        """
- step: start
  loop: { in: "{{ range(1000) | list }}", iterator: n, spec: { mode: parallel, max_in_flight: 1000 } }
  tool:
    - { name: ask, kind: http, url: URL/, params: { n: "{{ n }}" } }
    - { name: take, kind: noop, args: { n: "{{ _prev.data }}" } }
""",
    )
    assert execution.result == [{"n": n} for n in range(1_000)]
    assert len({request.port for request in seen}) == 1_000


def test_a_download_goes_on_to_an_upload_and_a_program(home_folder: Path) -> None:
    body = os.urandom(300_000)

    async def files(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.Response(body=body, content_type="application/zip")
        return web.json_response(await request.read() == body)

    execution, _ = ran(
        files,
        """
- step: start
  tool:
    - { name: get, kind: http, url: URL/files/archive.zip }
    - { name: put, kind: http, method: PUT, url: URL/copy, body: "{{ get.data }}" }
    - { name: count, kind: shell, command: [wc, -c], stdin: "{{ get.data }}" }
    - name: end
      kind: noop
      args:
        same: "{{ put.data }}"
        counted: "{{ count.stdout | trim | int }}"
        about: ["{{ get.data.filename }}", "{{ get.data.size }}", "{{ get.data.media_type }}"]
""",
    )
    assert execution.status == "completed", execution.error
    assert execution.result == {
        "same": True,
        "counted": 300_000,
        "about": ["archive.zip", 300_000, "application/zip"],
    }


def test_a_saved_file_of_json_is_a_file_and_no_value(home_folder: Path) -> None:
    rows: list[Any] = [{"n": n} for n in range(30_000)]

    async def table(_request: web.Request) -> web.Response:
        return web.json_response(rows)

    execution, _ = ran(
        table,
        """
- step: start
  tool:
    - { name: get, kind: http, url: URL/rows.json, spec: { save_as: file } }
    - { name: head, kind: shell, command: [head, -c, "10"], stdin: "{{ get.data }}" }
    - name: end
      kind: noop
      args: { head: "{{ head.stdout }}", size: "{{ get.data.size }}", preview: "{{ get.data.preview[:9] }}" }
""",
    )
    assert execution.result == {
        "head": '[{"n": 0},',
        "size": len(json.dumps(rows)),
        "preview": '[{"n": 0}',
    }


@pytest.mark.parametrize("auth", ["api", '{ type: bearer, token: "{{ keychain.api.value }}" }'])
def test_a_script_is_fetched_with_a_credential_of_the_keychain(
    home_folder: Path, monkeypatch: pytest.MonkeyPatch, auth: str
) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_API", "token-of-the-api")

    async def scripts(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer token-of-the-api":
            raise web.HTTPUnauthorized
        return web.Response(text="result = a + 1")

    execution, _ = ran(
        scripts,
        f"""
keychain: [{{ name: api, kind: env, env: TOKEN_OF_THE_API }}]
workflow:
  - step: start
    tool:
      kind: python
      args: {{ a: 1 }}
      script: {{ uri: URL/add.py, source: {{ type: http, auth: {auth} }} }}
""",
    )
    assert (execution.status, execution.result) == ("completed", 2), execution.error
    written = [path.read_bytes() for path in (home_folder / ".noetl").rglob("*") if path.is_file()]
    assert not any(b"token-of-the-api" in data for data in written)


TEXTS = "{{ ['token', 'of', 'the', 'api'] | join('-') }}"


@pytest.mark.parametrize(
    "source",
    [
        f'auth: {{ type: bearer, token: "{TEXTS}" }}',
        f'headers: {{ Authorization: "Bearer {TEXTS}" }}',
    ],
)
def test_what_a_script_signs_in_with_is_not_recorded(home_folder: Path, source: str) -> None:
    async def scripts(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer token-of-the-api":
            raise web.HTTPUnauthorized
        return web.Response(text="result = a + 1")

    execution, _ = ran(
        scripts,
        f"""
- step: start
  tool:
    kind: python
    args: {{ a: 1 }}
    script: {{ uri: URL/add.py, source: {{ type: http, {source} }} }}
""",
    )
    assert (execution.status, execution.result) == ("completed", 2), execution.error
    written = [path.read_bytes() for path in (home_folder / ".noetl").rglob("*") if path.is_file()]
    assert not any(b"token-of-the-api" in data for data in written)


@pytest.mark.parametrize(
    "auth", ["api", "{ type: oauth2, token_url: URL/token, client_id: a, client_secret: b }"]
)
def test_a_script_is_fetched_with_a_token_that_is_renewed_when_it_is_refused(
    home_folder: Path, auth: str
) -> None:
    tokens: list[str] = []

    async def scripts(request: web.Request) -> web.Response:
        if request.path == "/token":
            tokens.append(f"token-number-{len(tokens)}")
            return web.json_response({"access_token": tokens[-1], "token_type": "Bearer", "expires_in": 3600})
        if request.headers.get("Authorization") != "Bearer token-number-1":
            raise web.HTTPUnauthorized
        return web.Response(text="result = a + 1")

    execution, _ = ran(
        scripts,
        f"""
keychain: [{{ name: api, kind: oauth2, token_url: URL/token, client_id: a, client_secret: b }}]
workflow:
  - step: start
    tool:
      kind: python
      args: {{ a: 1 }}
      script: {{ uri: URL/add.py, source: {{ type: http, auth: {auth} }} }}
      spec:
        policy:
          rules:
            - {{ when: "{{{{ outcome.error.status == 401 }}}}", then: {{ do: retry, attempts: 2 }} }}
            - {{ else: {{ then: {{ do: continue }} }} }}
""",
    )
    assert (execution.status, execution.result) == ("completed", 2), execution.error
    assert len(tokens) == 2


def test_a_credential_of_a_script_that_is_not_there_is_told_before_the_first_step(home_folder: Path) -> None:
    execution, seen = ran(
        guarded,
        """
- step: start
  tool: { kind: python, script: { uri: URL/add.py, source: { type: http, auth: nobody } } }
""",
    )
    assert execution.error is not None
    assert (execution.error["kind"], seen) == ("credential", [])
    assert "nobody" in execution.error["message"]


@pytest.mark.spec("001 §6.4")
@pytest.mark.parametrize("scope", ["executor", "step", "loop"])
def test_the_limits_of_requests_may_stand_at_any_scope(home_folder: Path, scope: str) -> None:
    async def silent(_: web.Request) -> web.Response:
        await asyncio.Event().wait()  # until the client is gone
        return web.Response()

    spec = "spec: { timeout: { read: 0.2 } }"
    executor = f"executor: {{ kind: local, {spec} }}\n" if scope == "executor" else ""
    loop = f"  loop: {{ in: [1], iterator: n, {spec if scope == 'loop' else 'spec: {}'} }}\n"
    step_spec = f"  {spec}\n" if scope == "step" else ""
    step = f"- step: start\n{loop}{step_spec}  tool: {{ kind: http, url: URL }}\n"
    execution, _ = ran(silent, f"{executor}workflow:\n{step}")
    assert execution.error is not None
    assert "no data within the time that `spec.timeout.read` gives" in execution.error["message"]
