"""Texts that somebody cuts: our tools mask them before, and what others cut in the middle of a secret is masked."""

import base64
from collections.abc import Iterator

import pytest

from noetl.kernel.state.execution_state import ExecutionState
from tests.local.local_engine import Bench
from tests.secrets.keychain_runs import run
from tests.web_server import WebAnswer, WebRequest, WebServer, web_server

SECRET = "QZJ4-WVK8-PYX2-GHB6-NML3-TRD9"
LONG_SECRET = "-".join(f"Q{number:02d}ZJ4" for number in range(30))
KEYCHAIN = "keychain:\n  - {name: token, kind: env, env: TOKEN}\n"
PYTHON = "    - t: {kind: python, args: {s: '{{ keychain.token.value }}'}, code: %s}\n"
SHELL = "    - t: {kind: shell, command: [python3, -c, %s], env: {S: '{{ keychain.token.value }}'}}\n"


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    """Gives the answer that the path asks for: `/STATUS/FILLER/TYPE` has as many characters before `?s=`."""

    def answer(request: WebRequest) -> WebAnswer:
        _, status, filler, kind = request.path.split("/")
        body = "x" * int(filler) + request.query["s"] + "y" * 2_000
        headers = {"content-type": f"text/{kind}"}
        if kind == "named":
            headers = {
                "content-type": "application/zip",
                "content-disposition": f"attachment; filename={body}",
            }
        return WebAnswer(body.encode(), int(status), headers)

    with web_server(answer) as web:
        yield web


def pieces_written(bench: Bench, length: int, secret: str) -> set[str]:
    """Parts of a secret, of this length, in all that stands in the home."""
    pieces = {secret[at : at + length] for at in range(len(secret) - length + 1)}
    content = [path.read_bytes() for path in bench.home.folder.rglob("*") if path.is_file()]
    return {piece for piece in pieces if any(piece.encode() in data for data in content)}


def run_tasks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tasks: str, secret: str = SECRET
) -> ExecutionState:
    monkeypatch.setenv("TOKEN", secret)
    tasks = tasks.replace("FOLDER", str(bench.home.folder.parent))
    return run(bench, f"{KEYCHAIN}workflow:\n- step: start\n  tool:\n{tasks}")


