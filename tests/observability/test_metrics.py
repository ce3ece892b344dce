"""What a server counts of itself, and what it says of its state."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from noetl.client.server_requests import ServerError
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.ports.http_api import StartExecution
from noetl.server.engine_observer import STUCK_AFTER, EngineObserver
from noetl.server.measures import METRICS, Histogram
from noetl.server.plane.sessions import WorkerSession
from noetl.server.server_engine import ServerEngine
from noetl.stores.sqlite.store import SqliteStore
from noetl.system import SYSTEM
from tests.cli.command_line import run
from tests.observability.observed_server import FAILING as PYTHON
from tests.observability.observed_server import STRANGE, ObservedServer, post_as_worker


def samples(observed: ObservedServer) -> dict[tuple[str, ...], float]:
    """Each value by its name and the values of its labels."""
    families = text_string_to_metric_families(observed.server.client.metrics())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def wait_until(
    observed: ObservedServer, holds: Callable[[dict[tuple[str, ...], float]], bool]
) -> dict[tuple[str, ...], float]:
    """The metrics as soon as it holds: each time, the server is asked again."""
    until = time.monotonic() + 60
    while not holds(values := samples(observed)):
        assert time.monotonic() < until, values
    return values


def test_every_metric_of_the_table_is_exposed_and_no_other(observed: ObservedServer) -> None:
    families = list(text_string_to_metric_families(observed.server.client.metrics()))
    own = {family.name: family for family in families if family.name.startswith("noetl_")}
    assert own.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        assert own[metric.name].type == metric.kind
        assert own[metric.name].documentation == metric.meaning
        for sample in own[metric.name].samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)
    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= {family.name for family in families}


def test_executions_tasks_retries_and_commits_are_counted(observed: ObservedServer) -> None:
    before, began = samples(observed), time.monotonic()
    observed.run("examples/greet")
    observed.run("observed/retrying")
    failed = observed.run("observed/failing")
    events = sum(detail.events for detail in (failed,))
    after = samples(observed)

    def gained(*name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    assert gained("noetl_executions_started_total") == 3
    assert gained("noetl_executions_ended_total", "completed") == 2
    assert gained("noetl_executions_ended_total", "failed") == 1
    assert gained("noetl_task_retries_total", "python") == 2
    assert gained("noetl_task_seconds_count", "python", "ok") == 2
    assert gained("noetl_task_seconds_count", "python", "error") == 3
    assert 0 < gained("noetl_task_seconds_sum", "python", "ok") < time.monotonic() - began
    for name in ("noetl_decide_seconds", "noetl_commit_seconds"):
        buckets = [value for (metric, *_), value in after.items() if metric == f"{name}_bucket"]
        assert buckets == sorted(buckets)
        assert buckets[-1] == after[f"{name}_count",]
    assert gained("noetl_events_appended_total") > events
    assert gained("noetl_commit_seconds_count") >= 3
    assert 0 < after["noetl_commit_seconds_sum",] < after["noetl_commit_seconds_count",] * 10
    # Each decision has a time, and an end after its beginning.
    assert gained("noetl_decide_seconds_count") >= 9
    assert 0 < after["noetl_decide_seconds_sum",] < after["noetl_decide_seconds_count",]


def test_runs_that_nobody_takes_are_a_queue_until_they_are_over(observed: ObservedServer) -> None:
    client = observed.server.client
    first = client.start(StartExecution(path="observed/strange")).execution_id
    second = client.start(StartExecution(path="observed/strange")).execution_id
    values = samples(observed)
    assert values["noetl_queue_depth", "strange"] == 2
    assert ("noetl_queue_depth", "default") not in values
    age = values["noetl_queue_age_seconds", "strange"]
    assert samples(observed)["noetl_queue_age_seconds", "strange"] > age > 0
    assert values["noetl_stuck_executions",] == 0  # not yet: a worker may come
    assert values["noetl_live_executions",] == 2
    client.pause(first)
    assert samples(observed)["noetl_queue_depth", "strange"] == 1
    client.resume(first)
    assert samples(observed)["noetl_queue_depth", "strange"] == 2
    status = client.status()
    assert [(pool.pool, pool.depth) for pool in status.pools] == [("strange", 2)]
    for execution_id in (first, second):
        client.cancel(execution_id)
        client.wait(execution_id)
    assert ("noetl_queue_depth", "strange") not in samples(observed)


def test_a_request_whose_key_is_taken_starts_nothing_and_leaves_nothing_that_waits(
    observed: ObservedServer,
) -> None:
    client, before = observed.server.client, samples(observed)
    keyed = StartExecution(path="observed/strange", idempotency_key="once")
    execution_id = client.start(keyed).execution_id
    assert client.start(keyed).execution_id == execution_id
    with pytest.raises(ServerError, match="started with another workload"):
        client.start(StartExecution(path="observed/strange", idempotency_key="once", workload={"a": 1}))
    values = samples(observed)
    assert values["noetl_queue_depth", "strange"] == 1
    started = ("noetl_executions_started_total",)
    assert values[started] - before[started] == 1
    client.cancel(execution_id)
    client.wait(execution_id)
    assert ("noetl_queue_depth", "strange") not in samples(observed)


def test_workers_and_requests_are_counted(observed: ObservedServer) -> None:
    values = samples(observed)
    assert values["noetl_worker_sessions",] == 1
    assert (values["noetl_worker_slots", "busy"], values["noetl_worker_slots", "free"]) == (0, 32)
    observed.server.client.playbook("examples/greet")
    count = ("noetl_http_requests_total", "GET", "/api/catalog/{path}", "200")
    assert samples(observed)[count] == values.get(count, 0) + 1
    with pytest.raises(ServerError):
        observed.server.client.playbook("examples/nothing")
    missing = (*count[:3], "404")
    assert samples(observed)[missing] == values.get(missing, 0) + 1


def test_requests_of_workers_are_counted_by_their_routes(observed: ObservedServer) -> None:
    count = ("noetl_http_requests_total", "POST", "/api/worker/heartbeat", "404")
    before = samples(observed).get(count, 0)
    assert b"register again" in post_as_worker(observed, "heartbeat", b'{"type": "heartbeat"}', "unknown")
    assert samples(observed)[count] == before + 1


def test_streams_are_counted_while_they_are_open(observed: ObservedServer) -> None:
    from tests.server.test_server_process import raw_stream

    client = observed.server.client
    held = client.start(StartExecution(path="examples/waiting")).execution_id
    with raw_stream(observed.server, f"/api/executions/{held}/stream") as (_, lines):
        next(lines)
        wait_until(observed, lambda values: values["noetl_stream_clients",] == 1)
    client.signal(held, "go")
    client.wait(held)
    wait_until(observed, lambda values: values["noetl_stream_clients",] == 0)


def test_what_no_worker_can_take_is_stuck_after_a_minute() -> None:
    clock = [100.0]
    observer = EngineObserver(SYSTEM._replace(monotonic=lambda: clock[0]))

    async def play() -> None:
        store = SqliteStore.in_memory()
        async with ServerEngine(store, system=observer.system) as engine:
            engine.subscribe(observer)
            ids = [await engine.start(PlaybookSource(STRANGE, name)) for name in ("a.yaml", "b.yaml")]
            clock[0] += STUCK_AFTER - 1
            ids.append(await engine.start(PlaybookSource(PYTHON, "c.yaml")))
            session = WorkerSession("s", 10.0, 0.0)
            assert observer.stuck_executions([session]) == []
            clock[0] += 1
            assert observer.stuck_executions([session]) == ids[:2]
            assert [tuple(queue) for queue in observer.queues()] == [
                ("default", 1, 1.0),
                ("strange", 2, STUCK_AFTER),
            ]
            clock[0] += STUCK_AFTER
            session.pools, session.kinds = frozenset({"strange", "default"}), frozenset({"noop"})
            assert observer.stuck_executions([session]) == ids[2:]  # it knows no `python`
            session.kinds = frozenset({"noop", "python"})
            assert observer.stuck_executions([session]) == []
        await store.close()

    asyncio.run(play())


def test_only_decisions_have_a_time_to_decide() -> None:
    clock = [5.0]
    observer = EngineObserver(SYSTEM._replace(monotonic=lambda: clock[0]))
    anything: Any = None
    observer.system.now()  # as a decision begins
    clock[0] += 0.25
    observer.pending(anything)
    clock[0] += 100
    observer.pending(anything)  # something can be written that was decided before
    decide = observer.measures.decide
    assert (sum(decide.counts), decide.total) == (1, 0.25)


def test_a_bucket_counts_what_is_not_above_its_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(value)
    assert (histogram.counts, histogram.total) == ([2, 2, 1], 14.0)


def test_the_status_says_what_the_server_is_and_who_works_for_it(observed: ObservedServer) -> None:
    server = observed.server
    observed.run("examples/greet")
    status = run("server", "status", "--home", str(server.home), "-o", "json", cwd=server.home)
    document = status.json
    assert status.code == 0
    assert (document["url"], document["pid"], document["ready"]) == (server.url, server.process.pid, True)
    assert document["release"]
    assert document["store"] == f"sqlite:///{server.home}/store.db"
    assert (document["workers"], document["slots"], document["problem"]) == (1, 32, None)
    assert document["uptime"] > 0
    assert document["last_commit_at"] > document["started_at"]
    text = run("server", "status", "--home", str(server.home), cwd=server.home).out
    assert "1 worker, 0 of 32 slots in use" in text
