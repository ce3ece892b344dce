"""`noetl store`."""

from pathlib import Path

import apsw
import pytest

from noetl.stores.sqlite.connection import SCHEMA_VERSION
from tests.executions.execution_playbooks import BREAK, BROKEN, GATES, GREET, GREETED
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecutions
from tests.executions.test_execution_show import UNCHECKED, tamper


def change(recorded: RecordedExecutions, sql: str) -> None:
    connection = apsw.Connection(str(recorded.home.store))
    connection.execute(sql)
    connection.close()


def test_a_sound_store_is_sound(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    for text, script in ((GREET, GREETED), (BREAK, BROKEN), (GATES, {})):
        recorded.run(text, script)
    ran = noetl("store", "check")
    assert (ran.code, ran.out) == (0, "3 executions, 0 problems\n")
    assert noetl("store", "check", "-o", "json").json == {
        "ok": True,
        "executions": 3,
        "problems": [],
        "unchecked_appends": 0,
    }


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE execution SET status = 'failed'", "status is 'failed'"),
        ("DELETE FROM event WHERE seq = 5", "event 5 is missing"),
        ("UPDATE event SET kind = 999 WHERE seq = 5;" + UNCHECKED, "event kind 999"),  # noqa: S608 - our own
        ("UPDATE event SET kind = 999 WHERE seq = 5", "not what was written"),
        ("DELETE FROM playbook", "is missing"),
    ],
)
def test_what_is_wrong_is_said(
    noetl: InProcessCommand, recorded: RecordedExecutions, sql: str, message: str
) -> None:
    name = recorded.run(GREET, GREETED)
    change(recorded, sql)
    ran = noetl("store", "check")
    assert ran.code == 1
    assert message in ran.out
    json_run = noetl("store", "check", "-o", "json")
    assert (json_run.code, json_run.json["ok"]) == (1, False)
    assert {problem["execution_id"] for problem in json_run.json["problems"]} == {name}


def test_what_is_derived_is_made_again(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    recorded.run(GREET, GREETED)
    change(recorded, "UPDATE execution SET status = 'failed', labels = '{\"a\": \"b\"}'")
    assert noetl("store", "check").code == 1
    assert noetl("store", "check", "--rebuild").code == 0
    assert noetl("store", "check").code == 0


def test_a_tampered_event_of_an_older_release_is_found_by_verify_not_by_check(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.run(GREET, GREETED)
    tamper(recorded, b'"a":1', b'"a":2')
    ran = noetl("store", "check")
    assert ran.code == 0
    assert "of an older release without a checksum" in ran.out
    assert noetl("store", "check", "-o", "json").json["unchecked_appends"] > 0
    assert noetl("executions", "verify", "latest").code == 1


@pytest.mark.parametrize("verb", ["show", "events", "result", "replay", "verify"])
def test_a_changed_digit_is_an_error_wherever_the_execution_is_read(
    noetl: InProcessCommand, recorded: RecordedExecutions, verb: str
) -> None:
    name = recorded.run(GREET, GREETED)
    change(
        recorded, "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), '\"a\":1', '\"a\":2') AS BLOB)"
    )
    ran = noetl("executions", verb, name)
    assert (ran.code, ran.out) == (3, "")
    assert f"{name}: event" in ran.err
    assert "not what was written" in ran.err
    assert "hint: restore the store from a copy" in ran.err
    checked = noetl("store", "check")
    assert checked.code == 1
    assert len([line for line in checked.out.splitlines() if "not what was written" in line]) >= 1
    assert noetl("store", "check", "--rebuild").code == 1


def test_a_changed_document_is_an_error(noetl: InProcessCommand, recorded: RecordedExecutions) -> None:
    name = recorded.run(GREET, GREETED)
    change(recorded, "UPDATE playbook SET document = CAST(document || ' ' AS BLOB)")
    ran = noetl("executions", "show", name)
    assert (ran.code, ran.out) == (3, "")
    assert "is not what was written" in ran.err
    assert noetl("store", "check").out.count("is not what was written") == 1
    change(recorded, "UPDATE playbook SET checksum = NULL")
    assert noetl("executions", "show", name).code == 0


def test_migrating_makes_a_store_once(noetl: InProcessCommand, tmp_path: Path) -> None:
    made = noetl("store", "migrate", "-o", "json").json
    assert (made["from"], made["version"]) == (0, SCHEMA_VERSION)
    assert (tmp_path / ".noetl" / ".gitignore").read_text() == "*\n"
    again = noetl("store", "migrate", "-o", "json").json
    assert (again["from"], again["version"]) == (SCHEMA_VERSION, SCHEMA_VERSION)
    assert "nothing to do" in noetl("store", "migrate").out
    assert noetl("store", "migrate", "--store", "sqlite:///other.db").code == 0
    assert (tmp_path / "other.db").is_file()


def test_a_store_of_a_newer_release_is_left_alone(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    recorded.run(GREET, GREETED)
    change(recorded, "PRAGMA user_version = 99")
    for words in (["store", "migrate"], ["store", "check"], ["executions", "list"]):
        ran = noetl(*words)
        assert (ran.code, ran.out) == (3, "")
        assert "upgrade NoETL" in ran.err


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "mysql://x", "sqlite:///"])
def test_a_store_that_is_no_file_cannot_be_migrated(noetl: InProcessCommand, url: str) -> None:
    ran = noetl("store", "migrate", "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert "sqlite:///" in ran.err


def test_pruning_keeps_as_many_days_as_are_asked_for(
    noetl: InProcessCommand, recorded: RecordedExecutions
) -> None:
    name = recorded.run(GREET, GREETED)
    assert noetl("store", "prune", "--days", "36500", "-o", "json").json["executions"] == []
    assert name in noetl("store", "prune", "--dry-run").out
    assert noetl("store", "prune", "-o", "json").json["executions"] == [name]
    assert noetl("executions", "list", "-o", "json").json["executions"] == []
