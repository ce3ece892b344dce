"""What waits for a person: questions, who may answer, and that an answer reaches the one it is for."""

import asyncio
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.engine.history.read import read_history
from noetl.engine.history.wait_reader import Answerer, WaitReader
from noetl.ports.http_api import StartExecution
from noetl.ports.page_api import WaitItem
from noetl.ports.store import Store
from noetl.stores import open_store
from tests.cli.command_line import environment, run
from tests.server.server_process import ServerProcess, command

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: inbox, path: PATH}\n"
ASKING = (
    HEAD.replace("PATH", "inbox/asking")
    + """\
workload: {order: 7}
workflow:
- step: ask
  tool:
  - name: approve
    kind: wait
    signal: approved
    title: "Refund {{ workload.order }}?"
    description: The customer says so.
    schema: {type: object, properties: {ok: {type: boolean}, note: {type: string, maxLength: 5}}, required: [ok]}
    assignee: [ann, bob]
    spec: {timeout: 3600}
"""
)
PARALLEL = (
    HEAD.replace("PATH", "inbox/parallel")
    + """\
workflow:
- step: each
  loop: {in: [a, b, c], iterator: item, spec: {mode: parallel, max_in_flight: 3}}
  tool: {name: ask, kind: wait, signal: answer, title: "{{ iter.item }}?", schema: {type: object, required: [n]}}
"""
)
LATER = (
    HEAD.replace("PATH", "inbox/later")
    + """\
workflow:
- step: first
  tool: {kind: wait, signal: begin}
  next: {arcs: [{step: second}]}
- step: second
  tool: {name: ask, kind: wait, signal: answer, schema: {type: integer}, assignee: ann}
"""
)
COMPUTED = (
    HEAD.replace("PATH", "inbox/computed")
    + """\
workload: {kind: objet, who: [ann, 3]}
workflow:
- step: ask
  tool: {kind: wait, signal: go, KEY}
"""
)

GUARD = "{{ (ctx.signals.approved.amount | default(99)) < workload.limit }}"
GATED = (
    HEAD.replace("PATH", "inbox/gated")
    + """\
workload: {limit: 10}
workflow:
- step: start
  tool: {kind: noop, args: {}}
  next:
    spec: {mode: inclusive}
    arcs: [{step: ship}, {step: park}, {step: ask}]
- step: ask
  tool: {name: ask, kind: wait, signal: approved, title: And you?}
- step: ship
  desc: Sends the parcel.
  spec:
    policy:
      admit:
        timeout: 3600
        rules:
        - when: "{{ (ctx.signals.approved.amount | default(99)) < workload.limit }}"
          then: {allow: true}
  tool: {kind: noop, args: {}}
- step: park
  spec: {policy: {admit: {on_deny: wait, rules: [{when: "{{ ctx.ready is defined }}", then: {allow: true}}]}}}
  tool: {kind: noop, args: {}}
"""
)
COMPUTED_GATE = (
    HEAD.replace("PATH", "inbox/computed-gate")
    + """\
workload: {key: go}
workflow:
- step: start
  spec: {policy: {admit: {rules: [{when: "{{ ctx.signals[workload.key] is defined }}", then: {allow: true}}]}}}
  tool: {kind: noop, args: {}}
"""
)


@pytest.fixture(scope="module")
def names(server: ServerProcess) -> dict[str, Client]:
    for text in (ASKING, PARALLEL, LATER, GATED, COMPUTED_GATE):
        server.client.register(text)
    roles = {"ann": "operator", "carl": "operator", "vera": "viewer"}
    return {
        name: Client(server.url, server.client.create_token(name, role).token) for name, role in roles.items()
    }


def begin(client: Client, path: str, count: int = 1) -> tuple[str, list[WaitItem]]:
    """An execution that waits so many times."""
    execution_id = client.start(StartExecution(path=path)).execution_id
    while len(waits := client.waits(execution_id=execution_id).waits) < count:
        client.show(execution_id, wait=0.05)
    return execution_id, waits


def refusal(client: Client, execution_id: str, *args: Any, **named: Any) -> str:
    with pytest.raises(ServerError) as refused:
        client.signal(execution_id, *args, **named)
    assert refused.value.code == "refused"
    return str(refused.value)


