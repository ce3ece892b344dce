"""Results on the command line: objects go to files as they are, and bodies expire."""

import json
import re
from pathlib import Path

from tests.executions.in_process_command import InProcessCommand

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
FILE = HEAD + "- step: start\n  tool: [{get: {kind: file, action: get, url: large.bin}}]\n"
MAKE = 'kind: python, code: "result = list(range(30000))"'


def test_an_object_is_written_to_a_file_as_it_is(noetl: InProcessCommand, tmp_path: Path) -> None:
    data = bytes(range(256)) * 40_000
    (tmp_path / "large.bin").write_bytes(data)
    (tmp_path / "p.yaml").write_text(FILE)
    assert noetl("run", "p.yaml").code == 0
    ran = noetl("executions", "result", "latest", "start", "-f", "out.bin", "-o", "json")
    assert (ran.code, ran.json["bytes"]) == (0, len(data))
    assert (tmp_path / "out.bin").read_bytes() == data
    reference = json.loads(noetl("executions", "result", "latest").out)
    assert (reference["size"], reference["name"], reference["preview"]) == (len(data), "large.bin", "")
    assert reference["media_type"] == "application/octet-stream"


def test_a_body_whose_time_is_over_is_dropped(noetl: InProcessCommand, tmp_path: Path) -> None:
    text = f"{HEAD}- step: start\n  tool: [{{t: {{{MAKE}, spec: {{result: {{ttl: 0}}}}}}}}]\n"
    (tmp_path / "p.yaml").write_text(text)
    assert noetl("run", "p.yaml").code == 0
    pruned = noetl("store", "prune", "-o", "json").json
    assert pruned["executions"] == []
    ran = noetl("executions", "result", "latest")
    assert ran.code != 0
    assert re.search(r"\(\d[\d,]* bytes\) expired at 20\d\d-", ran.err)
    assert "Traceback" not in ran.err
    assert noetl("executions", "show", "latest").code == 0


def test_named_stores_come_from_the_settings(noetl: InProcessCommand, tmp_path: Path) -> None:
    text = f"{HEAD}- step: start\n  tool: [{{t: {{{MAKE}, spec: {{result: {{store: db}}}}}}}}]\n"
    (tmp_path / "p.yaml").write_text(text)
    ran = noetl("run", "p.yaml")
    assert ran.code != 0
    assert "there is no result store `db`" in ran.err
    assert not (tmp_path / ".noetl").exists()
    (tmp_path / "noetl.toml").write_text('result_stores = ["db=store:"]\n')
    assert noetl("run", "p.yaml").code == 0
    assert len(json.loads(noetl("executions", "result", "latest").out)) == 30_000
    assert not [path for path in (tmp_path / ".noetl" / "results").rglob("*") if path.is_file()]
    (tmp_path / "noetl.toml").write_text('result_stores = ["db=what:"]\n')
    ran = noetl("run", "p.yaml")
    assert ran.code != 0
    assert "`what:` is no place for results" in ran.err
