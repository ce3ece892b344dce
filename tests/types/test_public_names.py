"""The types of the package reach whoever installs it."""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import noetl

ROOT = Path(__file__).parents[2]
PUBLIC_NAMES = Path(__file__).with_name("public_names.py")


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A virtual environment with the built package, and all else from the one of the tests."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    folder = tmp_path / "installation"
    venv.create(folder, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    with zipfile.ZipFile(next(tmp_path.glob("noetl-*.whl"))) as wheel:
        wheel.extractall(packages)
    (packages / "rest.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    return folder


@pytest.mark.timeout(300)  # mypy reads the package from its beginning: the built one has no cache
def test_a_program_that_imports_the_built_package_sees_the_types_of_all_public_names(
    installation: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    shutil.copy(PUBLIC_NAMES, program)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path / "cache",
         "--python-executable", installation / "bin" / "python", program.name],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (checked.stdout, checked.returncode) == ("Success: no issues found in 1 source file\n", 0)


def test_the_types_of_all_public_names_are_looked_at() -> None:
    names = set(re.findall(r"\bnoetl\.(\w+)", PUBLIC_NAMES.read_text("utf-8")))
    assert names == set(noetl.__all__)
