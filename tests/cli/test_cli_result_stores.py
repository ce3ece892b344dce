"""Result stores that are set: what a run and a server say at their start."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from tests.azure_server import AzureServer
from tests.cli.command_line import run
from tests.gcs_server import GcsServer
from tests.nats_server import NatsServer, create_object_store

LARGE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: tests/large}
workflow:
  - step: start
    tool: [{make: {kind: python, code: "result = ['x' * 100] * 2_000"}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "large.yaml").write_text(LARGE)
    return tmp_path


@pytest.mark.parametrize("kind", ["azure", "nats"])
def test_a_run_keeps_its_results_elsewhere(
    folder: Path, azure: AzureServer, nats: NatsServer, kind: str
) -> None:
    env = {**azure.environment, "NOETL_RESULT_STORE": azure.location(uuid4().hex)}
    if kind == "nats":
        asyncio.run(create_object_store(nats, bucket := uuid4().hex))
        env = {**nats.environment, "NOETL_RESULT_STORE": f"{nats.url}/{bucket}"}
    assert run("run", "large.yaml", "-q", cwd=folder, env=env).code == 0
    assert not [path for path in (folder / ".noetl" / "results").rglob("*") if path.is_file()]
    ran = run("executions", "result", "latest", cwd=folder, env=env)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == ["x" * 100] * 2_000


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("gs://nobody-has-this?endpoint=GCS", "there is no bucket `nobody-has-this`"),
        ("gs://noetl-forbidden?endpoint=GCS", "the credentials do not allow this"),
        ("nats://host", "names no server and bucket"),
        ("what://ever", "is no place for results"),
    ],
)
@pytest.mark.parametrize("command", [("run", "large.yaml"), ("server", "start", "--port", "0")])
def test_what_is_wrong_is_said_at_the_start(
    folder: Path, gcs: GcsServer, command: tuple[str, ...], url: str, message: str
) -> None:
    env = {**gcs.environment, "NOETL_RESULT_STORE": url.replace("GCS", gcs.url)}
    ran = run(*command, "-o", "json", "--home", "here", cwd=folder, env=env)
    error = ran.json["error"]
    assert (ran.code, message in error["message"], bool(error["hint"])) == (3, True, True), error


def test_a_result_that_was_changed_under_its_key_is_an_error_that_names_both(folder: Path) -> None:
    shared = folder / "shared"
    env = {"NOETL_RESULT_STORE": shared.as_uri()}
    assert run("run", "large.yaml", "-q", cwd=folder, env=env).code == 0
    bodies = [path for path in shared.rglob("*") if path.is_file() and not path.parent.name.endswith(".log")]
    for body in bodies:
        body.write_bytes(body.read_bytes()[::-1])
    ran = run("executions", "result", "latest", cwd=folder, env=env)
    assert ran.code != 0
    assert ran.out == ""
    assert [body for body in bodies if f"{body.parent.name}/{body.name}" in ran.err]
    assert "its checksum is not sha256:" in ran.err
    assert "restore it from a copy" in ran.err


PRINTING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: printing, path: tests/printing}
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    print('said')\\n    raise ValueError('no')"}
"""


def test_where_logs_cannot_be_read_the_rest_of_a_failure_is_shown(folder: Path) -> None:
    (folder / "printing.yaml").write_text(PRINTING)
    env = {"NOETL_RESULT_STORE": (folder / "shared").as_uri()}
    assert run("run", "printing.yaml", "-q", cwd=folder, env=env).code == 1
    ran = run("executions", "show", "latest", cwd=folder, env=env)
    assert "said" in ran.out
    gone = {"NOETL_RESULT_STORE": "nats://127.0.0.1:1/results"}
    ran = run("executions", "show", "latest", cwd=folder, env=gone)
    assert (ran.code, "ValueError: no" in ran.out) == (0, True)
    assert "the log cannot be read: " in ran.out
    logs = run("executions", "logs", "latest", cwd=folder, env=gone)
    assert (logs.code, logs.out, "nats://127.0.0.1:1" in logs.err) == (3, "", True)
