"""At a glance: what needs somebody, what runs, what waits in queues and why."""

from noetl.client.http_client import Client
from noetl.ports.http_api import StartExecution
from tests.server.server_process import GREET, ServerProcess

ELSEWHERE = GREET.replace("path: examples/greet", "path: examples/elsewhere").replace(
    "- step: start", "- step: start\n  spec: {pool: nowhere}"
)


def test_an_overview_groups_failures_and_counts_what_runs(server: ServerProcess, client: Client) -> None:
    for _ in range(2):
        client.wait(client.start(StartExecution(path="examples/failing")).execution_id)
    client.wait(client.start(StartExecution(path="examples/greet")).execution_id)
    waiting = client.start(StartExecution(path="examples/waiting")).execution_id
    while not client.waits(execution_id=waiting).waits:
        client.show(waiting, wait=0.05)
    overview = client.overview()
    (group,) = overview.failures
    assert (group.path, group.step, group.count) == ("examples/failing", "start", 2)
    assert "no" in group.message
    assert client.show(group.newest).status == "failed"
    assert (overview.running, overview.paused, overview.waiting) == (1, 0, 1)
    assert [item.execution_id for item in overview.executions] == [waiting]
    assert [wait.execution_id for wait in overview.waits] == [waiting]
    assert len(overview.hours) == 24
    assert [
        sum(getattr(hour, name) for hour in overview.hours) for name in ("completed", "failed", "running")
    ] == [1, 2, 1]
    assert overview.playbooks == 5
    assert (overview.stuck, overview.lost_workers) == ([], [])
    client.pause(waiting)
    assert (client.overview().running, client.overview().paused) == (0, 1)


def test_the_queue_says_why_a_run_waits(client: Client) -> None:
    client.register(ELSEWHERE)
    execution_id = client.start(StartExecution(path="examples/elsewhere")).execution_id
    pool = next(pool for pool in client.queue().pools if pool.pool == "nowhere")
    (run,) = pool.runs
    assert (run.execution_id, run.path, run.kinds) == (execution_id, "examples/elsewhere", ["python"])
    assert run.reason == "no worker serves the pool `nowhere`"
    assert run.age >= 0
    assert run.step in ("start", None)
    assert (pool.depth, pool.workers) == (1, 0)
