"""What servers and workers tell their operator."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from noetl.ports.control import PROTOCOL, ClaimCredit, Register, Registered
from noetl.ports.http_api import StartExecution
from noetl.process_log import LONGEST_VALUE, LogEvent, configure_logs, log_event
from noetl.server.engine_observer import SLOW_COMMIT, EngineObserver
from tests.observability.observed_server import SECRET_TEXT, ObservedServer, post_as_worker
from tests.server.server_process import server_process

ENVELOPE = {"time", "level", "event"}


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, ours = logging.getLogger(), logging.getLogger("noetl")
    before = root.handlers, root.level, ours.level, logging.raiseExceptions
    yield io.StringIO()
    root.handlers, logging.raiseExceptions = before[0], before[3]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def test_a_server_says_where_it_is_and_who_works_for_it(observed: ObservedServer) -> None:
    [starting], [ready] = observed.lines_of("server starting"), observed.lines_of("server ready")
    assert (starting["pid"], starting["home"]) == (observed.server.process.pid, str(observed.server.home))
    assert ready["url"] == observed.server.url
    worker = observed.lines_of("worker connected")[0]
    [registered] = [line for line in observed.worker_lines() if line["event"] == "registered with the server"]
    assert worker["session"] == registered["session"]
    assert worker["worker"] == registered["worker"]
    assert (worker["pools"], worker["slots"]) == (["default"], 32)


def test_a_failed_execution_is_one_line_and_others_are_none(observed: ObservedServer) -> None:
    before = len(observed.server_lines())
    assert observed.run("examples/greet").status == "completed"
    failed = observed.run("observed/failing")
    # A machine that is busy may have a slow commit meanwhile, which is no line of an execution.
    [line] = [line for line in observed.server_lines()[before:] if "execution_id" in line]
    assert {name: line[name] for name in ("event", "level", "execution_id", "playbook", "step")} == {
        "event": "execution failed",
        "level": "warning",
        "execution_id": failed.execution_id,
        "playbook": "observed/failing",
        "step": "start",
    }
    assert line["kind"] == "python"
    assert "no" in line["error"]


def test_no_secret_and_no_token_stands_in_a_log(observed: ObservedServer) -> None:
    failed = observed.run("observed/secret")
    assert failed.status == "failed"
    assert observed.lines_of("execution failed")[-1]["execution_id"] == failed.execution_id
    text = observed.errors.read_text() + "".join(observed.worker.lines)
    worker_token = (observed.server.home / "worker.token").read_text().strip()
    for secret in (SECRET_TEXT, observed.server.token, worker_token):
        assert secret not in text


def test_workers_that_are_rejected_or_lost_are_named(observed: ObservedServer) -> None:
    register = Register(protocol=PROTOCOL, worker="strange", slots=1, kinds=("noop",), pools=("strange",))
    other = msgspec.structs.replace(register, protocol=PROTOCOL + 1, release="9.9")
    post_as_worker(observed, "register", msgspec.json.encode(other))
    rejected = observed.lines_of("worker rejected")[-1]
    assert (rejected["worker"], rejected["release"], rejected["level"]) == ("strange", "9.9", "warning")
    held = observed.server.client.start(StartExecution(path="observed/strange")).execution_id
    answer = post_as_worker(observed, "register", msgspec.json.encode(register))
    [registered] = msgspec.json.decode(answer, type=list[Registered])
    assert observed.lines_of("worker connected")[-1]["session"] == registered.session
    post_as_worker(observed, "claim", msgspec.json.encode(ClaimCredit(slots=1)), registered.session)
    post_as_worker(observed, "report", b"no message", registered.session)
    lost = observed.lines_of("worker lost")[-1]
    assert (lost["worker"], lost["session"], lost["runs"]) == ("strange", registered.session, 1)
    expired = observed.lines_of("lease expired")[-1]
    assert (expired["execution_id"], expired["level"]) == (held, "warning")
    assert expired["run"]


def test_the_end_of_a_server_is_said_unless_that_is_below_the_level(tmp_path: Path) -> None:
    with server_process(tmp_path, "--log-format", "json", env={"NOETL_LOG_LEVEL": "warning"}) as server:
        assert server.stop() == 0
    assert (tmp_path / "server.err").read_text() == ""  # the level holds
    with server_process(tmp_path, "--log-format", "json") as server:
        assert server.stop() == 0
    events = [json.loads(line)["event"] for line in (tmp_path / "server.err").read_text().splitlines()]
    life = ["server starting", "server ready", "server draining", "server stopped"]
    assert [event for event in events if event.startswith("server")] == life
    own_worker = {"worker connected", "registered with the server", "worker left"}
    assert {*events} - {*life} == own_worker


def test_a_line_stays_one_line_whatever_is_in_it(stream: io.StringIO) -> None:
    hostile = 'two\nlines \x1b[31m \u2028 \udcff \U000e0001 and "quotes"=1'
    for log_format in ("text", "json"):
        configure_logs(stream, log_format, "info")
        log_event(LogEvent.RUN_REFUSED, run="r7", error=OSError(hostile), absent=None, long="x" * 10_000)
    text, document = stream.getvalue().splitlines()
    assert "\x1b" not in text
    assert "run=r7" in text
    assert "absent" not in text
    assert len(text) < LONGEST_VALUE + 400
    line = json.loads(document)
    assert line["error"] == hostile
    assert line.keys() == {*ENVELOPE, "run", "error", "long"}
    assert line["level"] == "warning"


def test_a_fault_of_ours_has_its_traceback_and_one_of_the_world_has_none(stream: io.StringIO) -> None:
    configure_logs(stream, "json", "info")
    for error in (KeyError("ours"), OSError("the disk")):
        try:
            raise error
        except (KeyError, OSError) as caught:
            log_event(LogEvent.SERVER_FAILED, error=caught)
    ours, world = (json.loads(line) for line in stream.getvalue().splitlines())
    assert "in test_a_fault_of_ours" in ours["traceback"]
    assert "traceback" not in world


def test_the_lines_of_libraries_go_the_same_way(stream: io.StringIO) -> None:
    configure_logs(stream, "json", "info")
    logging.getLogger("uvicorn.error").warning("bad %s", "request")
    logging.getLogger("uvicorn.error").info("chatter")
    [line] = stream.getvalue().splitlines()
    document = json.loads(line)
    assert (document["logger"], document["event"]) == ("uvicorn.error", "bad request")


def test_a_slow_commit_is_said(stream: io.StringIO) -> None:
    configure_logs(stream, "text", "info")
    observer = EngineObserver()
    observer.committed(5, SLOW_COMMIT * 0.9)
    observer.committed(7, SLOW_COMMIT * 1.5)
    [line] = stream.getvalue().splitlines()
    assert "slow commit seconds=1.5 events=7" in line
