"""No secret that a MySQL task has is written anywhere."""

import json
from pathlib import Path

from tests.cli.command_line import run
from tests.mysql.mariadb import PASSWORD, MariadbServer
from tests.secrets.secret_search import SECRET, SIMPLE, leaks
from tests.secrets.test_secret_leaks import HEAD, TAIL

DATABASE = """
      - rows: {kind: mysql, auth: my, query: "select ? as a, concat('x', ?) as b", params: ["{{ keychain.marked.value }}", "{{ keychain.marked.value }}"]}
      - warned: {kind: mysql, auth: my, query: "select ? + 1 as n", params: ["{{ keychain.marked.value }}"]}
      - address: {kind: mysql, dsn: "mysql://tester:{{ keychain.simple.value }}@127.0.0.1/x", query: select 1, spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}
      - wrong: {kind: mysql, auth: my, query: "select * from `{{ keychain.simple.value }}`.t"}
"""


def test_no_secret_of_a_stored_credential_is_written(tmp_path: Path, mariadb: MariadbServer) -> None:
    words = ("credential", "set", "my", "--kind", "mysql_credential", "--stdin")
    assert run(*words, cwd=tmp_path, stdin=json.dumps(mariadb.auth())).code == 0
    (tmp_path / "leak.yaml").write_text(HEAD + DATABASE + TAIL, "utf-8")
    ran = run("run", "leak.yaml", "-v", cwd=tmp_path, env={"MARKED": SECRET, "SIMPLE": SIMPLE})
    assert ran.code == 0, ran.err
    assert "failed: task wrong" in ran.err
    assert leaks(tmp_path / ".noetl", ran.out, ran.err, secrets=(SECRET, SIMPLE, PASSWORD)) == {}
