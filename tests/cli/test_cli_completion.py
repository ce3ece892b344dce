"""Completion, driven the way the shells drive it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import run


def complete(line: str, cwd: Path) -> list[str]:
    """What bash is told when Tab is pressed at the end of the line."""
    words = line.split(" ")
    env = {
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "_NOETL_COMPLETE": "bash_complete",
    }
    return run(cwd=cwd, env=env).out.split()


def test_commands_are_completed(tmp_path: Path) -> None:
    assert complete("noetl va", tmp_path) == ["plain,validate"]
    assert complete("noetl config s", tmp_path) == ["plain,show"]


def test_options_and_their_values_are_completed(tmp_path: Path) -> None:
    assert complete("noetl validate --str", tmp_path) == ["plain,--strict"]
    assert complete("noetl graph --format m", tmp_path) == ["plain,mermaid"]
    assert complete("noetl validate -o j", tmp_path) == ["plain,json"]
    assert complete("noetl completion z", tmp_path) == ["plain,zsh"]


@pytest.mark.parametrize(
    "line", ["noetl validate a", "noetl graph a", "noetl upgrade a", "noetl init a", "noetl schema -f a"]
)
def test_file_names_are_left_to_the_shell(line: str, tmp_path: Path) -> None:
    assert complete(line, tmp_path) == ["file,a"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_how_to_install_it(shell: str, tmp_path: Path) -> None:
    ran = run("completion", shell, cwd=tmp_path)
    assert ran.code == 0
    assert "_NOETL_COMPLETE" in ran.out
    assert ran.out.splitlines()[-1].startswith("# To install: ")
    as_json = run("completion", shell, "-o", "json", cwd=tmp_path).json
    assert list(as_json) == ["shell", "script", "install"]


def test_bash_accepts_the_script(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash, "bash is needed to test its completion"
    script = run("completion", "bash", cwd=tmp_path).out
    program = f"{script}\ncomplete -p noetl\n"
    child = subprocess.run([bash, "--norc"], input=program, capture_output=True, text=True, check=True)
    assert "_noetl_completion noetl" in child.stdout
