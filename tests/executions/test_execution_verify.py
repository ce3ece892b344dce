"""`noetl executions verify` where decisions rest on values that are stored beside the log."""

import shutil
from pathlib import Path

from tests.executions.in_process_command import InProcessCommand

LARGE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: large}
workflow:
- step: start
  tool:
  - {name: make, kind: python, code: "result = {'rows': [{'n': i, 'text': 'x' * 50} for i in range(5000)]}"}
  - {name: count, kind: noop, args: {n: "{{ make.rows | length }}", last: "{{ make.rows[4999].n }}"}}
  next: {arcs: [{step: each}]}
- step: each
  loop: {in: [1, 2], iterator: i}
  tool:
  - {name: again, kind: python, args: {i: "{{ iter.i }}"}, code: "result = [f'{i}' * 1000] * 200"}
  - {name: use, kind: noop, args: {first: "{{ again[0][:5] }}", many: "{{ again }}"}}
"""


def test_stored_values_are_read_to_decide_again(noetl: InProcessCommand, tmp_path: Path) -> None:
    folder = Path.cwd()
    (folder / "large.yaml").write_text(LARGE)
    assert noetl("run", "large.yaml", "-q").code == 0
    verification = noetl("executions", "verify", "latest", "-o", "json").json
    assert (verification["ok"], verification["unjudged"], verification["notes"]) == (True, 0, [])
    shutil.move(folder / ".noetl" / "results", tmp_path / "elsewhere")
    without = noetl("executions", "verify", "latest", "-o", "json").json
    assert without["ok"]
    assert without["unjudged"] > 0
    assert "unreadable stored values" in without["notes"][0]
