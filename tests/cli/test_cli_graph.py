from pathlib import Path

import pytest

from noetl.cli.command.graph import FORMATS
from noetl.graph import FORMATS as DRAWN
from tests.cli.command_line import BROKEN, DRAFT, VALID, run, run_on_terminal


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(VALID)
    return tmp_path


def test_the_command_offers_what_can_be_drawn() -> None:
    assert sorted(FORMATS) == sorted(DRAWN)


def test_svg_goes_to_stdout(playbook: Path) -> None:
    ran = run("graph", "a.yaml", cwd=playbook)
    assert ran.code == 0
    assert ran.out.startswith("<svg")
    assert ran.out.endswith("</svg>\n")
    assert run("graph", "-", cwd=playbook, stdin=VALID).out == ran.out


@pytest.mark.parametrize(
    ("name", "begin"),
    [("a.svg", b"<"), ("a.png", b"\x89PNG"), ("a.dot", b""), ("a.mmd", b""), ("a.PNG", b"\x89PNG")],
)
def test_the_name_tells_the_format(name: str, begin: bytes, playbook: Path) -> None:
    ran = run("graph", "a.yaml", "-f", name, cwd=playbook)
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert (playbook / name).read_bytes().startswith(begin)


def test_a_name_that_tells_nothing_needs_the_format(playbook: Path) -> None:
    assert run("graph", "a.yaml", "-f", "picture", cwd=playbook).code == 2
    assert run("graph", "a.yaml", "-f", "picture", "--format", "dot", cwd=playbook).code == 0


def test_json_holds_the_text_or_names_the_file(playbook: Path) -> None:
    text = run("graph", "a.yaml", "--format", "mermaid", cwd=playbook).out
    inside = run("graph", "a.yaml", "--format", "mermaid", "-o", "json", cwd=playbook)
    assert inside.json == {"format": "mermaid", "content": text}
    beside = run("graph", "a.yaml", "-f", "a.png", "-o", "json", cwd=playbook)
    assert beside.json == {"format": "png", "file": "a.png"}


def test_a_png_is_not_for_terminals_nor_for_json(playbook: Path) -> None:
    ran = run_on_terminal("graph", "a.yaml", "--format", "png", cwd=playbook)
    assert (ran.code, ran.out) == (2, "")
    assert "-f" in ran.err
    assert run("graph", "a.yaml", "--format", "png", "-o", "json", cwd=playbook).code == 2


def test_an_invalid_playbook_shows_its_problems(playbook: Path) -> None:
    (playbook / "broken.yaml").write_text(BROKEN)
    ran = run("graph", "broken.yaml", "-f", "broken.svg", cwd=playbook)
    assert (ran.code, ran.out) == (2, "")
    assert "broken.yaml:3:1  error duplicate-key" in ran.err
    assert not (playbook / "broken.svg").exists()
    as_json = run("graph", "broken.yaml", "-o", "json", cwd=playbook).json
    assert as_json["error"]["code"] == "playbook-invalid"
    assert as_json["problems"][0]["line"] == 3


def test_drafts_and_foreign_kinds_can_be_drawn(playbook: Path) -> None:
    (playbook / "draft.yaml").write_text(DRAFT.replace("kind: noop", "kind: telegraph"))
    arguments = ["graph", "draft.yaml", "--dialect", "draft", "--allow-kind", "telegraph"]
    assert run(*arguments, cwd=playbook).code == 0
