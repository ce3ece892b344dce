"""Several servers on one store in PostgreSQL, without a leader: real processes that are killed and stopped."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from bench.postgres_server import PostgresServer
from noetl.client.http_client import AsyncClient, Client
from noetl.ports.http_api import StartExecution
from tests.cli.command_line import environment, run
from tests.server.server_process import WAITING, ServerProcess, command, kill, server_process

_numbers = count(1)
WORK = """
    code: |
      import os, time
      def main(file, name, seconds):
          with open(file, "a") as effects:
              effects.write(name + chr(10))
          time.sleep(seconds)
          return name
"""
"""It leaves a trace of each time that it began."""
STEPS = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: steps, path: several/steps}}
workload: {{file: "", seconds: 0.2}}
workflow:
- step: first
  tool:
    kind: python
    args: {{file: "{{{{ workload.file }}}}", name: "{{{{ execution_id }}}}/first", seconds: "{{{{ workload.seconds }}}}"}}{WORK}
  next: {{arcs: [{{step: pause}}]}}
- step: pause
  tool: {{kind: wait, seconds: 0.3}}
  next: {{arcs: [{{step: second}}]}}
- step: second
  tool:
    kind: python
    args: {{file: "{{{{ workload.file }}}}", name: "{{{{ execution_id }}}}/second", seconds: "{{{{ workload.seconds }}}}"}}{WORK}
  next: {{arcs: [{{step: third}}]}}
- step: third
  tool: {{kind: noop, args: {{n: 3}}}}
"""
LOOP = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: loop, path: several/loop}}
workload: {{file: "", seconds: 0.1, count: 8}}
workflow:
- step: each
  loop:
    in: "{{{{ range(workload.count) | list }}}}"
    iterator: n
    spec: {{mode: parallel, max_in_flight: 4, policy: {{exec: distributed}}}}
  tool:
    kind: python
    args: {{file: "{{{{ workload.file }}}}", name: "{{{{ execution_id }}}}/{{{{ n }}}}", seconds: "{{{{ workload.seconds }}}}"}}{WORK}
  next: {{arcs: [{{step: total, args: {{rows: "{{{{ event.result }}}}"}}}}]}}
- step: total
  tool: {{kind: noop, args: {{n: "{{{{ args.rows | length }}}}"}}}}
"""
FAMILY = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: family, path: several/family}
workload: {file: "", seconds: 0.1}
workflow:
- step: child
  tool: {kind: playbook, path: several/steps, args: {file: "{{ workload.file }}", seconds: "{{ workload.seconds }}"}}
"""
RESULTS = {"several/steps": {"n": 3}, "several/loop": {"n": 8}, "several/family": {"n": 3}}
TRACES = {"several/steps": 2, "several/loop": 8, "several/family": 2}
PATIENCE = 40.0
"""Seconds in which everything has ended, or never will."""


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """A store that is not there yet."""
    return postgres.dsn(schema=f"several_{next(_numbers)}")


@contextmanager
def servers(folder: Path, url: str, number: int, *, worker: bool = False) -> Iterator[list[ServerProcess]]:
    with ExitStack() as stack:
        opened = []
        for index in range(number):
            own_folder = folder / f"server-{index}"
            own_folder.mkdir()
            opened.append(stack.enter_context(server_process(own_folder, "--store", url, worker=worker)))
        yield opened