def test_a_wait_says_what_it_asks_of_whom_and_until_when(client: Client, names: dict[str, Client]) -> None:
    execution_id, (wait,) = begin(client, "inbox/asking")
    assert (wait.execution_id, wait.path, wait.step, wait.task) == (
        execution_id,
        "inbox/asking",
        "ask",
        "approve",
    )
    assert (wait.signal, wait.title, wait.description) == (
        "approved",
        "Refund 7?",
        "The customer says so.",
    )
    assert wait.schema is not None
    assert wait.schema["required"] == ["ok"]
    assert wait.assignee == ["ann", "bob"]
    assert wait.iteration is None
    assert wait.until is not None
    assert wait.since < wait.until
    answerable = {
        name: asker.waits(execution_id=execution_id).waits[0].answerable for name, asker in names.items()
    }
    assert answerable == {"ann": True, "carl": False, "vera": False}
    assert wait.answerable, "an admin may"
    assert [item.wait for item in names["ann"].waits(execution_id=execution_id, mine=True).waits] == [
        wait.wait
    ]
    assert names["carl"].waits(execution_id=execution_id, mine=True).waits == []


def test_an_answer_that_does_not_fit_is_refused_with_the_reason(
    client: Client, names: dict[str, Client]
) -> None:
    execution_id, (wait,) = begin(client, "inbox/asking")
    ann = names["ann"]
    assert '"ok" is a required property' in refusal(ann, execution_id, "approved", {}, wait=wait.wait)
    wrong = {"ok": True, "note": "far too long"}
    assert "note: " in refusal(ann, execution_id, "approved", wrong, wait=wait.wait)
    assert "note: " in refusal(ann, execution_id, "approved", wrong), "also without naming the wait"
    events = client.events(execution_id).events
    assert "SignalReceived" not in {event["name"] for event in events}
    ann.signal(execution_id, "approved", {"ok": True}, wait=wait.wait)
    assert client.wait(execution_id).result == {"ok": True}
    assert client.waits(execution_id=execution_id).waits == []


def test_only_assignees_and_admins_answer(client: Client, names: dict[str, Client]) -> None:
    execution_id, (wait,) = begin(client, "inbox/asking")
    for named in ({"wait": wait.wait}, {}):
        assert "only `ann` or `bob` may answer" in refusal(
            names["carl"], execution_id, "approved", {"ok": True}, **named
        )
    with pytest.raises(ServerError) as forbidden:
        names["vera"].signal(execution_id, "approved", {"ok": True})
    assert forbidden.value.code == "forbidden"
    client.signal(execution_id, "approved", {"ok": False}, wait=wait.wait)
    assert client.wait(execution_id).result == {"ok": False}


def test_in_a_parallel_loop_an_answer_reaches_the_wait_that_it_names(
    client: Client, names: dict[str, Client]
) -> None:
    execution_id, waits = begin(client, "inbox/parallel", 3)
    by_title = {wait.title: wait for wait in waits}
    assert [by_title[f"{letter}?"].iteration for letter in "abc"] == [0, 1, 2]
    for number, title in enumerate(["c?", "a?", "b?"]):
        wait = by_title[title]
        names["carl"].signal(execution_id, "answer", {"n": number}, wait=wait.wait)
        reason = refusal(client, execution_id, "answer", {"n": 9}, wait=wait.wait)
        assert "waits for the signal" in reason or "completed" in reason, "it has its answer"
    assert client.wait(execution_id).result == [{"n": 1}, {"n": 2}, {"n": 0}]


def test_a_wait_that_is_not_there_gets_nothing(client: Client, names: dict[str, Client]) -> None:
    execution_id, (wait,) = begin(client, "inbox/asking")
    for signal, named in (("approved", "nothing"), ("other", wait.wait)):
        assert f"no task run `{named}` waits" in refusal(
            client, execution_id, signal, {"ok": True}, wait=named
        )
    client.cancel(execution_id)


def test_what_was_kept_and_does_not_fit_is_dropped_with_an_event(
    client: Client, names: dict[str, Client]
) -> None:
    execution_id, _ = begin(client, "inbox/later")
    client.signal(execution_id, "answer", "no number")
    names["carl"].signal(execution_id, "answer", 1)
    client.signal(execution_id, "begin")
    while len(dropped := _dropped(client, execution_id)) < 2:
        client.show(execution_id, wait=0.05)
    (wait,) = client.waits(execution_id=execution_id).waits
    assert [event["wait"] for event in dropped] == [wait.wait] * 2
    assert "not of type" in dropped[0]["reason"]
    assert "only `ann` may answer" in dropped[1]["reason"]
    names["ann"].signal(execution_id, "answer", 5)
    assert client.wait(execution_id).result == 5


