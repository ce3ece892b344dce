"""The examples do what they say, run by the command that each of them gives."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import noetl
from tests.cli.command_line import COMMAND, CompletedCommand, environment, run
from tests.examples.example_api import ExampleApi, example_api
from tests.examples.test_examples import EXAMPLES, PLAYBOOKS

ELSEWHERE = "http://127.0.0.1:8000"
"""The server that the HTTP examples name."""

LOCAL = "postgresql://postgres@localhost/postgres"
"""The database that the PostgreSQL examples name."""

IN_USE: dict[str, Any] = {
    "named_results": {"mean": 13.5, "total": 40.5},
    "failure_route": {"reason": "python"},
    "fan_in": {"sum": 3},
    "loop_words": {"lines": ["IRON iron 1/3", "TIN tin 2/3", "ZINC zinc 3/3"], "total": 3},
    "task_retry": {"failed": "process_exit"},
    "keychain_and_workbook": {"greeting": "hello Ann", "signed": 16},
}
"""What those give that are written as the language is in use. Each has a twin, upgraded."""

RESULTS: dict[str, Any] = {
    **IN_USE,
    **{f"{name}_canonical": result for name, result in IN_USE.items()},
    "quickstart": {
        "message": "*** Hello, Ada! ***",
        "next": "change the name with --set name=Ada, then look at examples/retry.yaml",
    },
    "conditional_routing": {"order": 1001, "desk": "automatic", "hours": 0},
    "retry": {"answer": 42, "calls": 3},
    "parallel_loop": {"texts": ["tortoise", "fox", "crow"], "words": 21, "longest_word": 6},
    "best_effort_loop": {
        "mean": 9.25,
        "good": 3,
        "sources": [0, 2, 3],
        "bad": [
            {"reading": "n/a", "why": "ValueError: could not convert string to float: 'n/a'"},
            {"reading": "", "why": "ValueError: could not convert string to float: ''"},
        ],
    },
    "distributed_loop": {"primes": 168, "largest": 997, "in_the_first_range": 15},
    "fan_out_join": {"total": 31, "spread": 8, "ranking": [9, 6, 5]},
    "first_answer": {"from": "near"},
    "gate": {"order": 1001, "shipped": True},
    "error_handling": {
        "status": "asked for another card",
        "reason": "ValueError: 250 is over the limit of 100",
    },
    "workbook": {"kelvin": [291.65, 294.15, 292.65], "fahrenheit": [65.3, 69.8, 67.1]},
    "parent": {"total": 515, "best_region": "north"},
    "child": {"region": "east", "total": 30, "best": 20},
    "etl_duckdb": [
        {"day": "2026-03-01", "orders": "2", "amount": "155"},
        {"day": "2026-03-02", "orders": "1", "amount": "260"},
    ],
    "duckdb_tables": {
        "high": 16_534,
        "mean": 89.0,
        "most": [{"sensor": "s1", "high": 3_638}, {"sensor": "s2", "high": 3_469}],
    },
    "http_request": {"receipt": "r-1001-42", "amount": 42},
    "sqlite_inventory": {"order": [{"sku": "A-1", "quantity": 96}, {"sku": "C-3", "quantity": 91}]},
    "pagination": [
        {"endpoint": "users", "pages": 2, "found": [{"id": 1}, {"id": 2}, {"id": 3}]},
        {"endpoint": "orders", "pages": 1, "found": [{"id": 10}]},
    ],
}
"""What the examples give that run to their end without anybody's help, by the name of the file."""

APART = {
    "api_to_postgres",
    "postgres_transfer",
    "polling",
    "final_step",
    "retry_after_failure",
    "approval_gate",
    "wait_for_signal",
    "shell_files",
}
"""Those that have a test of their own below."""


def command_of(path: Path) -> list[str]:
    """The arguments of the command that the example says it is run with."""
    match = re.search(r"^# Run it with: noetl (run .+)$", path.read_text("utf-8"), re.MULTILINE)
    assert match, f"{path.name} does not say how to run it"
    return shlex.split(match[1])


