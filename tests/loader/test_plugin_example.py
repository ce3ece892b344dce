"""The package in `examples/plugin` is built, installed and used like any other."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import CompletedCommand, run
from tests.pages import block_of

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
README = (PLUGIN / "README.md").read_text("utf-8")


PLAYBOOK = block_of(README, "yaml")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package is installed into, without any network."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(folder / "site"), str(folder / "source")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def noetl(site: Path, *arguments: str, cwd: Path) -> CompletedCommand:
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    return run(*arguments, cwd=cwd, env={"PYTHONPATH": os.pathsep.join(filter(None, paths))})


def problems(site: Path, playbook: str, cwd: Path) -> list[tuple[int, int, str, str]]:
    (cwd / "playbook.yaml").write_text(playbook)
    reported = noetl(site, "validate", "playbook.yaml", "-o", "json", cwd=cwd).json["problems"]
    return [(problem["line"], problem["column"], problem["code"], problem["message"]) for problem in reported]


def test_a_playbook_runs_with_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "marathon.yaml").write_text(PLAYBOOK)
    ran = noetl(site, "run", "marathon.yaml", "-q", "-o", "json", cwd=tmp_path)
    assert (ran.code, ran.json["status"], ran.json["result"]) == (
        0,
        "completed",
        json.loads(block_of(README, "json")),
    )


def test_it_is_listed_and_shown_with_its_package(site: Path, tmp_path: Path) -> None:
    listed = noetl(site, "tools", "list", "-o", "json", cwd=tmp_path).json["tools"]
    assert listed[-1] == {
        "kind": "convert",
        "summary": "Converts an amount from one unit to another.",
        "effect": "pure",
        "from": "noetl-units 1.0",
        "extra": None,
        "missing": [],
        "runs": True,
    }
    page = noetl(site, "tools", "show", "convert", cwd=tmp_path).out
    assert "from       noetl-units 1.0\n" in page
    assert "  to: text, required, also spelt unit\n      The unit that is wanted.\n" in page
    assert "  digits: whole number from 0 to 15, default 3\n" in page
    assert "  from: mile\n" in page


def test_its_inputs_are_in_the_json_schema(site: Path, tmp_path: Path) -> None:
    schema = noetl(site, "schema", cwd=tmp_path).json["$defs"]["convert task"]
    assert schema["properties"]["from"] == {"description": "Its unit, such as `km`.", "type": "string"}
    assert {"amount", "from"} <= set(schema["required"])


def test_its_inputs_and_its_own_check_are_told_with_line_and_column(site: Path, tmp_path: Path) -> None:
    assert problems(site, PLAYBOOK, tmp_path) == []
    wrong = PLAYBOOK.replace("amount:", "amuont:").replace("to: km", "to: kg")
    assert problems(site, wrong, tmp_path) == [
        (10, 9, "unknown-key", "a task of kind `convert` has no key `amuont`"),
        (12, 9, "bad-input", "a length is no mass"),
    ]
    assert problems(site, PLAYBOOK.replace("digits: 1", "digits: 99"), tmp_path)[0][:3] == (
        13,
        25,
        "bad-value",
    )


def test_what_only_running_can_tell_is_an_error_of_the_task(site: Path, tmp_path: Path) -> None:
    late = PLAYBOOK.replace("to: km", 'to: "{{ workload.unit }}"').replace("26.2188", "1, unit: furlong")
    (tmp_path / "late.yaml").write_text(late)
    ran = noetl(site, "run", "late.yaml", "-q", "-o", "json", cwd=tmp_path)
    error = ran.json["error"]
    assert (ran.code, error["kind"], error["message"]) == (1, "input", "there is no unit `furlong`")


def test_without_the_package_the_kind_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "marathon.yaml").write_text(PLAYBOOK)
    ran = run("validate", "marathon.yaml", cwd=tmp_path)
    assert (ran.code, "there is no tool kind `convert`" in ran.out) == (2, True)
