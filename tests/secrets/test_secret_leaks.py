"""Every kind of tool is run with marked secrets; then everything that was written is searched for them.

A kind is a row of TASKS: tasks that get the secrets in `args`, `auth` or their own inputs, and do all they
can to have them written.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.postgres_server import PASSWORD, PostgresServer
from bench.s3_server import S3Server
from noetl.tools.kind_registry import builtin_kinds
from tests.cli.command_line import CompletedCommand, run
from tests.nats_server import NatsServer, create_bucket
from tests.secrets.secret_search import SECRET, SIMPLE, forms, leaks, secret_forms_in
from tests.tools.container_runtime import ContainerRuntime
from tests.web_server import WebAnswer, WebRequest, WebServer, web_server

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: leak, path: leak}
workload: {url: ""}
keychain:
  - {name: marked, kind: env, env: MARKED}
  - {name: simple, kind: env, env: SIMPLE}
  - {name: login, kind: basic, username: ada, env: MARKED}
  - {name: door, kind: bearer, env: SIMPLE}
  - {name: key, kind: api_key, env: SIMPLE, query: key}
workbook:
  - {name: noted, kind: noop, args: {inside: "{{ keychain.marked.value }}"}}
workflow:
  - step: start
    tool:
"""
TAIL = """
    next:
      arcs:
        - {step: after, args: {got: "{{ event.result }}", why: "{{ event.error }}"}, when: "{{ event.name != '' }}"}
  - step: after
    tool:
      - keep:
          kind: python
          args: {got: "{{ args.got }}"}
          code: |
            print("got", got)
            result = got
          set: {ctx.kept: "{{ outcome.result }}"}
"""

