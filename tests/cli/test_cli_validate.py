import json
from pathlib import Path

from tests.cli.command_line import BROKEN, DRAFT, VALID, WARNED, run, run_on_terminal


def test_a_valid_playbook_exits_0(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(VALID)
    ran = run("validate", "a.yaml", cwd=tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "1 file, 0 errors, 0 warnings\n", "")
    assert run("validate", "a.yaml", "-o", "json", cwd=tmp_path).json == {"ok": True, "problems": []}


def test_a_problem_shows_its_line_and_a_caret_under_its_column(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    ran = run("validate", "a.yaml", cwd=tmp_path)
    assert ran.code == 2
    first, source, caret, *_, summary = ran.out.splitlines()
    assert first.startswith("a.yaml:3:1  error duplicate-key  ")
    assert (source, caret) == ("    3 | kind: Playbook", "      | ^")
    assert summary == "1 file, 1 error, 0 warnings"


def test_json_has_every_field_of_a_problem_and_the_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    ran = run("validate", "a.yaml", "-o", "json", cwd=tmp_path)
    assert (ran.code, ran.err) == (2, "")
    assert ran.json["ok"] is False
    assert set(ran.json["error"]) == {"code", "message", "hint"}
    (problem,) = ran.json["problems"]
    assert list(problem) == ["file", "line", "column", "code", "severity", "message", "hint"]
    assert (problem["file"], problem["line"], problem["column"]) == ("a.yaml", 3, 1)


def test_warnings_count_only_when_strict(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(WARNED)
    lenient, strict = (
        run("validate", "a.yaml", cwd=tmp_path),
        run("validate", "--strict", "a.yaml", cwd=tmp_path),
    )
    assert (lenient.code, strict.code) == (0, 2)
    assert lenient.out == strict.out
    assert lenient.out.endswith("1 file, 0 errors, 1 warning\n")


def test_standard_input(tmp_path: Path) -> None:
    assert run("validate", "-", cwd=tmp_path, stdin=VALID).code == 0
    ran = run("validate", "-", cwd=tmp_path, stdin=BROKEN)
    assert ran.code == 2
    assert ran.out.startswith("<stdin>:3:1  ")
    assert run("validate", "-", cwd=tmp_path, stdin=b"\xff\xfe").code == 2


def test_a_missing_file_does_not_keep_the_others_from_being_checked(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    ran = run("validate", "missing.yaml", "broken.yaml", "-o", "json", cwd=tmp_path)
    assert ran.code == 2
    missing, broken = ran.json["problems"]
    assert (missing["file"], missing["code"]) == ("missing.yaml", "unreadable")
    assert (broken["file"], broken["code"]) == ("broken.yaml", "duplicate-key")


def test_files_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"apiVersion: noetl.io/v2\nname: caf\xe9\n")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    ran = run("validate", "latin.yaml", "loop.yaml", ".", cwd=tmp_path)
    assert ran.code == 2
    latin, loop, _, summary = ran.out.splitlines()[0], ran.out.splitlines()[2], "", ran.out.splitlines()[-1]
    assert latin.startswith("latin.yaml:1:1  error unreadable  ")
    assert "UTF-8" in latin
    assert loop.startswith("loop.yaml:1:1  error unreadable  ")
    assert summary == "2 files, 2 errors, 0 warnings"
    assert "Traceback" not in ran.err


def test_a_directory_means_the_playbooks_below_it(tmp_path: Path) -> None:
    for path, text in {
        "flows/b.yaml": VALID,
        "flows/deep/a.yml": BROKEN,
        "flows/json.yaml": json.dumps({"apiVersion": "noetl.io/v2"}),
        "flows/compose.yaml": "services: {}\n",
        "flows/nested.yaml": "data:\n  apiVersion: noetl.io/v2\n",
        "flows/notes.txt": "apiVersion: noetl.io/v2\n",
        "flows/.hidden/c.yaml": BROKEN,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    ran = run("validate", "flows", "flows/b.yaml", "-o", "json", cwd=tmp_path)
    assert ran.code == 2
    assert {problem["file"] for problem in ran.json["problems"]} == {"flows/deep/a.yml", "flows/json.yaml"}
    assert ran.json["error"]["message"].startswith("3 files, ")
    assert "2 YAML files" in ran.err


def test_a_directory_without_playbooks_is_a_mistake(tmp_path: Path) -> None:
    ran = run("validate", ".", "-o", "json", cwd=tmp_path)
    assert (ran.code, ran.json["error"]["code"]) == (2, "no-playbook")


def test_the_dialect_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "draft.yaml").write_text(DRAFT)
    assert run("validate", "draft.yaml", cwd=tmp_path).code == 2
    assert run("validate", "--dialect", "draft", "draft.yaml", cwd=tmp_path).code == 0


def test_a_kind_can_be_allowed_by_flag_and_by_environment(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(VALID.replace("noop", "telegraph"))
    assert run("validate", "a.yaml", cwd=tmp_path).code == 2
    assert run("validate", "--allow-kind", "telegraph", "a.yaml", cwd=tmp_path).code == 0
    assert run("validate", "a.yaml", cwd=tmp_path, env={"NOETL_ALLOW_KINDS": "x, telegraph"}).code == 0


def test_colour_is_for_terminals_that_want_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    piped = run("validate", "a.yaml", cwd=tmp_path)
    ran = run_on_terminal("validate", "a.yaml", cwd=tmp_path)
    refused = run_on_terminal("validate", "a.yaml", cwd=tmp_path, env={"NO_COLOR": "1"})
    dumb = run_on_terminal("validate", "a.yaml", cwd=tmp_path, env={"TERM": "dumb"})
    assert "\x1b" not in piped.out
    assert "\x1b[31m" in ran.out
    assert refused.out == dumb.out == piped.out
    assert (piped.code, ran.code) == (2, 2)


def test_a_document_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN.replace("kind: Playbook\n", 'kind: "\x9b31m"\n'))
    (tmp_path / "\x1b[31m.yaml").write_text(BROKEN)
    ran = run("validate", "a.yaml", "\x1b[31m.yaml", cwd=tmp_path)
    assert ran.code == 2
    assert all(character.isprintable() or character == "\n" for character in ran.out)


def test_a_name_that_is_not_utf_8_is_still_json(tmp_path: Path) -> None:
    name = b"caf\xe9.yaml".decode(errors="surrogateescape")
    (tmp_path / name).write_text(BROKEN)
    ran = run("validate", name, "-o", "json", cwd=tmp_path)
    assert ran.json["problems"][0]["file"] == name
    assert run("validate", name, cwd=tmp_path).code == 2
