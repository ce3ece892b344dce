"""What a `shell` task runs, gives and prints."""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from noetl.model.reference import StoredReference
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.process.stream_capture import MAX_LOG, MAX_TEXT, TAIL
from tests.tools.shell_calls import call, error_of, outcome_of, result_of, with_tool

PRINT = [sys.executable, "-c"]


def test_a_list_is_a_program_and_its_arguments_and_no_shell_reads_them() -> None:
    result = result_of(["printf", "%s|", "a b", "$HOME", "*", 1, 2.5, ";ls"])
    assert result == {"exit_code": 0, "stdout": "a b|$HOME|*|1|2.5|;ls|", "stderr": ""}


def test_a_text_is_read_by_a_shell() -> None:
    result = result_of("x=2; echo $((x + 1)) | tr 3 4; echo oops >&2")
    assert result == {"exit_code": 0, "stdout": "4\n", "stderr": "oops\n"}


def test_variables_are_added_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "there")
    result = result_of("echo $A $B $C $OUTER", env={"A": 1, "B": True, "C": "x y"})
    assert result["stdout"] == "1 true x y there\n"


def test_it_works_in_the_folder_of_the_playbook_or_the_one_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    assert result_of(["pwd"], folder=tmp_path)["stdout"] == f"{tmp_path}\n"
    assert result_of(["pwd"], folder=tmp_path, cwd="below")["stdout"] == f"{tmp_path}/below\n"
    assert result_of(["pwd"], folder=tmp_path, cwd="/")["stdout"] == "/\n"


def test_a_program_is_found_from_its_folder_and_by_its_own_path(tmp_path: Path) -> None:
    program = tmp_path / "hello"
    program.write_text("#!/bin/sh\necho hello $1\n")
    program.chmod(0o755)
    assert result_of(["./hello", "you"], folder=tmp_path)["stdout"] == "hello you\n"
    assert result_of(["hello"], folder=tmp_path, env={"PATH": str(tmp_path)})["stdout"] == "hello\n"


