"""Results on the command line: objects go to files as they are, and bodies expire."""

import json
import re
from pathlib import Path

import pytest

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


GROWING = (
    HEAD.replace("workflow:", "workload: {n: 1}\nworkflow:")
    + """- step: start
  tool: [{t: {kind: python, args: {n: "{{ workload.n }}"}, code: "result = ['x' * 100] * n"}}]
"""
)


def test_the_shape_of_a_printed_result_does_not_change_as_it_grows(
    noetl: InProcessCommand, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    for count in (1, 600, 700, 20_000):
        ran = noetl("run", "p.yaml", "-q", "-o", "json", "--set", f"n={count}")
        assert (ran.code, ran.err) == (0, "")
        assert ran.json["result"] == ["x" * 100] * count
    assert noetl("executions", "show", "latest", "-o", "json").json["result"]["$noetl"] == "ref"
    assert "preview: " in noetl("run", "p.yaml", "-q", "--set", "n=700").out


def test_a_result_above_the_limit_is_its_reference_and_it_is_said_how_to_read_it(
    noetl: InProcessCommand, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    full_size = 103 * 700 + 1
    assert isinstance(noetl("run", "p.yaml", "-o", "json", "--set", "n=700").json["result"], list)
    for size, is_whole in (
        (f"{full_size}", True),
        (f"{full_size - 1}", False),
        ("70KiB", False),
        ("0", False),
        ("1 MiB", True),
    ):
        ran = noetl("run", "p.yaml", "-q", "-o", "json", "--set", "n=700", "--max-result", size)
        assert ran.code == 0
        result = ran.json["result"]
        if is_whole:
            assert (len(result), ran.err) == (700, "")
            continue
        assert (result["$noetl"], result["length"]) == ("ref", 700)
        assert result["preview"].startswith('["xxx')
        assert "(--max-result)" in ran.err
        assert f"noetl executions result {ran.json['execution_id']} -f OUT" in ran.err
    small = noetl("run", "p.yaml", "-q", "-o", "json", "--set", "n=3", "--max-result", "0")
    assert (len(small.json["result"]), small.err) == (3, ""), "what stands in the event is printed as ever"
    assert noetl("executions", "result", "latest", "-f", "out.json").code == 0
    assert json.loads((tmp_path / "out.json").read_text()) == ["x" * 100] * 3


def test_a_mebibyte_is_more_than_a_million_bytes(noetl: InProcessCommand, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    ran = noetl("run", "p.yaml", "-q", "-o", "json", "--set", "n=10000", "--max-result", "1MiB")
    assert (len(ran.json["result"]), ran.err) == (10_000, "")


def test_a_part_of_something_stored_counts_as_what_it_takes(noetl: InProcessCommand, tmp_path: Path) -> None:
    text = GROWING.replace(
        "workload:", 'executor: {kind: local, spec: {output: {a: "{{ start.b }}"}}}\nworkload:'
    )
    (tmp_path / "p.yaml").write_text(
        text.replace("result = ['x' * 100] * n", "result = {'b': ['x' * 100] * n}")
    )
    ran = noetl("run", "p.yaml", "-q", "-o", "json", "--set", "n=700", "--max-result", "70KiB")
    assert ran.json["result"]["a"]["$noetl"] == "ref"
    assert "(--max-result)" in ran.err
    ran = noetl("run", "p.yaml", "-q", "-o", "json", "--set", "n=700")
    assert len(ran.json["result"]["a"]) == 700


def test_a_step_is_read_like_the_execution(noetl: InProcessCommand, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    assert noetl("run", "p.yaml", "-q", "--set", "n=700").code == 0
    assert len(noetl("executions", "result", "latest", "start", "-o", "json").json["result"]) == 700
    assert noetl("executions", "result", "latest", "start", "-f", "step.json").code == 0
    assert len(json.loads((tmp_path / "step.json").read_text())) == 700


def test_large_parts_of_a_result_are_printed_too_and_secrets_in_them_are_not(
    noetl: InProcessCommand, tmp_path: Path
) -> None:
    code = "result = {'token': 'hunter2hunter2', 'rows': ['x' * 100] * 700}"
    text = f"""apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: p, path: p}}
executor: {{kind: local, spec: {{output: {{big: "{{{{ start }}}}", small: 1}}}}}}
workflow:
- step: start
  tool: [{{t: {{kind: python, code: "{code}", spec: {{secret: [token]}}}}}}]
"""
    (tmp_path / "p.yaml").write_text(text)
    ran = noetl("run", "p.yaml", "-q", "-o", "json")
    assert ran.code == 0
    assert ran.json["result"]["small"] == 1
    assert ran.json["result"]["big"] == {"token": "***", "rows": ["x" * 100] * 700}
    assert "hunter2" not in ran.out + ran.err


def test_what_resumes_or_copies_an_execution_prints_its_result_as_run_does(
    noetl: InProcessCommand, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    assert noetl("run", "p.yaml", "-q", "--set", "n=700").code == 0
    for words in (["run", "--resume", "latest"], ["executions", "fork", "latest", "--at", "5"]):
        ran = noetl(*words, "-q", "-o", "json")
        assert (ran.code, len(ran.json["result"]), type(ran.json["result"])) == (0, 700, list)
        short = noetl(*words, "-q", "-o", "json", "--max-result", "10")
        assert (short.json["result"]["$noetl"], short.code) == ("ref", 0)


def test_a_result_that_cannot_be_read_is_its_reference_and_it_is_said_why(
    noetl: InProcessCommand, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    assert noetl("run", "p.yaml", "-q", "--set", "n=700").code == 0
    for path in (tmp_path / ".noetl" / "results").rglob("*"):
        if path.is_file():
            path.unlink()
    ran = noetl("run", "--resume", "latest", "-q", "-o", "json")
    assert (ran.code, ran.json["result"]["$noetl"]) == (0, "ref")
    assert "the result is printed as its reference: " in ran.err


@pytest.mark.parametrize("size", ["", "-1", "16MB", "x", "1.5MiB", "٣", "9" * 40])
def test_what_is_no_size_is_refused(noetl: InProcessCommand, tmp_path: Path, size: str) -> None:
    (tmp_path / "p.yaml").write_text(GROWING)
    ran = noetl("run", "p.yaml", "--max-result", size)
    assert (ran.code, ran.out) == (2, "")
    assert "16MiB" in ran.err
