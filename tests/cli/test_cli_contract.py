"""What holds for every command: exit codes, JSON, and no surprises on the way out."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.cli.command_failure import CommandFailure, print_failure
from tests.cli.command_line import BROKEN, COMMAND, VALID, environment, run

EVERY_COMMAND = [
    ["init"],
    ["validate", "valid.yaml"],
    ["schema"],
    ["tools", "list"],
    ["tools", "show", "http"],
    ["graph", "valid.yaml"],
    ["upgrade", "valid.yaml"],
    ["run", "valid.yaml"],
    ["run", "valid.yaml", "--dry-run"],
    ["config", "show"],
    ["completion", "bash"],
    ["executions", "list"],
    ["executions", "prune"],
    ["store", "migrate"],
    ["store", "prune"],
]


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=" ".join)
def test_every_command_prints_one_json_document(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "valid.yaml").write_text(VALID)
    for flag in (["-o", "json"], ["--output=json"]):
        (tmp_path / "playbook.yaml").unlink(missing_ok=True)
        ran = run(*arguments, *flag, cwd=tmp_path)
        assert ran.code == 0, ran.err
        assert isinstance(ran.json, dict)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "json", "no-such-command"],
        ["validate", "--no-such-option", "x.yaml", "-o", "json"],
        ["validate", "--no-such-option", "-ojson"],
        ["validate", "-o", "json"],
        ["completion", "tcsh", "--output", "json"],
        ["config", "shw", "--output=json"],
        ["graph", "x.yaml", "--format", "gif", "-o", "json"],
        ["upgrade", "-", "--in-place", "-o", "json"],
        ["graph", "-o", "json"],
        ["executions", "shw", "x", "-o", "json"],
        ["executions", "show", "-o", "json"],
        ["executions", "list", "--status", "gone", "-o", "json"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_json_too_when_json_was_asked_for(arguments: list[str], tmp_path: Path) -> None:
    ran = run(*arguments, cwd=tmp_path)
    assert (ran.code, ran.err) == (2, "")
    assert set(ran.json) == {"error", "problems"}
    assert set(ran.json["error"]) == {"code", "message", "hint"}
    assert ran.json["error"]["code"] == "usage"
    assert ran.json["problems"] == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("-o json", True),
        ("-ojson", True),
        ("--output json", True),
        ("--output=json", True),
        ("-qo json", True),
        ("-qojson", True),
        ("-o text -o json", True),
        ("-o json -o text", False),
        ("--output=json -otext", False),
        ("-o", False),
        ("--output-json json", False),
        ("-o json -- -o text", True),
        ("-- -o json", False),
        ("-- -ojson", False),
        ("-- --output json", False),
        ("-- --output=json", False),
        ("-- -qojson", False),
    ],
)
def test_a_failure_is_json_if_an_option_says_so_and_what_follows_two_dashes_is_none(
    options: str, wanted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    print_failure(CommandFailure("usage", "it went wrong"), ["run", *options.split()])
    printed = capsys.readouterr()
    assert (printed.out.startswith("{"), "it went wrong" in printed.err) == (wanted, not wanted)


def test_what_follows_two_dashes_is_a_file_and_no_option(tmp_path: Path) -> None:
    (tmp_path / "-ojson").write_text(BROKEN)
    ran = run("validate", "--", "-ojson", cwd=tmp_path)
    assert (ran.code, ran.out.startswith("{")) == (2, False)
    assert "-ojson:3:1" in ran.out
    wrong = run("run", "--", "-o", "json", cwd=tmp_path)
    assert (wrong.code, wrong.out) == (2, "")


def test_wrong_usage_is_json_when_that_is_configured(tmp_path: Path) -> None:
    ran = run("validate", cwd=tmp_path, env={"NOETL_OUTPUT": "json"})
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage")
    assert run("validate", "-o", "text", cwd=tmp_path, env={"NOETL_OUTPUT": "json"}).out == ""


def test_wrong_usage_in_text_goes_to_stderr(tmp_path: Path) -> None:
    ran = run("validate", "--strct", "x.yaml", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "--strict" in ran.err


@pytest.mark.parametrize(
    "arguments", [["init", ""], ["validate", ""], ["schema", "-f", ""], ["upgrade", ""]], ids=" ".join
)
def test_an_empty_name_is_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    ran = run(*arguments, cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "the name is empty" in ran.err


def test_endless_input_is_not_read_to_its_end(tmp_path: Path) -> None:
    for arguments in (["validate", "/dev/zero"], ["upgrade", "/dev/zero"], ["validate", "-"]):
        with open("/dev/zero", "rb") as endless:
            child = subprocess.run(
                [*COMMAND, *arguments, "-o", "json"],
                cwd=tmp_path,
                env=environment(tmp_path),
                stdin=endless,
                capture_output=True,
                check=False,
            )
        assert child.returncode == 2
        assert b"is longer than a playbook may be" in child.stdout


def test_a_working_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    child = subprocess.run(
        ["sh", "-c", 'rmdir ../gone; exec "$0" -m noetl config show', sys.executable],
        cwd=gone,
        env=environment(tmp_path),
        capture_output=True,
        check=False,
    )
    assert (child.returncode, child.stdout) == (3, b"")
    assert child.stderr.decode().splitlines()[-1] == "noetl: the working directory: No such file or directory"


def test_a_mistyped_command_gets_a_suggestion(tmp_path: Path) -> None:
    ran = run("valdate", cwd=tmp_path)
    assert ran.code == 2
    assert "Did you mean 'validate'?" in ran.err


def test_no_command_shows_the_help(tmp_path: Path) -> None:
    ran = run(cwd=tmp_path)
    assert ran.code == 2
    assert "Usage: noetl" in ran.err


def test_a_reader_that_left_changes_neither_exit_code_nor_says_anything(tmp_path: Path) -> None:
    (tmp_path / "valid.yaml").write_text(VALID)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    for arguments, code in (["schema"], 0), (["validate", "valid.yaml"], 0), (["validate", "broken.yaml"], 2):
        reading, writing = os.pipe()
        os.close(reading)
        child = subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writing)
        assert (child.returncode, child.stderr) == (code, b"")


def test_an_output_that_fails_is_the_environments_fault(tmp_path: Path) -> None:
    (tmp_path / "read-only").touch()
    with open(tmp_path / "read-only", "rb") as unwritable:
        child = subprocess.run(
            [*COMMAND, "schema"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=unwritable,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert child.returncode == 3
    assert child.stderr.decode().startswith("noetl: standard output: ")
    assert child.stderr.count(b"\n") == 1


def test_closed_streams_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "valid.yaml").write_text(VALID)
    shell = 'exec "$0" -m noetl validate valid.yaml >&- 2>&- <&-'
    child = subprocess.run(
        ["sh", "-c", shell, sys.executable], cwd=tmp_path, env=environment(tmp_path), check=False
    )
    assert child.returncode == 0


def interrupted(child: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """What it says after Ctrl-C. A signal just before it blocks wakes it only when another one comes."""
    while True:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=10)


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.yaml")
    with (
        subprocess.Popen(
            [*COMMAND, "validate", "slow.yaml"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # In the background of a shell it is ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no other thread is there to hold a lock
        ) as child,
        # Opening returns when the command has opened the other end: it is about to read.
        open(tmp_path / "slow.yaml", "wb"),
    ):
        out, err = interrupted(child)
    assert (child.returncode, out) == (1, b"")
    assert err.decode().split() == ["noetl:", "interrupted"]


FAIL = """\
import sys
from noetl.cli.command_failure import command_failure_of, print_failure
try:
    {}["gone"]
except KeyError as error:
    failure = command_failure_of(error)
    print_failure(failure, sys.argv[1:])
    sys.exit(failure.exit_code)
"""


def test_a_bug_of_ours_is_one_line_and_says_how_to_see_more(tmp_path: Path) -> None:
    def fail(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", FAIL, *arguments],
            cwd=tmp_path,
            env=environment(tmp_path, env),
            capture_output=True,
            text=True,
            check=False,
        )

    quiet, loud, programs = fail(), fail(NOETL_DEBUG="1"), fail("-o", "json")
    assert quiet.returncode == loud.returncode == programs.returncode == 3
    assert "Traceback" not in quiet.stderr
    assert "NOETL_DEBUG=1" in quiet.stderr
    assert "Traceback" in loud.stderr
    assert json.loads(programs.stdout)["error"]["code"] == "internal"


def test_ctrl_c_while_the_program_starts_shows_no_traceback(tmp_path: Path) -> None:
    press = (
        "import sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "import noetl.cli\n"
        "noetl.cli.main(['--help'])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", press], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "noetl: interrupted\n")