TASKS: dict[str, str] = {
    "noop": """
      - first: {kind: noop, args: {whole: "{{ keychain.marked.value }}", text: "a {{ keychain.marked.value }} b"}}
      - second: {kind: noop, args: {again: "{{ first.text }}", all: "{{ first }}"}}
""",
    "python": """
      - say:
          kind: python
          args: {secret: "{{ keychain.marked.value }}", upper: "{{ keychain.simple.value | upper }}"}
          code: |
            import base64, json, sys, urllib.parse
            print(secret, file=sys.stderr)
            print(json.dumps({"a": [secret]}))
            print(urllib.parse.quote_plus(secret), urllib.parse.quote(secret))
            print("Basic", base64.b64encode(f"user:{secret}".encode()).decode())
            result = {
                "whole": secret,
                "text": f"<{secret}>",
                "json": json.dumps([secret]),
                "url": "http://h/?q=" + urllib.parse.quote(secret, safe=""),
                "packed": base64.urlsafe_b64encode(("ab" + secret).encode()).decode(),
                secret: "as a key",
            }
""",
    "python that fails": """
      - fail:
          kind: python
          args: {secret: "{{ keychain.marked.value }}"}
          code: |
            local = secret
            raise ValueError(f"it was {local}")
""",
    "python with much to say": """
      - much:
          kind: python
          args: {secret: "{{ keychain.marked.value }}"}
          code: |
            result = [f"row {number} {secret}" for number in range(5000)]
""",
    "an expression": """
      - wrong: {kind: noop, args: {number: "{{ keychain.marked.value | int + keychain.marked.value }}"}}
""",
    "an expression over what was made of one": """
      - wrong: {kind: noop, args: {x: "{{ workload[keychain.simple.value | upper].x }}"}}
""",
    "what is made of a secret that was handed on": """
      - got: {kind: secrets, name: SIMPLE, provider: env}
      - made:
          kind: python
          args: {whole: "{{ got.value | upper }}", text: "x {{ got.value | upper }}"}
          code: |
            print(whole, text)
            result = [whole, text]
""",
    "http": """
      - basic: {kind: http, url: "{{ workload.url }}/a", auth: login}
      - bearer: {kind: http, url: "{{ workload.url }}/b", auth: door}
      - query: {kind: http, url: "{{ workload.url }}/c", auth: key}
      - inline: {kind: http, url: "{{ workload.url }}/d", auth: {type: bearer, token: "{{ keychain.simple.value }}"}}
      - post:
          kind: http
          method: POST
          url: "{{ workload.url }}/e?in={{ keychain.simple.value }}"
          params: {p: "{{ keychain.marked.value }}"}
          headers: {X-Own: "{{ keychain.simple.value }}", Cookie: "s={{ keychain.simple.value }}"}
          json: {deep: ["{{ keychain.marked.value }}"]}
""",
    "http that fails": """
      - basic: {kind: http, url: "{{ workload.url }}/fail", auth: login, params: {p: "{{ keychain.marked.value }}"}}
""",
    "http that nobody answers": """
      - none: {kind: http, url: "http://127.0.0.1:9/{{ keychain.simple.value }}", auth: door}
""",
    "shell": """
      - words: {kind: shell, command: [printf, "%s", "{{ keychain.marked.value }}"]}
      - surroundings:
          kind: shell
          command: 'echo "$IT"; echo "$IT" >&2; printf %s "$IT" | base64'
          env: {IT: "{{ keychain.marked.value }}"}
      - stdin: {kind: shell, command: [cat], stdin: "{{ keychain.marked.value }}"}
""",
    "shell with base64 in lines": """
      - lines:
          kind: shell
          command: 'printf %055d%s 0 "$IT" | base64; printf %055d%s 0 "$IT" | base64 >&2'
          env: {IT: "{{ keychain.marked.value }}"}
""",
    "shell that packs": """
      - packed: {kind: shell, command: 'printf "%s" "$IT" | gzip', env: {IT: "{{ keychain.marked.value }}"}}
""",
    "shell that fails": """
      - fail: {kind: shell, command: "echo {{ keychain.simple.value }} >&2; exit 3"}
""",
    "duckdb": """
      - rows: {kind: duckdb, query: "select ? as whole, 'x' || ? as text", params: ["{{ keychain.marked.value }}", "{{ keychain.marked.value }}"]}
      - table:
          kind: duckdb
          query: "select text, length(text) as n from given"
          tables: {given: [{text: "{{ rows.rows[0].text }}"}]}
""",
    "duckdb that fails": """
      - wrong: {kind: duckdb, query: "select cast(? as integer)", params: ["{{ keychain.marked.value }}"]}
""",
    "sqlite": """
      - rows: {kind: sqlite, query: "select ? as a, 'x' || ? as b", params: ["{{ keychain.marked.value }}", "{{ keychain.marked.value }}"]}
""",
    "sqlite that fails": """
      - wrong: {kind: sqlite, query: "select * from {{ keychain.simple.value }}"}
""",
    "artifact": """
      - put: {kind: artifact, action: put, content: {a: "{{ keychain.marked.value }}"}}
""",
    "artifact that is published": """
      - put: {kind: artifact, action: put, key: "a/b", content: "text {{ keychain.marked.value }}"}
""",
    "file": """
      - put: {kind: file, action: put, url: "out/it.txt", content: "text {{ keychain.marked.value }}"}
      - get: {kind: file, action: get, url: "out/it.txt"}
""",
    "file that is not there": """
      - get: {kind: file, action: get, url: "out/{{ keychain.simple.value }}"}
""",
    "wait": """
      - wait: {kind: wait, seconds: 0.01, args: {note: "{{ keychain.marked.value }}"}}
""",
    "playbook": """
      - child:
          kind: playbook
          path: child
          args: {given: "{{ keychain.marked.value }}", url: "{{ workload.url }}"}
""",
    "workbook": """
      - noted: {kind: workbook}
""",
    "secrets": """
      - looked: {kind: secrets, names: [marked, login]}
      - env: {kind: secrets, name: SIMPLE, provider: env}
      - used:
          kind: python
          args: {one: "{{ looked.marked.value }}", two: "{{ env.value }}"}
          code: |
            print(one, two)
            result = [one, two]
""",
    "a masked part": """
      - login:
          kind: python
          spec: {secret: [token]}
          args: {t: "{{ keychain.simple.value }}"}
          code: |
            made = " ".join(["made", "by", "the", "server"])
            result = {"token": made, "note": made, "t": t}
      - use:
          kind: python
          args: {token: "{{ login.token }}"}
          code: |
            print(token)
            assert token.split() == ["made", "by", "the", "server"]
            result = f"used {token}"
""",
}

CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: child}
workload: {given: "", url: ""}
workflow:
  - step: start
    tool:
      - use:
          kind: python
          args: {given: "{{ workload.given }}"}
          code: |
            print(given)
            result = {"length": len(given), "again": f"<{given}>"}
      - pass: {kind: http, url: "{{ workload.url }}/child", method: POST, json: "{{ use.again }}"}
