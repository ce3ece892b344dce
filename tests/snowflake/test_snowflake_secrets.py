"""No secret that a Snowflake task has is written anywhere."""

import json
from pathlib import Path

from tests.cli.command_line import run
from tests.secrets.secret_search import SECRET, SIMPLE, leaks
from tests.secrets.test_secret_leaks import HEAD, TAIL
from tests.snowflake.fakesnow_environment import PASSWORD, Fakesnow

ACCOUNT = """
      - rows: {kind: snowflake, auth: snow, query: "select ? as a, 'x' || ? as b", params: ["{{ keychain.marked.value }}", "{{ keychain.marked.value }}"]}
      - key: {kind: snowflake, auth: {account: a, user: b, private_key: "{{ keychain.simple.value }}"}, query: select 1, spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}
      - wrong: {kind: snowflake, auth: snow, query: 'select * from "{{ keychain.simple.value }}"'}
"""


def test_no_secret_of_a_stored_credential_is_written(tmp_path: Path, snow: Fakesnow) -> None:
    words = ("credential", "set", "snow", "--kind", "snowflake_credential", "--stdin")
    assert run(*words, cwd=tmp_path, stdin=json.dumps(snow.auth())).code == 0
    (tmp_path / "leak.yaml").write_text(HEAD + ACCOUNT + TAIL, "utf-8")
    ran = run("run", "leak.yaml", "-v", cwd=tmp_path, env={"MARKED": SECRET, "SIMPLE": SIMPLE})
    assert ran.code == 0, ran.err
    assert "failed: task wrong" in ran.err
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=(SECRET, SIMPLE, PASSWORD)) == {}
