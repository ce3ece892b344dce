"""What is installed from a distribution has the page, and nobody who installs it builds one."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from noetl.web.assets import PAGE

ROOT = Path(__file__).parents[2]
PREFIX = "noetl/web/page/"


def _build(target: str, source: Path, folder: Path, **environment: str) -> Path:
    """The one file of this kind that is made of a tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(
        command, cwd=source, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return file


def _page_files(names: Iterable[str]) -> set[str]:
    return {name.partition(PREFIX)[2] for name in names if PREFIX in name}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tarfile.TarFile]:
    with tarfile.open(_build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))) as archive:
        yield archive


def test_an_sdist_has_the_page_and_its_sources_and_no_packages(sdist: tarfile.TarFile) -> None:
    names = sdist.getnames()
    built = {str(path.relative_to(PAGE)) for path in PAGE.rglob("*") if path.is_file()}
    assert "index.html" in built
    assert _page_files(names) == built
    assert any(name.endswith("/web/src/main.tsx") for name in names)
    assert not any("/node_modules/" in name for name in names)


def test_a_wheel_of_an_sdist_has_the_page_without_a_registry(sdist: tarfile.TarFile, tmp_path: Path) -> None:
    sdist.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    nowhere = "http://127.0.0.1:9"
    wheel = _build("wheel", tree, tmp_path / "wheel", npm_config_registry=nowhere, PIP_INDEX_URL=nowhere)
    with zipfile.ZipFile(wheel) as archive:
        assert _page_files(archive.namelist()) == _page_files(sdist.getnames())
        assert b"assets/" in archive.read(f"{PREFIX}index.html")
    assert not (tree / "web" / "node_modules").exists()