def others_of(path: Path) -> list[str]:
    """The commands that it names beside that one."""
    text = path.read_text("utf-8")
    return re.findall(r"^# (?:then|and .+?): (.+)$", text, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the examples in it, as in a checkout."""
    folder = tmp_path / "here"
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder


@pytest.fixture
def api() -> Iterator[ExampleApi]:
    with example_api() as api:
        yield api


def example(name: str) -> Path:
    return EXAMPLES / f"{name}.yaml"


def execution_of(ran: CompletedCommand) -> dict[str, Any]:
    assert ran.out, ran.err
    execution: dict[str, Any] = ran.json
    return execution


ELSEWHERE_TESTED = {"quantum_sweep"}
"""Those that need more than the tests install: `scripts/test --quantum` runs it."""


def test_every_example_is_run() -> None:
    assert {path.stem for path in PLAYBOOKS} == set(RESULTS) | APART | ELSEWHERE_TESTED
    assert not set(RESULTS) & APART


@pytest.mark.parametrize(
    "path", [path for path in PLAYBOOKS if path.stem in RESULTS], ids=lambda path: path.stem
)
def test_an_example_gives_its_result(path: Path, folder: Path, api: ExampleApi) -> None:
    command = [part.replace(ELSEWHERE, api.url) for part in command_of(path)]
    ran = run(*command, "-q", "-o", "json", cwd=folder)
    execution = execution_of(ran)
    assert (ran.code, ran.err, execution["status"], execution["error"]) == (0, "", "completed", None)
    assert execution["result"] == RESULTS[path.stem]
    assert execution["discarded"] == []


@pytest.mark.parametrize("name", IN_USE)
def test_an_upgraded_twin_is_what_upgrade_prints_and_leaves_the_same_ctx(name: str) -> None:
    path, twin = EXAMPLES / "in_use" / f"{name}.yaml", EXAMPLES / "in_use" / f"{name}_canonical.yaml"
    upgraded = noetl.load(path).document
    assert isinstance(upgraded, dict)
    metadata = {**upgraded["metadata"], "path": f"examples/in_use/{name}_canonical"}  # type: ignore[dict-item]  # a mapping
    assert noetl.load(twin).document == {**upgraded, "metadata": metadata}
    first, second = (noetl.run(file, store="sqlite:///:memory:") for file in (path, twin))
    assert (first.result, first.ctx, first.steps) == (second.result, second.ctx, second.steps)


def test_a_job_is_polled_until_it_is_done(folder: Path) -> None:
    command = command_of(example("polling"))
    execution = execution_of(run(*command, "--set", "interval=0", "-q", "-o", "json", cwd=folder))
    assert execution["result"] == {"job_id": f"job-{execution['execution_id'][-6:]}", "rows": [1, 2, 3]}
    few = run(*command, "--set", "interval=0", "--set", "max_polls=2", "-q", "-o", "json", cwd=folder)
    assert (few.code, few.json["error"]["kind"]) == (1, "retry_exhausted")


def test_a_busy_server_is_asked_again_and_a_missing_order_is_no_failure(
    folder: Path, api: ExampleApi
) -> None:
    command = [part.replace(ELSEWHERE, api.url) for part in command_of(example("http_request"))]
    assert run(*command, "-q", cwd=folder).code == 0
    assert api.requests[:2] == [("GET", "/orders/1001")] * 2
    assert api.requests[2][0] == "POST"
    missing = execution_of(run(*command, "--set", "order=7", "-q", "-o", "json", cwd=folder))
    assert missing["result"] == {"receipt": None, "why": "there is no order 7"}
    assert (missing["status"], missing["steps"]["start"]["status"]) == ("completed", "failed")


def test_money_moves_in_one_transaction_or_not_at_all(folder: Path, dsn: str) -> None:
    command = command_of(example("postgres_transfer"))[:2]
    moved = execution_of(run(*command, "--set", f"dsn={dsn}", "-q", "-o", "json", cwd=folder))
    assert moved["result"] == [{"owner": "Ada", "balance": 70}, {"owner": "Bo", "balance": 50.5}]
    refused = run(*command, "--set", f"dsn={dsn}", "--set", "amount=1000", "-q", "-o", "json", cwd=folder)
    assert (refused.code, refused.json["status"]) == (0, "completed")
    assert refused.json["result"] == {"refused": 1000, "why": "not_overdrawn"}
    assert refused.json["steps"]["transfer"]["status"] == "failed"


def test_products_go_from_an_api_into_a_table(folder: Path, api: ExampleApi, dsn: str) -> None:
    path = example("api_to_postgres")
    (store,) = others_of(path)
    program, *arguments = shlex.split(store.replace(LOCAL, dsn))
    assert program == "noetl"
    assert run(*arguments, cwd=folder).code == 0
    command = [part.replace(ELSEWHERE, api.url) for part in command_of(path)]
    for _ in range(2):
        ran = run(*command, "-q", "-o", "json", cwd=folder, env={"API_TOKEN": "let me in"})
        execution = execution_of(ran)
        assert (execution["error"], execution["result"]["rows"]) == (None, [{"products": 2, "highest": 9.5}])


def test_the_output_of_a_program_goes_into_a_file_and_back(folder: Path) -> None:
    command = [*command_of(example("shell_files")), "--set", f"report={folder}/disk.json", "-q", "-o", "json"]
    result = execution_of(run(*command, cwd=folder))["result"]
    assert result == json.loads((folder / "disk.json").read_text("utf-8"))
    assert result.keys() == {"free_kb", "used"}


def test_the_final_step_runs_after_failure_and_after_success(folder: Path) -> None:
    command = command_of(example("final_step"))
    failed = run(*command, "-q", "-o", "json", cwd=folder)
    assert (failed.code, failed.json["error"]["step"]) == (1, "start")
    assert failed.json["ctx"]["report"] == {"status": "failed", "completed": []}
    good = execution_of(run(*command[:2], "-q", "-o", "json", cwd=folder))
    assert good["result"] == {"scaled": 75.0}
    assert good["ctx"]["report"] == {"status": "completed", "completed": ["scale", "start"]}


def test_a_token_that_is_never_admitted_is_told_of(folder: Path) -> None:
    ran = run(*command_of(example("gate")), "--set", "paid=5", "-q", cwd=folder)
    assert (ran.code, ran.out) == (0, "paid: 5\n")
    assert ran.err.startswith("warning: 1 token for step `ship` discarded")


def test_a_failed_run_is_repaired_and_retried(folder: Path) -> None:
    path = example("retry_after_failure")
    assert run(*command_of(path), "-q", cwd=folder).code == 1
    repair, retry = others_of(path)
    subprocess.run(["sh", "-c", repair], cwd=folder, check=True)
    program, *arguments = shlex.split(retry)
    assert program == "noetl"
    retried = execution_of(run(*arguments, "-q", "-o", "json", cwd=folder))
    assert (retried["status"], retried["result"]) == ("completed", {"chf": 350, "eur": 332.5})
    assert run("executions", "logs", "latest", cwd=folder).out.count("collecting") == 1


class Waiting:
    """A run that stays until somebody sends the signal that it asks for."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.child = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.child.stderr
        self.asked = next(line for line in self.child.stderr if "send it with: " in line)

    def __enter__(self) -> "Waiting":
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.communicate()

    def end(self) -> CompletedCommand:
        out, err = self.child.communicate()
        return CompletedCommand(self.child.returncode, out, err)


@pytest.mark.parametrize(
    ("name", "command", "result"),
    [
        ("approval_gate", None, {"status": "published", "note": "Release 1.4 is ready."}),
        ("approval_gate", "noetl executions signal latest rejected", {"status": "withdrawn"}),
        ("wait_for_signal", None, {"answer": {"colour": "red"}, "assumed": False}),
    ],
)
def test_a_run_waits_for_a_signal(name: str, command: str | None, result: Any, folder: Path) -> None:
    """Sent by the command that the example names, unless another is given."""
    if command is None:
        (command,) = others_of(example(name))
    program, *arguments = shlex.split(command)
    assert program == "noetl"
    with Waiting(folder, *command_of(example(name)), "-o", "json") as waiting:
        assert "noetl executions signal " in waiting.asked
        assert run(*arguments, cwd=folder).code == 0
        ended = waiting.end()
    assert (ended.code, ended.json["status"], ended.json["result"]) == (0, "completed", result)


@pytest.mark.parametrize(
    ("name", "patience", "result"),
    [
        ("approval_gate", "patience: 86400", {"status": "nobody answered"}),
        ("wait_for_signal", "timeout: 60", {"answer": {"colour": "blue"}, "assumed": True}),
    ],
)
def test_a_wait_that_is_too_long_goes_another_way(
    name: str, patience: str, result: Any, folder: Path
) -> None:
    copy = folder / "examples" / f"{name}.yaml"
    text = copy.read_text("utf-8")
    assert text.count(patience) == 1
    copy.write_text(text.replace(patience, f"{patience.partition(':')[0]}: 0.1"), "utf-8")
    execution = execution_of(run(*command_of(example(name)), "-q", "-o", "json", cwd=folder))
    assert (execution["status"], execution["result"]) == ("completed", result)


def test_the_examples_in_python_run(tmp_path: Path) -> None:
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert [path.name for path in scripts] == ["own_tool.py"]
    done = subprocess.run(
        [sys.executable, scripts[0]],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[{'city': 'Bern', 'degrees': 12}, {'city': 'Lugano', 'degrees': 18}]\n"
    assert list(tmp_path.iterdir()) == []