@contextmanager
def workers(
    folder: Path, server_list: Sequence[ServerProcess], number: int
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Each prefers another server, and knows them all."""
    token = server_list[0].client.create_token("machines", "worker").token
    processes = []
    try:
        for index in range(number):
            order = [server_list[(index + turn) % len(server_list)].url for turn in range(len(server_list))]
            words = [word for server_url in order for word in ("--server", server_url)]
            own_folder = folder / f"worker-{index}"
            own_folder.mkdir()
            with (own_folder / "worker.err").open("a") as log:
                processes.append(
                    subprocess.Popen(
                        command("worker", "start", *words, "--slots", "4"),
                        cwd=own_folder,
                        env=environment(own_folder, {"NOETL_TOKEN": token}),
                        stdout=log,
                        stderr=log,
                        text=True,
                    )
                )
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()


def start(client: Client, path: str, file: Path, seconds: float = 0.1) -> str:
    workload = {"file": str(file), "seconds": seconds}
    return client.start(StartExecution(path=path, workload=workload)).execution_id


def register(client: Client) -> None:
    for text in (STEPS, LOOP, FAMILY, WAITING):
        client.register(text)


def require_ends(client: Client, begun: Mapping[str, str], seconds: float = PATIENCE) -> None:
    """All of these have ended well, in so many seconds."""
    deadline = time.monotonic() + seconds
    for execution_id, path in begun.items():
        ended = client.wait(execution_id, timeout=max(deadline - time.monotonic(), 0.1))
        assert (ended.status, ended.result) == ("completed", RESULTS[path]), (path, ended)


def require_sound(folder: Path, url: str, begun: Mapping[str, str], repeated: int, effects: Path) -> None:
    """Nothing is lost or recorded twice, and no more was done again than was in flight."""
    children = sum(path == "several/family" for path in begun.values())
    done = run("store", "check", "--store", url, cwd=folder)
    number = len(begun) + children
    assert f"{number} execution{'s'[: number > 1]}, 0 problems" in done.out, done.out + done.err
    traces = effects.read_text().split()
    assert len(set(traces)) == sum(TRACES[path] for path in begun.values())
    assert len(traces) - len(set(traces)) <= repeated, sorted(traces)


def test_executions_of_any_server_are_run_by_the_workers_of_any(tmp_path: Path, url: str) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2) as (first, second), workers(tmp_path, [first, second], 2):
        register(first.client)
        begun = {start(server.client, path, effects): path for path in RESULTS for server in (first, second)}
        require_ends(first.client, begun)
        require_ends(second.client, begun)
        require_sound(tmp_path, url, begun, 0, effects)


def test_a_server_gives_runs_to_workers_of_another(tmp_path: Path, url: str) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2) as (first, second), workers(tmp_path, [second], 1):
        register(first.client)
        begun = {start(first.client, path, effects): path for path in RESULTS}
        require_ends(first.client, begun)
        require_sound(tmp_path, url, begun, 0, effects)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_others_take_over_from_a_server_that_is_killed_or_stopped(
    tmp_path: Path, url: str, number: signal.Signals
) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2) as (first, second), workers(tmp_path, [first, second], 2):
        register(first.client)
        begun = {start(first.client, path, effects, 1.0): path for path in RESULTS for _ in range(2)}
        wait_until(effects.exists)
        first.process.send_signal(number)
        require_ends(second.client, begun, 20)
        require_sound(tmp_path, url, begun, 0, effects)  # their workers lived, and have lost nothing
        if number == signal.SIGSTOP:
            first.process.send_signal(signal.SIGCONT)
            again = {start(first.client, path, effects): path for path in RESULTS}
            require_ends(first.client, again)
            require_sound(tmp_path, url, {**begun, **again}, 0, effects)
            assert first.stop() == 0


def test_what_the_worker_in_a_killed_server_had_goes_on_within_ten_seconds(tmp_path: Path, url: str) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2, worker=True) as (first, second):
        register(first.client)
        execution_id = start(first.client, "several/steps", effects, 1.0)
        wait_until(effects.exists)
        kill(first)
        require_ends(second.client, {execution_id: "several/steps"}, 10 + 2 * 1.0 + 0.3)
        require_sound(tmp_path, url, {execution_id: "several/steps"}, 1, effects)


def test_what_one_server_is_asked_a_worker_of_another_hears(tmp_path: Path, url: str) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2) as (first, second), workers(tmp_path, [first], 1):
        register(first.client)
        waiting = first.client.start(StartExecution(path="examples/waiting")).execution_id
        long = start(first.client, "several/steps", effects, 60.0)
        wait_until(effects.exists)
        began = time.monotonic()
        second.client.cancel(long)
        assert first.client.wait(long, timeout=10).status == "cancelled"
        assert time.monotonic() - began < 5
        second.client.signal(waiting, "go")
        assert first.client.wait(waiting, timeout=10).status == "completed"
        # Its slot is free, so it was interrupted.
        begun = {start(second.client, "several/steps", effects): "several/steps" for _ in range(5)}
        require_ends(first.client, begun)


def test_the_stream_of_a_server_has_what_others_wrote(tmp_path: Path, url: str) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2) as (first, second), workers(tmp_path, [first], 1):
        register(first.client)
        execution_id = start(first.client, "several/steps", effects, 0.5)
        names = asyncio.run(names_of_stream(second, execution_id))
        assert names == [event["name"] for event in first.client.events(execution_id).events]
        assert names[-1] == "PlaybookProcessed"


def test_a_worker_that_is_killed_loses_its_runs_to_others(tmp_path: Path, url: str) -> None:
    effects = tmp_path / "effects"
    with servers(tmp_path, url, 2) as (first, second), workers(tmp_path, [first, second], 2) as processes:
        register(first.client)
        begun = {start(first.client, "several/steps", effects, 2.0): "several/steps" for _ in range(4)}
        wait_until(lambda: len(effects.read_text().split()) == 4 if effects.exists() else False)
        processes[0].kill()
        require_ends(second.client, begun)
        require_sound(tmp_path, url, begun, 4, effects)


async def names_of_stream(server: ServerProcess, execution_id: str) -> list[str]:
    async with AsyncClient(server.url, server.token) as client:
        return [event["name"] async for event in client.stream(execution_id)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
