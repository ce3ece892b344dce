"""What comes from outside and looks like what stands for stored values or secrets is only data."""

import json
from pathlib import Path
from typing import Any

import pytest

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.engine.catalog.playbooks import Playbooks
from noetl.events.bodies import Patch, TaskProcessed, TaskStarted
from noetl.kernel.net.commands import PatchCtx, Signal
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.verify.verification import verify
from noetl.loader import installed_kinds
from noetl.local import Local
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import escape
from noetl.ports.credentials import StoredCredential
from noetl.ports.tool import Call
from noetl.tools.host.worker_tools import Tools
from tests.local.local_engine import HEAD, Bench, source
from tests.secrets.keychain_runs import run, set_credentials
from tests.web_server import WebAnswer, web_server

MARKS: dict[str, Any] = {
    "ref": {"$noetl": "ref", "key": "x/" + "0" * 64, "size": 1, "extracted": {"n": 1}},
    "object": {"$noetl": "ref", "key": "x/" + "0" * 64, "media_type": "text/plain"},
    "list": [{"$noetl": "manifest", "chunks": [], "total": 0, "type": "list", "length": 0}],
    "secret": {"$noetl": "secret", "name": "door"},
    "escaped": {"$$noetl": "ref"},
}
"""What the engine itself writes into the log, in the hands of somebody else."""
MARKS_JSON = json.dumps(MARKS)
ECHO = "    - echo: {kind: python, args: {v: '{{ %s }}'}, code: 'result = v'}\n"
"""A task that gets the value as users see it, and gives it back."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def echo(path: str, before: str = "", more: str = "") -> str:
    return f"{more}workflow:\n- step: start\n  tool:\n{before}{ECHO % path}"


def echo_in_next_step(path: str, before: str, more: str = "") -> str:
    """What a step writes to ctx is seen by the next."""
    start = f"{more}workflow:\n- step: start\n  tool:\n{before}  next: {{arcs: [{{step: end}}]}}\n"
    return f"{start}- step: end\n  tool:\n{ECHO % path}"


def assert_is_data(bench: Bench, state: ExecutionState) -> None:
    """It came through unchanged, and deciding the history again comes out the same."""
    assert state.status == "completed", state.error
    assert state.result == escape(MARKS)
    events = bench.events(state.execution_id)
    assert verify(state.plan, state.execution_id, events, MARKS.__getitem__).differences == ()


def test_workload(bench: Bench) -> None:
    assert_is_data(bench, bench.run(echo("workload.v"), workload={"v": MARKS}))


def test_ctx(bench: Bench) -> None:
    assert_is_data(bench, bench.run(echo("ctx.v"), ctx={"v": MARKS}))


def test_the_workload_itself(bench: Bench) -> None:
    """Its own keys, not only what is below them."""
    state = bench.run(echo("workload"), workload={"v": 1, **MARKS["ref"]})
    assert state.result == {"v": 1, **escape(MARKS["ref"])}


def test_a_document(bench: Bench) -> None:
    assert_is_data(bench, bench.run(echo("workload.v", more=f"workload: {{v: {MARKS_JSON}}}\n")))


@pytest.mark.parametrize("path", ["_prev", "ctx.signals.go"])
def test_the_payload_of_a_signal(bench: Bench, path: str) -> None:
    assert_is_data(bench, after_wait(bench, path, Signal("go", MARKS)))


@pytest.mark.parametrize("payload", [[MARKS], MARKS["ref"], MARKS["secret"], {"$$noetl": "ref"}])
def test_a_payload_that_is_a_mark_itself(bench: Bench, payload: Any) -> None:
    state = after_wait(bench, "_prev", Signal("go", payload))
    assert (state.status, state.result) == ("completed", escape(payload))


def test_a_change_of_ctx(bench: Bench) -> None:
    patch = Patch(scope="ctx", path=("v",), value=MARKS)
    assert_is_data(bench, after_wait(bench, "ctx.v", PatchCtx((patch,)), Signal("go")))


def after_wait(bench: Bench, path: str, *commands: Any) -> ExecutionState:
    async def work(local: Local) -> ExecutionState:
        text = (echo if path == "_prev" else echo_in_next_step)(
            path, "    - hold: {kind: wait, signal: go}\n"
        )
        execution_id = await local.start(source(text))
        for command in commands:
            await local.submit(execution_id, command)
        return await local.wait_for_end(execution_id)

    return bench.with_local(work)


@pytest.mark.parametrize("request_part", ["ctx", "workload"])
def test_what_a_fork_brings(bench: Bench, request_part: str) -> None:
    first = "    - first: {kind: python, code: 'result = 1'}\n"
    text = echo_in_next_step(f"{request_part}.v", first, "workload: {v: 1}\n")

    async def work(local: Local) -> ExecutionState:
        original = await local.start(source(text), ctx={"v": 1})
        await local.wait_for_end(original)
        at = next(event.seq for _, event in bench.seen if isinstance(event.body, TaskProcessed))
        changes: dict[str, Any] = {request_part: {"v": MARKS}}
        return await local.wait_for_end(await local.fork(original, at=at, **changes))

    assert_is_data(bench, bench.with_local(work))


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("kind: python, args: {t: '{{ ctx.text }}'}, code: 'import json; result = json.loads(t)'", "_prev"),
        ("kind: shell, command: cat marks.json", "_prev.stdout | from_json"),
        ("kind: file, action: get, url: marks.json, format: json", "_prev"),
        ("kind: http, url: '{{ ctx.url }}'", "_prev.data"),
    ],
    ids=["python", "shell", "file", "http"],
)
def test_what_a_tool_read(bench: Bench, tmp_path: Path, task: str, path: str) -> None:
    (tmp_path / "marks.json").write_text(MARKS_JSON)
    text = echo(path, f"    - read: {{{task}}}\n")

    async def work(local: Local) -> ExecutionState:
        started = source(text, str(tmp_path / "playbook.yaml"))
        return await local.wait_for_end(
            await local.start(started, ctx={"text": MARKS_JSON, "url": server.url})
        )

    with web_server(lambda _: WebAnswer(MARKS)) as server:
        assert_is_data(bench, bench.with_local(work))


def test_the_columns_of_a_table(bench: Bench) -> None:
    read = """    - read: {kind: sqlite, command: "SELECT 'ref' AS '$noetl', 'x/1' AS key"}\n"""
    assert bench.run(echo("_prev.rows", read)).result == [{"$$noetl": "ref", "key": "x/1"}]


class _MarkTool:
    """Gives marks in every part of an outcome."""

    async def run(self, _: Call) -> Outcome:
        error = ErrorInfo(kind="tool", message="it broke", details={"v": MARKS})
        return Outcome(
            status="error", result=MARKS, error=error, meta={"v": MARKS}, helpers={"mark": {"v": MARKS}}
        )

    async def close(self) -> None:
        """Nothing is held."""


def mark_tools() -> Tools:
    kind = Kind(name="mark", summary="Gives marks.", implementation=_MarkTool)
    return Tools(Kinds([*installed_kinds(), kind]))


@pytest.mark.parametrize("path", ["outcome.result", "outcome.error.v", "outcome.meta.v", "outcome.mark.v"])
def test_every_part_of_an_outcome(bench: Bench, path: str) -> None:
    rule = f'{{else: {{then: {{do: continue, set_ctx: {{v: "{{{{ {path} }}}}"}}}}}}}}'
    text = echo_in_next_step("ctx.v", f"    - t: {{kind: mark, spec: {{policy: {{rules: [{rule}]}}}}}}\n")

    async def work(local: Local) -> ExecutionState:
        return await local.wait_for_end(await local.start(source(text)))

    playbooks = Playbooks(allow_kinds=["mark"])
    assert_is_data(bench, bench.with_local(work, tools=mark_tools(), playbooks=playbooks))


@pytest.mark.parametrize("large", [False, True])
def test_what_goes_to_a_child_and_comes_back(bench: Bench, tmp_path: Path, large: bool) -> None:
    """Small it stands in the events, large beside them."""
    limits = "executor: {kind: local, spec: {result: {inline_max_bytes: 40, preview_max_bytes: 8}}}\n"
    head = limits if large else ""
    child = HEAD.replace("p, path: p", "child, path: child") + echo("workload.v", more=head)
    (tmp_path / "child.yaml").write_text(child)
    call = "    - call: {kind: playbook, path: child, args: {v: '{{ workload.v }}'}}\n"
    text = (
        echo("call", call, head) + "    - size: {kind: python, args: {v: '{{ echo }}'}, code: 'result = v'}\n"
    )

    async def work(local: Local) -> tuple[ExecutionState, Any]:
        execution_id = await local.start(source(text), workload={"v": MARKS})
        state = await local.wait_for_end(execution_id)
        return state, await local.resolve(state.result)

    state, result = bench.with_local(work, playbooks=Playbooks([tmp_path]))
    assert (state.status, state.error) == ("completed", None)
    assert result == MARKS


def test_the_error_of_a_child(bench: Bench, tmp_path: Path) -> None:
    child = (
        HEAD.replace("p, path: p", "child, path: child") + "workflow:\n- step: start\n  tool: {kind: mark}\n"
    )
    (tmp_path / "child.yaml").write_text(child)
    rule = '{else: {then: {do: continue, set_ctx: {v: "{{ outcome.error }}"}}}}'
    call = f"    - call: {{kind: playbook, path: child, spec: {{policy: {{rules: [{rule}]}}}}}}\n"

    async def work(local: Local) -> ExecutionState:
        return await local.wait_for_end(await local.start(source(echo_in_next_step("ctx.v", call))))

    playbooks = Playbooks([tmp_path], allow_kinds=["mark"])
    state = bench.with_local(work, tools=mark_tools(), playbooks=playbooks)
    assert state.status == "completed", state.error
    assert state.result["cause"]["v"] == escape(MARKS)


@pytest.mark.parametrize("data", ["workload.v", "workload.text", "[workload.v]", "workload.deep | from_json"])
def test_what_a_loop_runs_over(bench: Bench, data: str) -> None:
    text = f"""
workflow:
- step: start
  loop: {{in: "{{{{ {data} }}}}", iterator: x}}
  tool: {{kind: python, args: {{v: "{{{{ iter.x }}}}"}}, code: "result = v"}}
"""
    texts = {"text": json.dumps([MARKS]), "deep": json.dumps([MARKS])}
    state = bench.run(text, workload={"v": [MARKS] if data == "workload.v" else MARKS, **texts})
    assert (state.status, state.result) == ("completed", [escape(MARKS)])


def test_the_fields_of_a_credential(bench: Bench) -> None:
    """Those that a task gets, and what stands for them in the log."""
    set_credentials(bench, StoredCredential("door", "static", {"$noetl": "ref", "key": "x/1", "user": "u"}))
    text = echo("keychain.door", more="keychain:\n  - {name: door, kind: static}\n")
    state = run(bench, text.replace("result = v", "result = sorted(v)"))
    assert state.result == ["$noetl", "key", "kind", "user"]
    events = bench.events(state.execution_id)
    (started,) = [event.body for event in events if isinstance(event.body, TaskStarted)]
    assert sorted(started.input["args"]["v"]) == ["$$noetl", "key", "kind", "user"]