"""

FAILS = {
    "sqlite that fails",
    "duckdb that fails",
    "artifact that is published",
    "file that is not there",
    "python that fails",
    "http that fails",
    "http that nobody answers",
    "shell that fails",
    "shell that packs",
    "an expression",
    "an expression over what was made of one",
}

UNUSABLE = {"artifact", "file"}
"""What they stored was masked, and the next step cannot read it."""


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    """A server that says all that it heard."""

    def echo(request: WebRequest) -> WebAnswer:
        heard = {
            "query": request.query,
            "headers": request.headers,
            "body": request.body,
            "path": request.path,
        }
        headers = {
            "set-cookie": f"seen={request.query.get('key', '')}",
            "x-heard": request.headers.get("x-own", ""),
        }
        return WebAnswer(heard, 500 if request.path == "/fail" else 200, headers)

    with web_server(echo) as web:
        yield web


def run_kind(tmp_path: Path, kind: str, url: str) -> CompletedCommand:
    (tmp_path / "leak.yaml").write_text(HEAD + TASKS[kind] + TAIL, "utf-8")
    (tmp_path / "child.yaml").write_text(CHILD, "utf-8")
    env = {"MARKED": SECRET, "SIMPLE": SIMPLE}
    return run("run", "leak.yaml", "-v", "--set", f"url={url}", cwd=tmp_path, env=env)


@pytest.mark.spec("000 §3.2 (5)")
@pytest.mark.parametrize("kind", TASKS)
def test_no_secret_is_written(kind: str, tmp_path: Path, web: WebServer) -> None:
    ran = run_kind(tmp_path, kind, web.url)
    assert ran.code == (1 if kind in UNUSABLE else 0), ran.err
    assert ("failed: " in ran.err) == (kind in FAILS | UNUSABLE)
    secrets = (SECRET, SIMPLE, SIMPLE.upper(), "made by the server")
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=secrets) == {}


DATABASE = """
      - rows: {kind: postgres, auth: pg, query: "select %s::text as a, 'x' || %s as b", params: ["{{ keychain.marked.value }}", "{{ keychain.marked.value }}"]}
      - wrong: {kind: postgres, auth: pg, query: "select %s::text::integer", params: ["{{ keychain.marked.value }}"]}
"""


def test_no_secret_of_a_stored_credential_is_written(tmp_path: Path, postgres: PostgresServer) -> None:
    fields = {"host": str(postgres.folder), "user": "postgres", "password": PASSWORD, "database": "postgres"}
    set_command = run(
        "credential",
        "set",
        "pg",
        "--kind",
        "postgres_credential",
        "--stdin",
        cwd=tmp_path,
        stdin=json.dumps(fields),
    )
    assert set_command.code == 0
    (tmp_path / "leak.yaml").write_text(HEAD + DATABASE + TAIL, "utf-8")
    ran = run("run", "leak.yaml", "-v", cwd=tmp_path, env={"MARKED": SECRET, "SIMPLE": SIMPLE})
    assert ran.code == 0, ran.err
    assert "failed: task wrong" in ran.err
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=(SECRET, SIMPLE, PASSWORD)) == {}


BUCKET = """
      - put: {kind: s3, action: put, url: "s3://noetl-tests/leak/{{ execution_id }}", content: "text {{ keychain.marked.value }}", auth: bucket}
      - list: {kind: s3, action: list, url: "s3://noetl-tests/leak/{{ execution_id }}", auth: bucket}
      - get: {kind: s3, action: get, url: "s3://noetl-tests/leak/{{ execution_id }}", format: text, auth: bucket}
      - wrong: {kind: s3, action: get, url: "s3://noetl-tests/leak/{{ keychain.simple.value }}", auth: bucket}
"""


def test_no_secret_of_a_bucket_is_written(tmp_path: Path, s3: S3Server) -> None:
    words = ("credential", "set", "bucket", "--kind", "s3_credential", "--stdin")
    assert run(*words, cwd=tmp_path, stdin=json.dumps(s3.auth)).code == 0
    (tmp_path / "leak.yaml").write_text(HEAD + BUCKET + TAIL, "utf-8")
    ran = run("run", "leak.yaml", "-v", cwd=tmp_path, env={"MARKED": SECRET, "SIMPLE": SIMPLE})
    assert ran.code == 0, ran.err
    assert "failed: task wrong" in ran.err
    secrets = (SECRET, SIMPLE, s3.secret_access_key)
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=secrets) == {}


MESSAGES = """
      - heard: {kind: nats, action: kv_put, bucket: leaks, key: k, value: "{{ keychain.marked.value }}", auth: bus}
      - got: {kind: nats, action: kv_get, bucket: leaks, key: k, auth: bus}
      - said: {kind: nats, action: publish, subject: leaks.said, payload: {a: "{{ keychain.simple.value }}"}, headers: {x-own: "{{ keychain.simple.value }}"}, auth: bus}
      - wrong: {kind: nats, action: kv_get, bucket: leaks, key: "{{ keychain.simple.value }}", auth: bus}
