"""`init`, `schema`, `upgrade`: the commands that write."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.command_line import BROKEN, DRAFT, OLD, VALID, run


def test_the_first_playbook_is_valid(tmp_path: Path) -> None:
    assert run("init", cwd=tmp_path).code == 0
    checked = run("validate", "--strict", "playbook.yaml", cwd=tmp_path)
    assert (checked.code, checked.out) == (0, "1 file, 0 errors, 0 warnings\n")
    assert run("init", "my flow.yaml", "-o", "json", cwd=tmp_path).json == {"file": "my flow.yaml"}
    assert "name: my_flow\n" in (tmp_path / "my flow.yaml").read_text()
    assert run("validate", "--strict", "my flow.yaml", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    "name", ["2024.yaml", "true.yaml", "null.yml", "1e3", "ok.yaml", "名.yaml", "-x.yaml"]
)
def test_the_first_playbook_is_valid_whatever_its_file_is_called(name: str, tmp_path: Path) -> None:
    assert run("init", "--", name, cwd=tmp_path).code == 0
    assert run("validate", "--strict", "--", name, cwd=tmp_path).out == "1 file, 0 errors, 0 warnings\n"


def test_what_to_do_next_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    ran = run("init", "my flow.yaml", cwd=tmp_path)
    assert ran.err == "wrote my flow.yaml; next: noetl validate 'my flow.yaml'\n"


def test_init_does_not_offer_to_replace_a_directory(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    ran = run("init", "flows", cwd=tmp_path)
    assert ran.code == 2
    assert ran.err == "noetl: flows: is a directory\n  hint: name a file in it\n"


def test_init_overwrites_only_when_forced(tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text("mine")
    refused = run("init", cwd=tmp_path)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (tmp_path / "playbook.yaml").read_text() == "mine"
    assert run("init", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "playbook.yaml").read_text() != "mine"


@pytest.mark.parametrize("command", [["init"], ["schema", "-f"]], ids=" ".join)
def test_a_place_that_cannot_be_written_is_said(command: list[str], tmp_path: Path) -> None:
    ran = run(*command, "no/such/place.yaml", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("noetl: no/such/place.yaml: ")


def test_the_schema_is_the_same_on_stdout_and_in_a_file(tmp_path: Path) -> None:
    printed = run("schema", cwd=tmp_path)
    assert printed.json["type"] == "object"
    assert run("schema", "-o", "json", cwd=tmp_path).out == printed.out
    assert run("schema", "-f", "schema.json", cwd=tmp_path).out == ""
    assert (tmp_path / "schema.json").read_text() == printed.out
    assert run("schema", "-f", "schema.json", "-o", "json", cwd=tmp_path).json == {"file": "schema.json"}


def test_a_special_file_is_written_to_not_replaced(tmp_path: Path) -> None:
    ran = run("schema", "-f", "/dev/stderr", cwd=tmp_path)
    assert json.loads(ran.err.rpartition("wrote")[0])["type"] == "object"


def test_upgrade_prints_canonical_yaml(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(OLD)
    ran = run("upgrade", "old.yaml", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "noetl.io/v2" in ran.out
    assert "comments are lost" in ran.err
    assert (tmp_path / "old.yaml").read_text() == OLD
    assert run("validate", "-", cwd=tmp_path, stdin=ran.out).code == 0
    assert run("upgrade", "-", cwd=tmp_path, stdin=OLD).out == ran.out
    as_json = run("upgrade", "old.yaml", "-o", "json", cwd=tmp_path).json
    assert as_json == {"file": "old.yaml", "yaml": ran.out, "changed": True}


def test_upgrade_of_a_draft_needs_the_callers_word(tmp_path: Path) -> None:
    (tmp_path / "draft.yaml").write_text(DRAFT)
    refused = run("upgrade", "draft.yaml", cwd=tmp_path)
    assert refused.code == 2
    assert "draft.yaml:9:" in refused.err
    assert refused.out == ""
    assert run("upgrade", "--dialect", "draft", "draft.yaml", cwd=tmp_path).code == 0


def test_a_canonical_playbook_keeps_its_comments(tmp_path: Path) -> None:
    text = VALID + "# mine\n"
    (tmp_path / "new.yaml").write_text(text)
    ran = run("upgrade", "new.yaml", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, text)
    assert "already canonical" in ran.err
    before = os.stat(tmp_path / "new.yaml")
    assert run("upgrade", "--in-place", "new.yaml", "-o", "json", cwd=tmp_path).json["changed"] is False
    assert os.stat(tmp_path / "new.yaml") == before


def test_upgrade_in_place_keeps_mode_and_link_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(OLD)
    (tmp_path / "real.yaml").chmod(0o640)
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    printed = run("upgrade", "link.yaml", cwd=tmp_path).out
    ran = run("upgrade", "--in-place", "link.yaml", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "real.yaml").read_text() == printed
    assert stat.S_IMODE((tmp_path / "real.yaml").stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "real.yaml"]


def test_upgrade_of_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    ran = run("upgrade", "--in-place", "a.yaml", "-o", "json", cwd=tmp_path)
    assert (ran.code, ran.json["error"]["code"]) == (2, "playbook-invalid")
    assert ran.json["problems"][0]["code"] == "duplicate-key"
    assert (tmp_path / "a.yaml").read_text() == BROKEN
    assert run("upgrade", "missing.yaml", "-o", "json", cwd=tmp_path).json["error"]["code"] == "unreadable"
