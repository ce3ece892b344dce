"""What commands and Python programs print of a result that holds secrets; events alone name them."""

import json
from pathlib import Path

import pytest

import noetl
from noetl.model.reference import escape
from noetl.model.secret import SecretOrigin, printable_value, secret_marker, secret_part, secret_text_marker
from tests.cli.command_line import run
from tests.secrets.secret_search import SIMPLE, secret_forms_in

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shown, path: shown}
keychain:
  - {name: token, kind: env, env: SIMPLE}
workflow:
  - step: start
    tool:
      - make:
          kind: python
          args: {s: "{{ keychain.token.value }}"}
          code: |
            result = {"whole": s, "text": f"<{s}>", "list": [s, 1], "own": {"$noetl": "secret", "name": "mine"}}
          set: {ctx.kept: "{{ outcome.result }}"}
      - large:
          kind: python
          args: {s: "{{ keychain.token.value }}", made: "{{ make }}"}
          code: |
            result = {"made": made, "rows": [f"{n} {s}" for n in range(WANTED)]}
    next: {arcs: [{step: after, args: {got: "{{ event.result.made }}"}}]}
  - step: after
    tool: {kind: noop, args: {got: "{{ args.got }}"}}
"""
MADE = {"whole": "***", "text": "<***>", "list": ["***", 1], "own": {"$noetl": "secret", "name": "mine"}}


def write(tmp_path: Path, rows: int) -> None:
    (tmp_path / "shown.yaml").write_text(PLAYBOOK.replace("WANTED", str(rows)))


def test_json_shows_secrets_as_asterisks_and_events_name_them(tmp_path: Path) -> None:
    write(tmp_path, 2)
    env = {"SIMPLE": SIMPLE}
    ran = run("run", "shown.yaml", "-o", "json", cwd=tmp_path, env=env)
    assert ran.code == 0, ran.err
    assert ran.json["ctx"] == {"kept": MADE}
    show = run("executions", "show", "latest", "-o", "json", cwd=tmp_path)
    assert show.json["ctx"] == {"kept": MADE}
    assert show.json["result"] == ran.json["result"]
    assert "SIMPLE" not in json.dumps(show.json["explanation"])
    replayed = run("executions", "replay", "latest", "--at", "12", "-o", "json", cwd=tmp_path)
    start = run("executions", "result", "latest", "start", "-o", "json", cwd=tmp_path)
    assert start.json["result"] == {"made": MADE, "rows": ["0 ***", "1 ***"]}
    plain = run("executions", "result", "latest", "start", "-f", "out.json", cwd=tmp_path)
    assert plain.code == 0
    assert json.loads((tmp_path / "out.json").read_text()) == start.json["result"]
    marked = '"path": ["value"]'
    for printed in (ran, show, replayed, start):
        assert printed.code == 0, printed.err
        assert '"***"' in printed.out
        assert marked not in json.dumps(printed.json)
        assert not secret_forms_in(printed.out.encode())
    events = run("executions", "events", "latest", "-o", "json", cwd=tmp_path)
    assert marked in json.dumps(events.json)
    assert '"***"' not in events.out


def test_a_large_result_shows_them_so_too(tmp_path: Path) -> None:
    write(tmp_path, 9_000)
    assert run("run", "shown.yaml", "-q", cwd=tmp_path, env={"SIMPLE": SIMPLE}).code == 0
    start = run("executions", "result", "latest", "start", "-o", "json", cwd=tmp_path)
    assert start.json["result"]["made"] == MADE
    assert start.json["result"]["rows"][8_999] == "8999 ***"


def test_python_programs_get_them_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 2)
    monkeypatch.setenv("SIMPLE", SIMPLE)
    execution = noetl.run(tmp_path / "shown.yaml", store="sqlite:///:memory:")
    assert execution.ctx == {"kept": MADE}
    assert type(execution.ctx["kept"]["whole"]) is str


def test_data_of_a_user_that_looks_like_a_secret_is_printed_as_it_is() -> None:
    own = {"$noetl": "secret", "name": "mine", "deep": [{"$noetl": "secret"}]}
    origin = SecretOrigin("s", ("value",))
    value = {
        "own": own,
        "text": secret_text_marker(["a ", secret_part(origin), " b"]),
        "n": secret_marker(origin),
    }
    assert printable_value(escape(value)) == {"own": own, "text": "a *** b", "n": "***"}
    assert printable_value(escape(secret_marker(origin))) == "***"
    assert printable_value("plain") == "plain"