"""


def test_no_secret_of_a_message_is_written(tmp_path: Path, nats: NatsServer) -> None:
    asyncio.run(create_bucket(nats, "leaks"))
    words = ("credential", "set", "bus", "--kind", "nats_credential", "--stdin")
    assert run(*words, cwd=tmp_path, stdin=json.dumps(nats.auth)).code == 0
    (tmp_path / "leak.yaml").write_text(HEAD + MESSAGES + TAIL, "utf-8")
    ran = run("run", "leak.yaml", "-v", cwd=tmp_path, env={"MARKED": SECRET, "SIMPLE": SIMPLE})
    assert ran.code == 0, ran.err
    assert "failed: task wrong" in ran.err
    secrets = (SECRET, SIMPLE, nats.auth["password"])
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=secrets) == {}


CONTAINER = """
      - say: {kind: container, image: host, command: ["sh", "-c", "cat; echo $GIVEN; echo $0 >&2", "{{ keychain.simple.value }}"], env: {GIVEN: "{{ keychain.marked.value }}"}, stdin: "{{ keychain.simple.value }}"}
      - wrong: {kind: container, image: host, command: "echo $GIVEN >&2; exit 3", env: {GIVEN: "{{ keychain.marked.value }}"}}
"""


def test_no_secret_of_a_container_is_written(tmp_path: Path) -> None:
    (tmp_path / "docker").mkdir()
    runtime = ContainerRuntime(tmp_path / "docker")
    (tmp_path / "leak.yaml").write_text(HEAD + CONTAINER + TAIL, "utf-8")
    env = {"PATH": f"{runtime.programs}:/usr/bin:/bin", "CONTAINERS": str(runtime.home)}
    ran = run("run", "leak.yaml", "-v", cwd=tmp_path, env={"MARKED": SECRET, "SIMPLE": SIMPLE, **env})
    assert ran.code == 0, ran.err
    assert "failed: task wrong" in ran.err
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=(SECRET, SIMPLE)) == {}
    assert SECRET not in " ".join(runtime.last_run["options"])  # which every user of the machine may see


def test_every_kind_is_searched() -> None:
    texts = " ".join((*TASKS.values(), DATABASE, BUCKET, MESSAGES, CONTAINER))
    searched = {kind.name for kind in builtin_kinds() if f"kind: {kind.name}" in texts}
    apart = {"mysql", "quantum", "snowflake"}  # beside their other tests, as they need a server or a package
    assert searched | apart == {kind.name for kind in builtin_kinds()}


def test_no_secret_is_shown_afterwards(tmp_path: Path, web: WebServer) -> None:
    assert run_kind(tmp_path, "python", web.url).code == 0
    assert run("executions", "verify", "latest", cwd=tmp_path).code == 0
    for words in (["show"], ["logs"], ["events", "-o", "json"], ["result"]):
        ran = run("executions", *words, "latest", cwd=tmp_path)
        assert ran.code == 0
        assert not secret_forms_in((ran.out + ran.err).encode())
        assert "***" in ran.out or '"secret"' in ran.out


def test_tools_got_the_real_ones(tmp_path: Path, web: WebServer) -> None:
    before = len(web.requests)
    assert run_kind(tmp_path, "http", web.url).code == 0
    requests = {request.path: request for request in web.requests[before:]}
    assert (
        requests["/b"].headers["authorization"]
        == requests["/d"].headers["authorization"]
        == f"Bearer {SIMPLE}"
    )
    assert requests["/c"].query == {"key": SIMPLE}
    assert requests["/e"].query == {"in": SIMPLE, "p": SECRET}
    assert requests["/e"].body == {"deep": [SECRET]}
    assert run_kind(tmp_path, "playbook", web.url).code == 0
    assert web.requests[-1].body == f"<{SECRET}>"


def test_the_search_finds_what_is_there() -> None:
    for form in forms(SECRET):
        assert secret_forms_in(b"x" + form + b"y")
    assert secret_forms_in(json.dumps({"a": SECRET}).encode())
    assert not secret_forms_in(b"nothing of it")
