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


def python_that_makes_one_environment(folder: Path) -> Path:
    """Where it is. Others are copies of the first, because pip is installed for seconds."""
    python, made = folder / "programs" / "python3.13", folder / "made"
    python.parent.mkdir()
    python.write_text(
        f"""#!/bin/sh
if [ "$1 $2" = '-m venv' ]; then
  [ -d "{made}" ] || "{sys.executable}" -m venv "{made}" && exec cp -R "{made}/." "$3"
fi
exec "{sys.executable}" "$@"
"""
    )
    python.chmod(0o755)
    return python.parent


@pytest.mark.timeout(300)
def test_an_installation_that_fails_shows_why_and_is_tried_again(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("my project/scripts/noetl")
    path = f"{python_that_makes_one_environment(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        ran = subprocess.run(
            [link, "--version"], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (3, "")
        assert ran.stderr.startswith(f"noetl: setting up {project / '.venv'}\n")
        assert ran.stderr.endswith("noetl: the installation failed\n")
        assert ran.stderr.count("\n") > 2
    assert not list((project / ".venv").glob(".ready-*"))


QUANTUM = str(ROOT / "examples" / "quantum_sweep.yaml")
RETRY = str(ROOT / "examples" / "retry.yaml")


def prepared_scripts(project: Path, *, installs: bool = True) -> None:
    """A `.venv` whose Python writes down what it shall install, and whose noetl says its arguments."""
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(
        f"""#!/bin/sh
case $* in
  *quantum]) echo "$* retries $PIP_RETRIES" >>"{project}/asked"; exit {0 if installs else 1} ;;
  -m*) echo "$*" >>"{project}/asked" ;;
  *) exec "{sys.executable}" "$@" ;;
esac
"""
    )
    (programs / "noetl").write_text('#!/bin/sh\necho "$*"\n')
    for program in programs.iterdir():
        program.chmod(0o755)


def run_noetl(project: Path, arguments: list[str], folder: Path) -> str:
    """What the script says on stderr."""
    ran = subprocess.run(
        [project / "scripts/noetl", *arguments], capture_output=True, text=True, check=True, cwd=folder
    )
    assert ran.stdout == " ".join(arguments) + "\n"
    return ran.stderr


def installations(project: Path) -> list[str]:
    lines = (project / "asked").read_text().splitlines()
    return [line.removeprefix("-m pip install -qq --editable ") for line in lines if "pip install" in line]


@pytest.mark.parametrize(
    ("arguments", "installed"),
    [
        (["--version"], [".[examples]"]),
        (["run", RETRY], [".[examples]"]),
        (["run", RETRY, "--set", "topic=quantum", "--label", "quantum=1"], [".[examples]"]),
        (["run", "quantum.yaml"], [".[examples]"]),
        (["run", "missing_quantum.yaml"], [".[examples]"]),
        (["run", QUANTUM, "--set", "shots=1"], [".[examples]", ".[examples,quantum] retries 0"]),
        (["run", "--set", "shots=1", "sweep.yaml"], [".[examples]", ".[examples,quantum] retries 0"]),
        (["validate", QUANTUM], [".[examples]"]),
        (["tools", "show", "quantum"], [".[examples]"]),
    ],
)
def test_what_the_examples_need_is_installed_once(
    arguments: list[str], installed: list[str], project: Path, tmp_path: Path
) -> None:
    prepared_scripts(project)
    (tmp_path / "quantum.yaml").write_text("# not quantum\n" + Path(RETRY).read_text())
    shutil.copy(QUANTUM, tmp_path / "sweep.yaml")
    for wanted in (arguments, arguments, ["validate", "a.yaml"]):
        run_noetl(project, wanted, tmp_path)
    assert installations(project) == installed


def test_where_qiskit_cannot_be_installed_noetl_runs_nonetheless_and_says_what_is_missing(
    project: Path, tmp_path: Path
) -> None:
    prepared_scripts(project, installs=False)
    for _ in range(2):
        stderr = run_noetl(project, ["run", QUANTUM], tmp_path)
        assert stderr.endswith("noetl: the installation failed\nnoetl: going on without Qiskit\n")
    assert not (project / ".venv" / ".ready-examples,quantum").exists()
    assert (project / ".venv" / ".ready-examples").exists()
