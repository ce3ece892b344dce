"""`--tools FILE.py`: tools of one's own for every command."""

from pathlib import Path

import pytest

from tests.cli.command_line import CompletedCommand, run

TOOLS = '''\
import noetl
from numbers_beside import FACTOR

print("loading")

@noetl.tool("double")
def double(number: int) -> int:
    """Doubles a number."""
    print("doubling", number)
    return number * FACTOR

@noetl.tool("half")
async def half(number: int) -> float:
    print("token is", number)
    return {"no": number}["yes"]
'''
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: it, path: test/it}
workflow:
  - step: start
    tool: {name: twice, kind: double, number: 4}
"""
FAILING = PLAYBOOK.replace("kind: double", "kind: half")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "mine.py").write_text(TOOLS)
    (folder / "numbers_beside.py").write_text("FACTOR = 2\n")
    (folder / "p.yaml").write_text(PLAYBOOK)
    (folder / "bad.yaml").write_text(FAILING)
    return folder


def with_tools(*arguments: str, cwd: Path) -> CompletedCommand:
    return run(*arguments, "--tools", "mine.py", cwd=cwd)


def test_without_them_the_kind_is_unknown(folder: Path) -> None:
    done = run("validate", "p.yaml", cwd=folder)
    assert done.code == 2
    assert "hint: `--tools` knows those of a file" in done.out


def test_every_command_that_reads_a_playbook_knows_them(folder: Path) -> None:
    done = with_tools("run", "p.yaml", "-o", "json", cwd=folder)
    assert (done.code, done.json["result"]) == (0, 8)
    for arguments in (
        ("validate", "p.yaml", "--strict"),
        ("graph", "p.yaml", "--format", "mermaid"),
        ("graph", "--execution", "latest", "--format", "dot"),
        ("run", "p.yaml", "--dry-run"),
        ("executions", "show", "latest"),
        ("executions", "verify", "latest"),
        ("executions", "replay", "latest"),
        ("executions", "result", "latest"),
        ("executions", "watch", "latest"),
        ("store", "check"),
        ("tools", "show", "double"),
    ):
        done = with_tools(*arguments, cwd=folder)
        assert done.code == 0, (arguments, done.err)
        assert "loading" not in done.out
    assert "Doubles a number." in with_tools("tools", "list", cwd=folder).out
    assert '"double"' in with_tools("schema", cwd=folder).out


def test_a_file_elsewhere_can_import_what_stands_beside_it(folder: Path) -> None:
    (folder / "lib").mkdir()
    for name in ("mine.py", "numbers_beside.py"):
        (folder / name).rename(folder / "lib" / name)
    assert run("run", "p.yaml", "--tools", "lib/mine.py", cwd=folder).out == "8\n"


def test_nothing_is_printed_before_it_is_said_which_execution_it_is(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import noetl\n@noetl.tool('double', effect='pure')\nasync def double(number: int) -> None:\n"
        "    print('doubling', number)\n"
    )
    done = with_tools("run", "p.yaml", "--logs", cwd=folder)
    lines = done.err.splitlines()
    assert lines[0].startswith("execution ")
    assert "start/twice | doubling 4" in lines


def test_an_execution_goes_on_with_them_and_the_report_says_how(folder: Path) -> None:
    failed = with_tools("run", "bad.yaml", cwd=folder)
    assert failed.code == 1
    execution_id = failed.err.split("execution ")[1].split(",")[0]
    assert f"noetl executions retry {execution_id} --tools mine.py  goes on from what failed" in failed.err
    (folder / "mine.py").write_text(TOOLS.replace('{"no": number}["yes"]', "number / 2"))
    retried = with_tools("executions", "retry", execution_id, "-o", "json", cwd=folder)
    assert (retried.code, retried.json["result"]) == (0, 2.0)
    forked = with_tools("executions", "fork", execution_id, "--at", "4", "-o", "json", cwd=folder)
    assert (forked.code, forked.json["result"]) == (0, 2.0)


def test_an_exception_shows_its_last_frames_and_stands_in_the_log(folder: Path) -> None:
    done = with_tools("run", "bad.yaml", cwd=folder)
    line = 1 + TOOLS.split("\n").index('    return {"no": number}["yes"]')
    assert f"  mine.py:{line}:8\n" in done.err
    assert '    return {"no": number}["yes"]' in done.err
    assert f'mine.py", line {line}, in half\n' in done.err
    assert done.err.count("KeyError: 'yes'") == 3  # the step, the error, the end of the traceback
    assert "  printed:\n    token is 4\n\n  traceback:\n" in done.err
    document = with_tools("run", "bad.yaml", "-o", "json", cwd=folder).json
    assert document["error"]["traceback"].endswith("KeyError: 'yes'\n")
    lines = run("executions", "logs", "latest", "-o", "json", cwd=folder).json["lines"]
    assert [each["text"] for each in lines][:2] == ["token is 4", "Traceback (most recent call last):"]
    assert lines[-1]["text"] == "KeyError: 'yes'"


def test_a_secret_in_an_exception_is_masked_everywhere(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import noetl\n@noetl.tool('half')\ndef half(number: str) -> None:\n"
        "    print('token is', number)\n    raise ValueError(f'bad {number}' + 'y' * 3_985)\n"
    )
    (folder / "bad.yaml").write_text(
        FAILING.replace(
            "workflow:", "keychain: [{name: token, kind: env, env: MY_TOKEN}]\nworkflow:"
        ).replace("number: 4", "number: '{{ keychain.token.value }}'")
    )
    secret = "correct-horse-battery"
    done = run("run", "bad.yaml", "--tools", "mine.py", "--logs", cwd=folder, env={"MY_TOKEN": secret})
    assert done.code == 1
    assert "start/twice | token is ***" in done.err
    assert "ValueError: bad ***" in done.err
    assert "battery" not in done.err + done.out
    # What is cut is masked before: a part of the secret would stay.
    for file in (folder / ".noetl").rglob("*"):
        assert not file.is_file() or b"battery" not in file.read_bytes(), file


def test_a_function_that_never_ends_does_not_keep_the_command(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import noetl, threading\n@noetl.tool('half')\ndef half(number: int) -> None:\n"
        "    threading.Event().wait()\n"
    )
    (folder / "bad.yaml").write_text(FAILING.replace("number: 4", "number: 4, spec: {timeout: 0.1}"))
    done = with_tools("run", "bad.yaml", "-o", "json", cwd=folder)
    assert (done.code, done.json["error"]["kind"]) == (1, "timeout")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file mine.py"),
        ("x = 1\n", "mine.py declares no tool"),
        ("x = 1\ny = = 2\n", "mine.py:2: SyntaxError: invalid syntax"),
        (
            "\n\nimport nowhere_at_all\n",
            "mine.py:3: the file cannot be loaded: ModuleNotFoundError: No module",
        ),
        ("raise SystemExit(3)\n", "mine.py:1: the file cannot be loaded: SystemExit: 3"),
        ("open('nothing.txt')\n", "mine.py:1: the file cannot be loaded: FileNotFoundError: "),
        (
            "import noetl\n@noetl.tool('http')\ndef mine() -> None: ...\n",
            "mine.py:2: the file cannot be loaded: KindTaken: the tool kind `http` is built in",
        ),
        (
            "import noetl\n@noetl.tool('mine')\ndef mine(*a: int) -> None: ...\n",
            "mine.py:2: the file cannot be loaded: ToolRefused: `a` of `mine` cannot be given by name",
        ),
    ],
)
def test_a_file_that_is_no_good_is_refused_with_its_line(
    folder: Path, text: str | None, message: str
) -> None:
    if text is None:
        (folder / "mine.py").unlink()
    else:
        (folder / "mine.py").write_text(text)
    done = with_tools("validate", "p.yaml", "-o", "json", cwd=folder)
    assert done.code == 2
    assert done.json["error"]["code"] == "tools"
    assert message in done.json["error"]["message"]
    assert not (folder / ".noetl").exists()