def _dropped(client: Client, execution_id: str) -> list[dict[str, Any]]:
    events = client.events(execution_id).events
    return [event["data"] for event in events if event["name"] == "SignalDropped"]


def test_what_was_kept_and_fits_is_delivered(client: Client, names: dict[str, Client]) -> None:
    execution_id, _ = begin(client, "inbox/later")
    names["ann"].signal(execution_id, "answer", 6)
    client.signal(execution_id, "begin")
    assert client.wait(execution_id).result == 6
    assert not _dropped(client, execution_id)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("schema: {type: '{{ workload.kind }}'}", "`schema` is no JSON Schema"),
        ("schema: '{{ workload.kind }}'", "`schema` is no JSON Schema: it is a mapping"),
        ("assignee: '{{ workload.who }}'", "`assignee` is the name of a token"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_task(client: Client, key: str, message: str) -> None:
    started = client.start(StartExecution(playbook=COMPUTED.replace("KEY", key)))
    detail = client.wait(started.execution_id)
    assert detail.error is not None
    assert detail.error["kind"] == "input"
    assert message in detail.error["message"]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("schema: {type: objet}", "`schema` is no JSON Schema"),
        ("schema: {$ref: 'http://localhost:1/x'}", "refers to nothing outside"),
    ],
)
def test_a_wrong_schema_is_a_problem_of_the_document(client: Client, key: str, message: str) -> None:
    text = COMPUTED.replace("KEY", f"\n    {key}")
    (problem,) = client.validate(text).problems
    assert message in problem.message
    assert (problem.line, problem.column) == (8, 5)


def test_a_question_without_a_signal_is_a_problem(client: Client) -> None:
    text = COMPUTED.replace("signal: go, KEY", "seconds: 1, title: Why?")
    (problem,) = client.validate(text).problems
    assert "`title` is for who sends a `signal`" in problem.message


