"""Running playbooks from Python."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

import noetl

TEXT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: p, path: p}
workload: {n: 1}
workflow:
- step: start
  tool: {kind: python, args: {n: "{{ workload.n }}"}, code: "result = 10 / n"}
"""
MEMORY = "sqlite:///:memory:"


def test_text_runs_and_gives_what_the_command_line_prints() -> None:
    execution = noetl.run(TEXT, {"n": 4}, store=MEMORY)
    assert execution.ok
    assert (execution.result, execution.steps) == (2.5, {"start": {"status": "completed", "runs": 1}})
    assert execution.raise_for_status() is execution


def test_a_failed_execution_is_returned_and_raised_only_if_asked() -> None:
    execution = noetl.run(TEXT, {"n": 0}, store=MEMORY)
    assert execution.status == "failed"
    assert execution.error is not None
    assert (execution.error["step"], execution.error["kind"]) == ("start", "python")
    with pytest.raises(noetl.ExecutionFailed, match="division by zero"):
        execution.raise_for_status()


def test_it_runs_where_a_loop_runs_already() -> None:
    async def notebook() -> object:
        inside = noetl.run(TEXT, store=MEMORY)
        awaited = await noetl.arun(TEXT, {"n": 2}, store=MEMORY)
        return inside.result, awaited.result

    assert asyncio.run(notebook()) == (10.0, 5.0)


def test_interrupting_a_notebook_ends_the_execution_too() -> None:
    code = "import os, signal; os.kill(n, signal.SIGINT); signal.pause()"

    async def cell() -> None:
        noetl.run(TEXT.replace("result = 10 / n", code), {"n": os.getpid()}, store=MEMORY)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("noetl-run")]


def test_inline_code_may_change_what_it_gets() -> None:
    text = (
        TEXT.partition("workflow")[0]
        + """workflow:
- step: start
  tool:
  - spoil:
      kind: python
      args: {ctx: "{{ ctx }}", given: "{{ ctx.given }}"}
      code: "ctx['more'] = 1; given.append(2); result = given"
      spec: {isolation: inline}
  - end: {kind: noop, args: {ctx: "{{ ctx }}", spoil: "{{ spoil }}"}}
"""
    )
    execution = noetl.run(text, ctx={"given": [1]}, store=MEMORY)
    assert execution.result == {"ctx": {"given": [1]}, "spoil": [1, 2]}


def test_relative_paths_start_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "code.py").write_text("result = 'from the file'\n")
    (folder / "p.yaml").write_text(TEXT.replace('code: "result = 10 / n"', "script: code.py"))
    monkeypatch.chdir(tmp_path)
    assert noetl.run(folder / "p.yaml").result == "from the file"
    assert (tmp_path / ".noetl" / "store.db").is_file()
    assert (tmp_path / ".noetl" / ".gitignore").read_text() == "*\n"


def test_what_cannot_run_is_found_before_anything_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(noetl.PlaybookInvalid):
        noetl.run(TEXT.replace("workflow", "flow"))
    with pytest.raises(noetl.CannotRun, match="no playbook `nowhere`"):
        noetl.run(
            TEXT.replace(
                '{kind: python, args: {n: "{{ workload.n }}"}, code: "result = 10 / n"}',
                "{kind: playbook, path: nowhere}",
            )
        )
    with pytest.raises(noetl.CannotRun, match="the tool kind `unheard` is not installed"):
        noetl.run(
            TEXT.replace(
                '{kind: python, args: {n: "{{ workload.n }}"}, code: "result = 10 / n"}',
                "{kind: unheard, of: it}",
            ),
            allow_kinds=["unheard"],
        )
    assert not (tmp_path / ".noetl" / "store.db").exists() or noetl.run(TEXT, store=MEMORY).ok