@pytest.mark.parametrize(
    ("stdin", "read"),
    [
        ("plain ü\n", "plain ü\n"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        (7, "7"),
        (True, "true"),
        ("", ""),
        (None, ""),
    ],
)
def test_standard_input_is_what_is_given(stdin: Any, read: str) -> None:
    assert result_of(["cat"], stdin=stdin)["stdout"] == read


def test_a_program_need_not_read_all_it_is_given() -> None:
    assert result_of(["true"], stdin="x" * 3_000_000)["exit_code"] == 0
    assert result_of(["head", "-c", "3"], stdin="x" * 3_000_000)["stdout"] == "xxx"


def test_a_reference_is_read_as_it_is_stored(tmp_path: Path) -> None:
    objects = ResultStoreObjects(FileResults(tmp_path), "x")
    data = os.urandom(500_000)

    async def store() -> StoredReference:
        async with objects.draft() as draft:
            draft.path.write_bytes(data)
            return await draft.keep("application/octet-stream")

    result = result_of(["sha256sum"], stdin=asyncio.run(store()), objects=objects)
    assert result["stdout"].split()[0] == hashlib.sha256(data).hexdigest()


def test_a_mapping_that_only_looks_like_a_reference_is_data() -> None:
    looks = {"$noetl": "ref", "key": "x/" + "0" * 64, "media_type": "text/plain"}
    assert json.loads(result_of(["cat"], stdin=looks)["stdout"]) == looks


def test_lines_go_to_the_log_while_the_program_runs(tmp_path: Path) -> None:
    """The program waits for what the test does when it sees the first line."""
    go = tmp_path / "go"
    os.mkfifo(go)
    lines: list[str] = []

    def log(line: str) -> None:
        lines.append(line)
        if line == "first":
            descriptor = os.open(go, os.O_RDWR)
            os.write(descriptor, b"on\n")
            held.append(descriptor)

    held: list[int] = []
    result = result_of(f"echo first; read word < {go}; echo $word >&2; printf last", log=log)
    os.close(held[0])
    assert lines == ["first", "on", "last"]
    assert (result["stdout"], result["stderr"]) == ("first\nlast", "on\n")


async def whole_of(objects: ResultStoreObjects, reference: StoredReference) -> bytes:
    async with objects.local(reference) as path:
        return path.read_bytes()


def test_of_much_output_the_tail_is_the_text_and_the_whole_is_stored(tmp_path: Path) -> None:
    objects = ResultStoreObjects(FileResults(tmp_path), "x")
    code = "import sys; sys.stdout.write(''.join(f'line ü {n}\\n' for n in range(200_000)))"
    result = result_of([*PRINT, code], objects=objects)
    printed = "".join(f"line ü {n}\n" for n in range(200_000))
    assert len(printed.encode()) > MAX_TEXT
    assert printed.endswith(result["stdout"])
    assert TAIL - 4 <= len(result["stdout"].encode()) <= TAIL
    reference = result["stdout_ref"]
    assert (reference["size"], reference["media_type"]) == (
        len(printed.encode()),
        "text/plain; charset=utf-8",
    )
    assert printed.startswith(reference["preview"])
    assert asyncio.run(whole_of(objects, reference)) == printed.encode()
    assert "stderr_ref" not in result


def test_output_up_to_the_bound_is_a_text(tmp_path: Path) -> None:
    result = result_of([*PRINT, f"print('a' * {MAX_TEXT - 1})"])
    assert len(result["stdout"]) == MAX_TEXT
    assert "stdout_ref" not in result
    assert result_of([*PRINT, f"print('a' * {MAX_TEXT})"])["stdout_ref"]["size"] == MAX_TEXT + 1


def test_output_that_is_no_text_is_stored_as_it_is(tmp_path: Path) -> None:
    objects = ResultStoreObjects(FileResults(tmp_path), "x")
    result = result_of(r"printf '\377a\n' >&2; printf '\303'", objects=objects)
    assert (result["stdout"], result["stderr"]) == ("�", "�a\n")
    assert result["stdout_ref"]["media_type"] == "application/octet-stream"
    assert asyncio.run(whole_of(objects, result["stdout_ref"])) == b"\xc3"
    assert asyncio.run(whole_of(objects, result["stderr_ref"])) == b"\xffa\n"


def test_a_log_gets_only_so_much_of_a_stream() -> None:
    lines: list[str] = []
    result = result_of(f"yes 12345678901234567890123 | head -c {MAX_LOG + 3_000_000}", log=lines.append)
    assert len(lines) == MAX_LOG // 24 + 2
    assert lines[-1] == "… more than 8 MiB were printed: the rest is in the result alone"
    assert result["stdout_ref"]["size"] == MAX_LOG + 3_000_000


MEASURE = """
import asyncio, resource, sys
from pathlib import Path
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.shell.tool import ShellTool
from tests.tools.shell_calls import call

async def main():
    tool, objects = ShellTool(), ResultStoreObjects(FileResults(Path(sys.argv[1])), "x")
    await tool.run(call("head -c 2000000 /dev/zero | tr '\\\\0' a", objects=objects))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = await tool.run(call("head -c 100000000 /dev/zero | tr '\\\\0' a", objects=objects, timeout=100))
    again = await tool.run(call(["wc", "-c"], stdin=found.result["stdout_ref"], objects=objects))
    await tool.close()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, again.result["stdout"])

asyncio.run(main())
"""


def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(str(folder) for folder in (root / "src", root))
    result = result_of([*PRINT, MEASURE, str(tmp_path)], env={"PYTHONPATH": path}, timeout=100)
    grown, size = map(int, result["stdout"].split())
    assert size == 100_000_000
    assert grown < 20_000  # KiB


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("exit 3", 3, "the command ended with exit code 3"),
        ("echo no >&2; echo because >&2; echo >&2; exit 1", 1, "the command ended with exit code 1: because"),
        (["false"], 1, "the command ended with exit code 1"),
        ("nosuchprogram", 127, "nosuchprogram: "),
    ],
)
def test_an_exit_code_other_than_0_is_an_error_that_keeps_the_result(
    command: Any, code: int, message: str
) -> None:
    outcome = outcome_of(command)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("process_exit", False)
    assert message in outcome.error.message
    assert outcome.error.as_value()["exit_code"] == outcome.result["exit_code"] == code


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    error = error_of("kill -40 $$")
    assert (error.kind, error.message) == ("process_exit", "the command was killed by signal 40")
    assert error.details["signal"] == "signal 40"