def test_the_command_lists_waits_and_answers_one(
    server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    client.register(PARALLEL)
    execution_id, waits = begin(client, "inbox/parallel", 3)
    env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
    listed = run("executions", "waits", execution_id, "-o", "json", cwd=tmp_path, env=env).json
    assert [item["wait"] for item in listed["waits"]] == [wait.wait for wait in waits]
    text = run("executions", "waits", execution_id, cwd=tmp_path, env=env).out
    for wait in waits:
        assert wait.title in text
        assert f"signal {execution_id} answer PAYLOAD --wait {wait.wait}" in text
        answered = run(
            *("executions", "signal", execution_id, "answer", '{"n": 1}', "--wait", wait.wait),
            cwd=tmp_path,
            env=env,
        )
        assert answered.code == 0, answered.err
    client.wait(execution_id)
    refused = run("executions", "waits", "nothing", cwd=tmp_path, env=env)
    assert refused.code == 2


def test_the_command_works_on_a_store_without_a_server(tmp_path: Path) -> None:
    file = tmp_path / "asking.yaml"
    file.write_text(ASKING)
    assert run("executions", "waits", "-o", "json", cwd=tmp_path).json == {"waits": []}
    process = subprocess.Popen(command("run", str(file), "-q"), cwd=tmp_path, env=environment(tmp_path))
    try:
        while not (waits := run("executions", "waits", "-o", "json", cwd=tmp_path).json["waits"]):
            assert process.poll() is None
        (wait,) = waits
        wrong = run("executions", "signal", "latest", "approved", "1", "--wait", wait["wait"], cwd=tmp_path)
        assert wrong.code == 2
        assert "not of type" in wrong.err
        right = run(
            *("executions", "signal", "latest", "approved", '{"ok": true}', "--wait", wait["wait"]),
            cwd=tmp_path,
        )
        assert right.code == 0, right.err
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_pages_of_waits_have_all_of_them_once(client: Client, names: dict[str, Client]) -> None:
    execution_id, waits = begin(client, "inbox/parallel", 3)
    first = client.waits(execution_id=execution_id, limit=2)
    assert first.next_cursor is not None
    second = client.waits(execution_id=execution_id, limit=2, cursor=first.next_cursor)
    assert second.next_cursor is None
    assert [wait.wait for wait in (*first.waits, *second.waits)] == [wait.wait for wait in waits]
    assert {wait.wait for wait in waits} <= {wait.wait for wait in client.waits(limit=1_000).waits}
    with pytest.raises(ServerError):
        client.waits(cursor="x")


def test_a_gate_that_waits_says_which_signal_opens_it_and_what_its_guard_read(
    client: Client, names: dict[str, Client]
) -> None:
    execution_id, waits = begin(client, "inbox/gated", 2)
    assert {wait.kind for wait in waits} == {"task", "gate"}, "what no signal opens waits for no person"
    (gate,) = (wait for wait in waits if wait.kind == "gate")
    assert (gate.step, gate.task, gate.signal, gate.signals) == ("ship", "", "approved", ["approved"])
    assert (gate.description, gate.schema, gate.assignee) == ("Sends the parcel.", None, [])
    assert gate.until is not None
    assert waits[0].since <= gate.since < gate.until
    (rule,) = gate.rules
    assert (rule.text, rule.holds, rule.line) == (GUARD, False, 20)
    assert [(read.path, read.missing, read.value) for read in rule.reads] == [
        ("ctx.signals.approved.amount", True, None),
        ("workload.limit", False, 10),
    ]
    answerable = {name: _gate(asker, execution_id).answerable for name, asker in names.items()}
    assert answerable == {"ann": True, "carl": True, "vera": False}
    client.signal(execution_id, "approved", {"amount": 12})
    denied = _gate(client, execution_id)
    assert (denied.wait, denied.since) == (gate.wait, gate.since), "asked again, and not let in"
    assert denied.rules[0].reads[0].value == 12
    assert f"no task run `{gate.wait}` waits" in refusal(client, execution_id, "approved", 1, wait=gate.wait)
    names["carl"].signal(execution_id, "approved", {"amount": 5})
    assert client.waits(execution_id=execution_id).waits == []
    client.cancel(execution_id)


def _gate(client: Client, execution_id: str) -> WaitItem:
    (gate,) = (wait for wait in client.waits(execution_id=execution_id).waits if wait.kind == "gate")
    return gate


def test_a_gate_whose_signal_is_computed_is_listed_without_a_name(client: Client, names: object) -> None:
    execution_id, (gate,) = begin(client, "inbox/computed-gate")
    assert (gate.kind, gate.signal, gate.signals) == ("gate", "", [])
    client.signal(execution_id, "go")
    assert client.wait(execution_id).status == "completed"


def test_the_command_tells_what_a_gate_waits_for(
    server: ServerProcess, client: Client, names: object, tmp_path: Path
) -> None:
    execution_id, _ = begin(client, "inbox/gated", 2)
    env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
    text = run("executions", "waits", execution_id, cwd=tmp_path, env=env).out
    assert "a gate waits for the signal `approved`" in text
    assert f"line 20: {GUARD} does not hold" in text
    assert "ctx.signals.approved.amount is not there" in text
    assert "workload.limit = 10" in text
    assert f"noetl executions signal {execution_id} approved PAYLOAD\n" in text
    client.cancel(execution_id)


def test_waits_are_folded_once_whatever_waits_and_taken_from_memory_where_they_are(tmp_path: Path) -> None:
    """A reader that asks again reads the list of executions, and nothing of any of them."""
    file = tmp_path / "gated.yaml"
    file.write_text(GATED)
    process = subprocess.Popen(command("run", str(file), "-q"), cwd=tmp_path, env=environment(tmp_path))
    try:
        while len(run("executions", "waits", "-o", "json", cwd=tmp_path).json["waits"]) < 2:
            assert process.poll() is None
    finally:
        process.kill()
        process.wait()

    async def ask() -> None:
        store = _CountingStore(open_store(f"sqlite:///{tmp_path}/.noetl/store.db"))
        reader = WaitReader(store)
        asker = Answerer("ann", is_operator=True, is_admin=False)
        first = await reader.read(asker)
        assert len(first) == 2
        assert store.calls["read"] > 0
        store.calls.clear()
        assert await reader.read(asker) == first
        assert store.calls == {"executions": 1}
        history = await read_history(open_store(f"sqlite:///{tmp_path}/.noetl/store.db"), "latest")
        store.calls.clear()
        live = WaitReader(store, live_states={history.state.execution_id: history.state}.get)
        assert await live.read(asker) == first
        assert store.calls == {"executions": 1, "playbook": 1, "read": 1}, "the time of the token alone"
        await store.close()

    asyncio.run(ask())


class _CountingStore:
    """A real store, and how often each of its methods was called."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._store, name)
