"""Traces of executions, as a real receiver gets them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noetl.client.http_client import Client
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.local import Local
from noetl.model.trace_context import attempt_span_id, hashed_span_id, traceparent, w3c_trace_id
from noetl.ports.http_api import ExecutionDetail, StartExecution
from noetl.server.execution_traces import ExecutionTraces
from noetl.settings import read_settings
from noetl.stores.sqlite.store import SqliteStore
from noetl.system import SYSTEM
from tests.observability.observed_server import FAILING, RETRYING, SECRET_TEXT
from tests.observability.trace_receiver import TraceReceiver
from tests.server.server_process import server_process

ASKING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asking, path: observed/asking}
workload: {url: ""}
workflow:
- step: start
  tool:
  - name: ask
    kind: http
    url: "{{ workload.url }}"
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {}}
"""
PARENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: observed/parent}
workflow:
- step: start
  tool: {kind: playbook, path: observed/failing}
"""
NOTHING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: nothing, path: observed/nothing}
workflow:
- step: start
  tool: {kind: noop}
"""


class Traced:
    """Executions that ran, and the spans that came of them."""

    def __init__(self, client: Client, receiver: TraceReceiver) -> None:
        def run(path: str, **workload: str) -> ExecutionDetail:
            return client.wait(client.start(StartExecution(path=path, workload=workload)).execution_id)

        self.asking = run("observed/asking", url=receiver.url)
        self.retrying = run("observed/retrying")
        self.parent = run("observed/parent")
        self.events = {
            detail.execution_id: client.events(detail.execution_id).events
            for detail in (self.asking, self.retrying, self.parent)
        }
        self.receiver = receiver

    def spans(self, execution_id: str) -> dict[str, list[Any]]:
        """Those of one execution, by name."""
        named: dict[str, list[Any]] = {}
        for span in self.receiver.spans:
            if attributes(span)["noetl.execution_id"] == execution_id:
                named.setdefault(span.name, []).append(span)
        return named


def attributes(span: Any) -> dict[str, Any]:
    return {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in span.attributes}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    with TraceReceiver() as receiver:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OBSERVED_SECRET": SECRET_TEXT}
        with server_process(tmp_path_factory.mktemp("traced"), env=env) as server:
            for text in (ASKING, RETRYING, FAILING, PARENT):
                server.client.register(text)
            result = Traced(server.client, receiver)
            assert server.stop() == 0  # what is left is sent at the end
        yield result


def test_an_execution_is_one_trace_of_steps_and_attempts(traced: Traced) -> None:
    execution_id = traced.asking.execution_id
    spans = traced.spans(execution_id)
    assert {name: len(group) for name, group in spans.items()} == {
        "observed/asking": 1,
        "start": 1,
        "end": 1,
        "ask": 1,
        "task_0": 1,
    }
    trace_id = execution_id.replace("-", "")
    assert traced.events[execution_id][0]["trace_id"] == trace_id
    assert {span.trace_id.hex() for group in spans.values() for span in group} == {trace_id}
    [root], [start], [ask] = spans["observed/asking"], spans["start"], spans["ask"]
    assert (root.parent_span_id, start.parent_span_id, ask.parent_span_id) == (
        b"",
        root.span_id,
        start.span_id,
    )
    assert root.start_time_unix_nano <= start.start_time_unix_nano <= ask.start_time_unix_nano
    assert ask.start_time_unix_nano - root.start_time_unix_nano < 60e9
    assert ask.end_time_unix_nano <= start.end_time_unix_nano <= root.end_time_unix_nano
    assert traced.receiver.services == {"noetl"}


def test_a_request_of_a_task_says_to_which_span_it_belongs(traced: Traced) -> None:
    [ask] = traced.spans(traced.asking.execution_id)["ask"]
    processed = next(
        event for event in traced.events[traced.asking.execution_id] if event["name"] == "TaskProcessed"
    )
    outcome = processed["data"]["outcome"]
    assert f"'00-{ask.trace_id.hex()}-{ask.span_id.hex()}-01'" in str(outcome["result"])
    assert outcome["meta"]["span_id"] == ask.span_id.hex()


def test_each_attempt_has_a_span_and_says_how_it_ended(traced: Traced) -> None:
    spans = traced.spans(traced.retrying.execution_id)
    attempts = sorted(spans["ask"], key=lambda span: attributes(span)["noetl.attempt"])
    assert [attributes(span)["noetl.attempt"] for span in attempts] == [1, 2, 3]
    assert [span.status.code for span in attempts] == [2, 2, 0]
    assert "not yet" in attempts[0].status.message
    assert attributes(attempts[0])["error.type"] == "python"
    assert len({span.span_id for span in attempts}) == 3
    assert spans["start"][0].status.code == 0


def test_a_child_is_linked_to_the_step_that_started_it(traced: Traced) -> None:
    [start] = traced.spans(traced.parent.execution_id)["start"]
    [child] = [span for span in traced.receiver.spans if span.name == "observed/failing"]
    assert (child.links[0].trace_id, child.links[0].span_id) == (start.trace_id, start.span_id)
    assert child.status.code == 2
    assert attributes(child)["noetl.status"] == "failed"


def test_of_a_sample_each_trace_is_there_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_all(traces: ExecutionTraces) -> list[str]:
        store = SqliteStore.in_memory()
        async with Local(store) as engine:
            engine.subscribe(traces)
            ids = [await engine.start(PlaybookSource(NOTHING, "nothing.yaml")) for _ in range(32)]
            for execution_id in ids:
                await engine.wait_for_end(execution_id)
        await store.close()
        await traces.close()
        return ids

    with TraceReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
        monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
        ids = asyncio.run(run_all(ExecutionTraces(SYSTEM)))
    counts = Counter(attributes(span)["noetl.execution_id"] for span in receiver.spans)
    assert set(counts.values()) == {3}
    assert 0 < len(counts) < len(ids)
    assert receiver.services == {"mine"}


@pytest.mark.parametrize(
    ("environment", "traced"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
    ],
)
def test_traces_are_sent_where_the_standard_variables_say_so(
    environment: dict[str, str], traced: bool, tmp_path: Path
) -> None:
    assert read_settings(environment=environment, directory=tmp_path).traced is traced


def test_ids_are_those_that_others_know() -> None:
    assert w3c_trace_id("0af7651916cd43dd8448eb211c80319c") == "0af7651916cd43dd8448eb211c80319c"
    for other in ("0" * 32, "order 7", "0AF7651916CD43DD8448EB211C80319C"):
        assert len(bytes.fromhex(w3c_trace_id(other))) == 16
        assert w3c_trace_id(other) not in (other, "0" * 32)
    assert attempt_span_id("ab" * 16, 1) != attempt_span_id("ab" * 16, 2)
    assert (
        len(bytes.fromhex(attempt_span_id("ab" * 16, 70_000))) == len(bytes.fromhex(hashed_span_id("a"))) == 8
    )
    assert traceparent("a" * 32, "b" * 16) == f"00-{'a' * 32}-{'b' * 16}-01"