@pytest.mark.parametrize(("name", "retryable"), [("KILL", True), ("TERM", True), ("SEGV", False)])
def test_a_signal_is_named(name: str, retryable: bool) -> None:
    error = error_of(f"ulimit -c 0; kill -{name} $$")
    assert (error.kind, error.retryable) == ("process_exit", retryable)
    assert error.message == f"the command was killed by SIG{name}"
    assert error.details["signal"] == f"SIG{name}"


def test_what_cannot_be_started_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("#!/bin/sh\n")
    (tmp_path / "odd").write_bytes(b"\0\1\2")
    (tmp_path / "odd").chmod(0o755)
    for command, about, kind, message in (
        (["nosuchprogram"], {}, "not_found", "there is no program `nosuchprogram`"),
        (["./data"], {}, "permission", "the program `./data` may not be run"),
        (["./odd"], {}, "input", "the program `./odd` cannot be run: Exec format error"),
        (["ls"], {"cwd": "gone"}, "not_found", f"`cwd`: there is no folder {tmp_path}/gone"),
        (["ls"], {"cwd": "data"}, "not_found", f"`cwd`: there is no folder {tmp_path}/data"),
        (["ls", "a\0b"], {}, "input", "embedded null byte"),
        (["ls", "a" * 300_000], {}, "input", "Argument list too long"),
        (["ls"], {"env": {"A=B": 1}}, "input", "`A=B` cannot name an environment variable"),
        (["ls"], {"env": {"A": [1]}}, "input", "$.env"),
        ([], {}, "input", "$.command"),
        ([" "], {}, "input", "the command is empty: name the program to run"),
        (["ls"], {"stdn": "x"}, "input", "unknown field `stdn`"),
    ):
        error = error_of(command, folder=tmp_path, **about)
        assert (error.kind, error.retryable) == (kind, False), error
        assert message in error.message


def test_what_is_told_of_a_program_does_not_depend_on_the_other_folders_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    for name in ("ls", "mine"):
        (tmp_path / "first" / name).write_text("no program")
    env = {"PATH": f"first{os.pathsep}{os.environ['PATH']}"}
    error = error_of(["ls", "a" * 300_000], folder=tmp_path, env=env)
    assert (error.kind, error.message) == ("input", "the program `ls` cannot be run: Argument list too long")
    error = error_of(["mine"], folder=tmp_path, env=env)
    assert (error.kind, error.message) == ("permission", f"the program `mine` may not be run in {tmp_path}")
    (tmp_path / "first" / "mine").write_text("#!/bin/sh\necho $0 $1\n")
    (tmp_path / "first" / "mine").chmod(0o755)
    assert result_of(["mine", "all"], folder=tmp_path, env=env)["stdout"] == f"{tmp_path}/first/mine all\n"


def test_a_reference_to_what_is_gone_is_told() -> None:
    gone = StoredReference({"$noetl": "ref", "key": "x/" + "0" * 64, "media_type": "text/plain"})
    error = error_of(["cat"], stdin=gone)
    assert error.kind == "not_found"
    assert "nothing is stored under" in error.message


def test_many_programs_run_at_once() -> None:
    async def together(tool: Any) -> list[Any]:
        calls = (call(f"read line; echo $line {n}", stdin=f"{n}\n") for n in range(50))
        return await asyncio.gather(*(tool.run(tool_call) for tool_call in calls))

    outcomes = with_tool(together)
    assert [outcome.result["stdout"] for outcome in outcomes] == [f"{n} {n}\n" for n in range(50)]
