"""A playbook that was read before is known: it is the same in every part, and read anew if anything differs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import noetl
from noetl.engine.catalog.known_playbooks import MOST_KEPT, KnownPlaybooks
from noetl.engine.catalog.playbook_record import PlaybookSource, encode_source
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.loader import examine
from tests.playbook_parts import EVERYTHING, EXAMPLES, everything

PACKAGE = Path(noetl.__file__).parent
DEAD_ARC = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: w, path: w}
workflow:
- step: start
  tool: {kind: noop, args: {rows: 3}}
  next: {arcs: [{step: load, when: "{{ event.name == 'step.dnoe' }}"}]}
- step: load
  tool: {kind: noop}
"""
NOOP = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a, path: a}
workflow:
- step: start
  tool: {kind: noop, args: {a: 1}}
"""


def read(folder: Path, source: PlaybookSource, *, allow_kinds: tuple[str, ...] = ()) -> PlaybookDocument:
    """The document as a new process reads it."""
    return Playbooks(allow_kinds=allow_kinds, known=KnownPlaybooks(folder)).read(source)


def is_known(folder: Path, source: PlaybookSource) -> bool:
    return KnownPlaybooks(folder).find(source) is not None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_known_as_it_was_read(path: Path, tmp_path: Path) -> None:
    source = PlaybookSource(path.read_text(), path.name, str(path))
    fresh, folder = read(tmp_path / "a", source), tmp_path / "a"
    # One that names the quantum tool is never known: its checks look at what is installed.
    assert is_known(folder, source) == ("quantum" not in source.text)
    again = read(folder, source)
    assert list(everything(again.playbook)) == list(everything(fresh.playbook))
    assert again.encode() == fresh.encode() == encode_source(source, fresh.playbook)


def test_every_part_of_the_language_is_known_as_it_was_read(tmp_path: Path) -> None:
    source = PlaybookSource(EVERYTHING, "all.yaml")
    examined = examine(source.text, source.name)
    assert examined.playbook is not None
    assert examined.playbook.warnings
    read(tmp_path, source)
    assert is_known(tmp_path, source)
    assert list(everything(read(tmp_path, source).playbook)) == list(everything(examined.playbook))


@pytest.mark.parametrize(
    "other",
    [
        PlaybookSource(NOOP.replace("a: 1", "a: 2"), "a.yaml", "/a.yaml"),
        PlaybookSource(NOOP, "b.yaml", "/a.yaml"),
        PlaybookSource(NOOP, "a.yaml", "/b.yaml"),
        PlaybookSource(NOOP, "a.yaml", "/a.yaml", "draft"),
    ],
    ids=["text", "name", "file", "dialect"],
)
def test_another_document_is_not_known(other: PlaybookSource, tmp_path: Path) -> None:
    read(tmp_path, PlaybookSource(NOOP, "a.yaml", "/a.yaml"))
    assert not is_known(tmp_path, other)
    assert read(tmp_path, other).source == other


def test_a_damaged_record_is_not_read(tmp_path: Path) -> None:
    source = PlaybookSource(NOOP, "a.yaml")
    fresh = read(tmp_path, source)
    (record,) = tmp_path.iterdir()
    intact = record.read_bytes()
    for damaged in (b"", intact[:-1], intact.replace(b'"a":1', b'"a":2'), intact[:16] + b"{}"):
        record.write_bytes(damaged)
        assert not is_known(tmp_path, source)
    assert read(tmp_path, source).playbook == fresh.playbook
    assert record.read_bytes() == intact


def test_a_record_under_the_name_of_another_is_not_read(tmp_path: Path) -> None:
    source, other = PlaybookSource(NOOP, "a.yaml"), PlaybookSource(DEAD_ARC, "a.yaml")
    read(tmp_path, source)
    (record,) = tmp_path.iterdir()
    read(tmp_path, other)
    (swapped,) = set(tmp_path.iterdir()) - {record}
    record.replace(swapped)
    assert not is_known(tmp_path, other)


def test_a_record_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    source = PlaybookSource(NOOP, "a.yaml")
    read(tmp_path, source)
    (record,) = tmp_path.iterdir()
    for mode, known in ((0o620, False), (0o602, False), (0o600, True)):
        record.chmod(mode)
        assert is_known(tmp_path, source) == known


def test_what_uses_a_kind_of_others_is_never_known(tmp_path: Path) -> None:
    source = PlaybookSource(NOOP.replace("kind: noop", "kind: theirs"), "a.yaml")
    read(tmp_path, source, allow_kinds=("theirs",))
    assert not is_known(tmp_path, source)


def test_what_uses_a_kind_that_is_declared_here_is_never_known(tmp_path: Path) -> None:
    @noetl.tool("declared_for_known_playbooks")
    async def declared() -> None:
        """Does nothing."""

    for kind in "declared_for_known_playbooks", "noop":
        source = PlaybookSource(NOOP.replace("{kind: noop, args: {a: 1}}", f"{{kind: {kind}}}"), "a.yaml")
        read(tmp_path, source)
        assert is_known(tmp_path, source) == (kind == "noop")


def test_no_home_is_made_to_keep_a_document(tmp_path: Path) -> None:
    source = PlaybookSource(NOOP, "a.yaml")
    home = tmp_path / ".noetl"
    playbooks = Playbooks(known=KnownPlaybooks(home / "playbooks"))
    playbooks.read(source)
    assert not home.exists()
    home.mkdir()
    playbooks.read(source)
    assert is_known(home / "playbooks", source)


def test_old_records_go(tmp_path: Path) -> None:
    known = KnownPlaybooks(tmp_path)
    sources = [PlaybookSource(NOOP, f"{number}.yaml") for number in range(MOST_KEPT + 1)]
    for number, source in enumerate(sources):
        known.keep(source, b"record", ())
        for entry in os.scandir(tmp_path):
            if entry.stat().st_mtime_ns > 10**18:
                os.utime(entry, (number, number))
    assert len(list(tmp_path.iterdir())) == MOST_KEPT + 1 - MOST_KEPT // 2
    assert not is_known(tmp_path, sources[0])


def test_records_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "playbooks"
    read(folder, PlaybookSource(NOOP, "a.yaml"))
    (record,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, record.stat().st_mode & 0o777) == (0o700, 0o600)


def run_with(package: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the package in this folder, and the modules that it imported as its last line."""
    code = (
        "import sys\nfrom noetl.cli import main\ntry:\n    main(sys.argv[1:])\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_second_run_reads_no_yaml_and_warns_as_the_first(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(DEAD_ARC)
    first, second = (run_with(PACKAGE, tmp_path, "run", "w.yaml", "-q") for _ in range(2))
    assert first.stdout == second.stdout == "rows: 3\n"
    assert "warning dead-arc" in first.stderr
    assert first.stderr.splitlines()[:-1] == second.stderr.splitlines()[:-1]
    readers = {"yaml", "noetl.dsl.compiler", "noetl.dsl.checks"}
    assert readers <= set(first.stderr.split())
    assert not readers & set(second.stderr.split())


def test_other_code_reads_a_document_anew(tmp_path: Path) -> None:
    package = tmp_path / "src" / "noetl"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "w.yaml").write_text(DEAD_ARC)
    assert "is never taken" in run_with(package, tmp_path, "run", "w.yaml", "-q").stderr
    check = next(file for file in (package / "dsl").rglob("*.py") if "is never taken: " in file.read_text())
    check.write_text(check.read_text().replace("is never taken: ", "leads nowhere: "))
    assert "leads nowhere" in run_with(package, tmp_path, "run", "w.yaml", "-q").stderr
    known = run_with(package, tmp_path, "run", "w.yaml", "-q").stderr
    assert ("leads nowhere" in known, "yaml" in known.split()) == (True, False)
