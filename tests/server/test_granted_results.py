"""Large bodies of workers: where they are kept in a bucket, they go there directly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.http_api import StartExecution
from tests.gcs_server import GcsServer, gcs_server
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import ServerProcess, server_process
from tests.server.test_embedded_worker import worker_of

LARGE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: tests/large}
workload: {file: FILE, store: auto}
workflow:
- step: start
  tool:
  - make: {kind: python, code: "result = [f'row {n} {hash(str(n))}' for n in range(200_000)]"}
  next: {arcs: [{step: write, args: {rows: "{{ event.result }}"}}]}
- step: write
  tool:
  - write: {kind: file, action: put, url: "{{ workload.file }}", source: "{{ args.rows }}"}
"""


@pytest.fixture
def bucket() -> Iterator[GcsServer]:
    with gcs_server() as server:
        yield server


def ran(server: ServerProcess, worker: WorkerProcess, folder: Path) -> Any:
    worker.wait_for("registered with")
    client = server.client
    client.register(LARGE.replace("FILE", str(folder / "rows.json")))
    execution = client.wait(client.start(StartExecution(path="tests/large")).execution_id)
    assert execution.status == "completed", execution.error
    assert len((folder / "rows.json").read_bytes()) > 2_000_000
    return execution


def signed(bucket: GcsServer, method: str) -> list[dict[str, str]]:
    return [
        headers for verb, path, headers in bucket.requests if verb == method and "X-Goog-Signature" in path
    ]


def test_a_worker_without_credentials_writes_and_reads_bodies_itself(
    bucket: GcsServer, tmp_path: Path
) -> None:
    env = {**bucket.environment, "NOETL_RESULT_STORE": bucket.location("results")}
    with server_process(tmp_path, worker=False, env=env) as server:
        worker = worker_of(server, tmp_path)
        try:
            ran(server, worker, tmp_path)
        finally:
            worker.stop()
    (put,), (get,) = signed(bucket, "PUT"), signed(bucket, "GET")
    for headers in (put, get):
        assert "authorization" not in {name.lower() for name in headers}
    # It is kept as the server keeps it: packed.
    (body,) = [stored.data for name, stored in bucket.objects.items() if len(stored.data) > 100_000]
    assert body.startswith(b"\x93NOETL\x01z")


def test_where_the_bucket_cannot_be_reached_bodies_go_through_the_server(
    bucket: GcsServer, tmp_path: Path
) -> None:
    env = {**bucket.environment, "NOETL_RESULT_STORE": bucket.location("results")}
    with server_process(tmp_path, worker=False, env=env) as server:
        bucket.cuts_signed = True
        worker = worker_of(server, tmp_path)
        try:
            ran(server, worker, tmp_path)
            worker.wait_for("results go through the server")
        finally:
            worker.stop()
    assert signed(bucket, "PUT")
    assert not signed(bucket, "GET")  # it does not try again


def test_where_the_bucket_refuses_what_the_server_signs_bodies_go_through_it(
    bucket: GcsServer, tmp_path: Path
) -> None:
    env = {**bucket.environment, "NOETL_RESULT_STORE": bucket.location("results")}
    bucket.forbids_signed = True
    with server_process(tmp_path, worker=False, env=env) as server:
        worker = worker_of(server, tmp_path)
        try:
            ran(server, worker, tmp_path)
        finally:
            worker.stop()
    assert len(signed(bucket, "PUT")) == len(signed(bucket, "GET")) == 1


def test_in_files_of_the_server_there_is_no_other_way(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        worker = worker_of(server, tmp_path)
        try:
            ran(server, worker, tmp_path)
        finally:
            worker.stop()
