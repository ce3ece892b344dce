"""Where a failure is said to be: the very expression, line of code or key that failed."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from noetl.api import open_local
from noetl.cli.report.execution_report import ExecutionReport
from noetl.cli.report.follow_up import FollowUp
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.failed_attempts import FailedAttempts
from noetl.engine.history.failure_chain import describe_failure
from noetl.engine.summary import execution_of
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.settings import read_settings
from tests.cli.command_line import run
from tests.cli.failure_fragments import CASES, CODE, HEADER, INPUTS, MARK


@pytest.mark.parametrize("name", CASES)
def test_the_caret_stands_at_what_failed(name: str, tmp_path: Path) -> None:
    document, line, column = _marked(CASES[name])
    report = asyncio.run(_report(document, tmp_path))
    assert _excerpt(report) == _expected_excerpt("p.yaml", document.split("\n")[line - 1], line, column)


def _marked(text: str) -> tuple[str, int, int]:
    """The document without its mark, and where that stood."""
    text = dedent(text).lstrip("\n")
    before, _, after = (text if text.startswith("apiVersion") else HEADER + text).partition(MARK)
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def _expected_excerpt(file: str, text: str, line: int, column: int) -> list[str]:
    return [f"{file}:{line}:{column}", f"{line:>5} | {text}", "      | " + " " * (column - 1) + "^"]


def _excerpt(report: str) -> list[str]:
    lines = [line.removeprefix("  ") for line in report.split("\n")]
    caret = next((index for index, line in enumerate(lines) if re.fullmatch(r"      \| +\^", line)), 2)
    return lines[caret - 2 : caret + 1]


async def _report(document: str, folder: Path) -> str:
    """What is said at the end of an execution of the document, which must fail."""
    configuration = read_settings({"home": str(folder / ".noetl")}, environment={})
    attempts = FailedAttempts()
    source = PlaybookSource(document, "p.yaml", str(folder / "p.yaml"))

    def watch(execution_id: str, events: Sequence[Event], _: ExecutionState) -> None:
        attempts.observe(execution_id, events)

    async with open_local(configuration, watch=watch) as (local, _):
        state = await local.wait_for_end(await local.start(source))
    assert state.status == "failed"
    failures = [describe_failure(state, source, attempts)]
    return ExecutionReport(execution_of(state), FollowUp(configuration), failures).ending()


def test_every_command_names_the_line_of_code_also_in_the_traceback(tmp_path: Path) -> None:
    document, line, column = _marked(CODE)
    (tmp_path / "p.yaml").write_text(document)
    done = run("run", "p.yaml", cwd=tmp_path)
    text = document.split("\n")[line - 1]
    assert _excerpt(done.err) == _expected_excerpt("p.yaml", text, line, column)
    assert f'File "p.yaml", line {line}, in divide\n' in done.err
    assert f'File "p.yaml", line {line + 1}, in <module>\n' in done.err
    assert "<code>" not in done.err
    seen = run("executions", "show", "latest", cwd=tmp_path)
    assert _excerpt(seen.out) == _expected_excerpt("p.yaml", text, line, column)
    failure = run("executions", "show", "latest", "-o", "json", cwd=tmp_path).json["explanation"]["failure"]
    assert (failure["line"], failure["column"]) == (line, column)


def test_a_script_in_a_file_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "fix.py").write_text("import json\n\ndef main():\n    return json.loads('{')\n")
    document = HEADER + "workflow: [{step: start, tool: {name: a, kind: python, script: jobs/fix.py}}]\n"
    report = asyncio.run(_report(document, tmp_path))
    assert _excerpt(report) == _expected_excerpt("jobs/fix.py", "return json.loads('{')", 4, 8)


def test_a_script_that_is_no_python_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "fix.py").write_text("x = 1\ny = = 2\n")
    document = HEADER + "workflow: [{step: start, tool: {name: a, kind: python, script: fix.py}}]\n"
    report = asyncio.run(_report(document, tmp_path))
    assert _excerpt(report) == _expected_excerpt("fix.py", "y = = 2", 2, 5)


def test_no_attempt_has_the_number_0(tmp_path: Path) -> None:
    document, *_ = _marked(INPUTS)
    (tmp_path / "p.yaml").write_text(document)
    done = run("run", "p.yaml", "-o", "json", cwd=tmp_path)
    assert done.json["error"]["attempt"] is None
    assert "step start failed: task a: expression: " in done.err
    seen = run("executions", "show", "latest", "-o", "json", cwd=tmp_path)
    assert (seen.json["explanation"]["error"].get("attempt"), seen.json["error"]["attempt"]) == (None, None)
    assert "attempt 0" not in done.err + run("executions", "show", "latest", cwd=tmp_path).out
