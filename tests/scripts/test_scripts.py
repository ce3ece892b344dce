"""The set-up that both scripts share, where it must refuse; where it works, it runs these tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that holds only the scripts, in a directory with a space in its name."""
    folder = tmp_path / "my project"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    (folder / "pyproject.toml").write_text("this is no TOML\n")
    return folder


@pytest.mark.parametrize("script", ["scripts/noetl", "scripts/test", ".ci/run"])
def test_without_a_python_the_scripts_say_so(script: str, project: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cat", "cksum", "dirname", "readlink", "sh"):
        (tools / tool).symlink_to(shutil.which(tool) or "")
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    ran = subprocess.run(
        [project / script], env={"PATH": str(tools)}, capture_output=True, text=True, check=False, cwd="/"
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == "noetl: no Python 3.11 or newer with the venv module on the PATH\n"
    assert not (project / ".venv").exists()


@pytest.mark.timeout(300)
def test_an_installation_that_fails_shows_why_and_is_tried_again(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("my project/scripts/noetl")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        ran = subprocess.run(
            [link, "--version"], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (3, "")
        assert ran.stderr.startswith(f"noetl: setting up {project / '.venv'}\n")
        assert ran.stderr.endswith("noetl: the installation failed\n")
        assert ran.stderr.count("\n") > 2
    assert not list((project / ".venv").glob(".ready-*"))


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        (["--version"], "examples"),
        (["run", "examples/retry.yaml"], "examples"),
        (["run", "examples/quantum_sweep.yaml", "--set", "shots=1"], "examples,quantum"),
        (["tools", "show", "quantum"], "examples"),
    ],
)
def test_what_the_examples_need_is_installed_once(arguments: list[str], extras: str, project: Path) -> None:
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f'#!/bin/sh\necho "$*" >>"{project}/asked"\n')
    (programs / "noetl").write_text('#!/bin/sh\necho "$*"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    for wanted in (arguments, arguments, ["validate", "a.yaml"]):
        ran = subprocess.run(
            [project / "scripts/noetl", *wanted], capture_output=True, text=True, check=True, cwd="/"
        )
        assert ran.stdout == " ".join(wanted) + "\n"
    installed = [line for line in (project / "asked").read_text().splitlines() if "pip install" in line]
    assert installed == [f"-m pip install -qq --editable .[{extras}]"]