CUT_BY_US = {
    "the first half of an exception": PYTHON % "'raise ValueError(\"x\" * (4096 - 5) + s + \"y\" * 9000)'",
    "the second half of an exception": PYTHON % "'raise ValueError(\"x\" * 9000 + s + \"y\" * (4096 - 5))'",
    "a traceback": PYTHON % "'raise ValueError(\"x\" * 30000 + s + \"y\" * (16384 - 6))'",
    "more than goes through a pipe": PYTHON % "'raise ValueError(\"x\" * (131072 - 5) + s + \"y\" * 400000)'",
    "a line of a log": PYTHON % "'for k in range(1, len(s)): print(\"x\" * (8192 - k) + s + \"tail\")'",
    "a line in the worker's process": (
        "    - t: {kind: python, spec: {isolation: inline}, args: {s: '{{ keychain.token.value }}'},"
        " code: 'for k in range(1, len(s)): print(\"x\" * (8192 - k) + s + \"tail\")'}\n"
    ),
    "the last line of a program": SHELL % "'import os, sys; sys.exit(\"0\" * 195 + os.environ[\"S\"])'",
    "the tail of a program's output": (
        SHELL % "'import os; print(\"q\" * 1100000 + os.environ[\"S\"] + \"z\" * (16384 - 6))'"
    ),
    "the preview of a program's output": (
        SHELL % "'import os; print(\"q\" * 1019 + os.environ[\"S\"] + \"z\" * 1100000)'"
    ),
    "all that goes to a log": (
        SHELL % "'import os; print(((\"q\" * 1023 + chr(10)) * 8192)[:-14] + os.environ[\"S\"])'"
    ),
    "a key that is there twice": PYTHON % "'result = {7: 1, \"7\": 2, s * 5: 1, (s * 5, 1): 2}'",
    "what is no date": "    - t: {kind: noop, args: {v: \"{{ ('2' * 35 ~ keychain.token.value) | to_datetime }}\"}}\n",
    "a table of SQL": (
        "    - t: {kind: sqlite, query: \"with recursive n(i) as (select 1 union all select i + 1 from n where i"
        " < 9000) select i, ? as s from n\", params: ['{{ \"x\" * 1003 ~ keychain.token.value }}']}\n"
    ),
    "a file": (
        "    - p: {kind: file, action: put, url: 'FOLDER/f.txt', content: '{{ \"x\" * 1019 ~ keychain.token.value ~ \"y\" * 99 }}'}\n"
        "    - t: {kind: file, action: get, url: 'FOLDER/f.txt'}\n"
    ),
    "an artifact": (
        "    - t: {kind: artifact, action: put, format: text,"
        " content: '{{ \"x\" * 1019 ~ keychain.token.value ~ \"y\" * 99 }}'}\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT_BY_US)
def test_nothing_is_left_of_a_secret_where_we_cut(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    state = run_tasks(bench, monkeypatch, CUT_BY_US[name])
    assert state.status in ("completed", "failed")
    assert not pieces_written(bench, 4, SECRET)
    assert SECRET[:4] not in str(state.error)


@pytest.mark.parametrize("path", ["500/194/plain", "200/1019/plain", "200/194/named"])
@pytest.mark.parametrize("save", [True, False])
def test_nothing_is_left_of_a_secret_that_a_server_gives_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, web: WebServer, path: str, save: bool
) -> None:
    spec = "spec: {save_as: file}," if save else ""
    run_tasks(
        bench,
        monkeypatch,
        f"    - t: {{kind: http, {spec} url: '{web.url}/{path}', params: {{s: '{{{{ keychain.token.value }}}}'}}}}\n",
    )
    assert not pieces_written(bench, 4, SECRET)


CUT_BY_OTHERS = {
    "a quoted line of a statement": "    - t: {kind: duckdb, query: \"SELECT CAST('{{ keychain.token.value }}' AS DATE)\"}\n",
    "the middle of a statement": (
        "    - t: {kind: duckdb, query: \"SELECT 1 AS a, '{{ keychain.token.value }}' || nothing_like_it || '{{"
        " keychain.token.value }}' AS b, 2 AS c\"}\n"
    ),
    "what a database says at last": (
        "    - t: {kind: duckdb, query: 'SELECT error(substr(?, 1, 20))', params: ['{{ keychain.token.value }}']}\n"
    ),
    "the end of a message": PYTHON % "'raise ValueError(\"no \" + s[:-2])'",
    "the beginning of a message": SHELL % "'import os, sys; sys.exit(os.environ[\"S\"][:20] + \"...\")'",
    "what a stopped program printed": SHELL % "'import os; os.write(1, os.environ[\"S\"][:20].encode()); os.kill(os.getpid(), 9)'",
}  # fmt: skip


@pytest.mark.parametrize("secret", [SECRET, LONG_SECRET])
@pytest.mark.parametrize("name", CUT_BY_OTHERS)
def test_what_others_left_of_a_secret_is_masked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, secret: str
) -> None:
    state = run_tasks(bench, monkeypatch, CUT_BY_OTHERS[name], secret)
    assert state.status == "failed"
    # In logs and errors; a result is data, of which a program that cuts secrets itself may give any part.
    logs = b"".join(path.read_bytes() for path in bench.home.logs.glob("*")).decode()
    written = f"{logs} {state.error}"
    assert not [at for at in range(len(secret) - 5) if secret[at : at + 6] in written]


def test_base64_of_a_secret_is_masked_before_the_cut(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        'import base64; raise ValueError("x " * 2040 + base64.b64encode(s.encode()).decode() + " y" * 9000)'
    )
    run_tasks(bench, monkeypatch, PYTHON % f"'{code}'")
    assert not pieces_written(bench, 8, base64.b64encode(SECRET.encode()).decode())
