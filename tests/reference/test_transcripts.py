"""The sessions in the documentation are what really happens."""

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.tools.host.worker_tools import ENGINE_KINDS
from noetl.tools.kind_registry import BUILTIN
from tests.pages import FENCE, blocks_of
from tests.reference.transcripts import ROOT, Command, SessionFolder, commands_of


@pytest.fixture
def session(tmp_path: Path) -> SessionFolder:
    shutil.copytree(ROOT / "examples", tmp_path / "shop" / "examples")
    return SessionFolder(tmp_path / "shop")


def test_the_quickstart(session: SessionFolder) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
    (playbook,) = (block for block in blocks_of(page, "yaml") if block.startswith("apiVersion"))
    file = session.folder / "orders.yaml"
    wrong = playbook.replace("kind: python", "kind: pyhton").replace(
        "- step: approve\n          when", "- step: aprove\n          when"
    )
    for command in commands_of(page):
        file.write_text(wrong if command.text == "noetl validate orders.yaml" else playbook, "utf-8")
        session.check(command)
    assert (session.folder / "what_happened.svg").is_file()


def test_the_page_on_python(session: SessionFolder) -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    fences = FENCE.findall(page)
    programs = [
        (text, after[1])
        for (kind, text), after in itertools.pairwise(fences)
        if (kind, after[0]) == ("python", "text")
    ]
    assert len(programs) == 5
    for program, expected in programs:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=session.folder,
            env=session.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == (expected, "")


def test_the_page_on_operations(session: SessionFolder) -> None:
    for command in commands_of((ROOT / "docs" / "operations.md").read_text("utf-8")):
        session.check(command)


def test_the_page_on_credentials(session: SessionFolder) -> None:
    session.environment["PGPASSWORD"] = "correct horse"
    for command in commands_of((ROOT / "docs" / "credentials.md").read_text("utf-8")):
        session.check(command)


def test_the_readme(session: SessionFolder) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    (playbook,) = blocks_of(page, "yaml")
    (session.folder / "prices.yaml").write_text(playbook, "utf-8")
    for command in commands_of(page):
        session.check(command)
    plain = [line[4:] for line in page.splitlines() if line.startswith("    scripts/")]
    assert plain == ["scripts/noetl run examples/quickstart.yaml", "scripts/test"]
    session.check(Command(plain[0], ["…"]))


def test_the_readme_names_every_kind_and_all_of_them_run() -> None:
    page = " ".join((ROOT / "README.md").read_text("utf-8").split())
    sentence = next(part for part in page.split(". ") if "The kinds are `" in part)
    assert set(re.findall(r"`([a-z0-9]+)`", sentence)) == {kind.name for kind in BUILTIN}
    assert all(kind.name in ENGINE_KINDS or kind.implementation for kind in BUILTIN)
