"""`timeline`, `explain`, `eval`, `diff` and `--dry-run`: the same of the embedded store and of a server."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from noetl.ports.http_api import StartExecution
from tests.cli.command_line import CompletedCommand, run
from tests.server.server_process import server_process

SHOP = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shop, path: inspected/shop}
workload: {limit: 10, total: 3}
workflow:
- step: start
  tool:
  - {name: count, kind: python, args: {n: "{{ workload.total }}"}, code: "def main(n):\\n    return {'total': n}"}
  set: {ctx.total: "{{ event.result.total }}"}
  next:
    arcs:
    - {step: big, when: "{{ ctx.total >= workload.limit }}"}
    - {step: each}
- step: each
  loop: {in: "{{ [1, 2, 3] }}", iterator: n, spec: {policy: {failure: {mode: best_effort}}}}
  tool:
  - {name: work, kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return 6 // (n - 2)"}
  next: {arcs: [{step: load}]}
- step: load
  tool: {kind: file, action: get, url: "nothing-is-here"}
- step: big
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: bigger}]}
- step: bigger
  tool: {kind: noop, args: {}}
"""


class InspectedHome(NamedTuple):
    """Where two executions are, a failed and a completed one, and how commands find them."""

    folder: Path
    env: dict[str, str]
    failed: str
    completed: str

    def __call__(self, *arguments: str, **env: str) -> CompletedCommand:
        return run("executions", *arguments, cwd=self.folder, env={**self.env, **env})

    def json(self, *arguments: str) -> Any:
        ran = self(*arguments, "-o", "json")
        assert ran.code == 0, ran
        return ran.json


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> InspectedHome:
    folder: Path = tmp_path_factory.mktemp("embedded")
    (folder / "shop.yaml").write_text(SHOP)
    failed = run("run", "shop.yaml", "-q", "-o", "json", cwd=folder)
    completed = run("run", "shop.yaml", "-q", "-o", "json", "--set", "total=12", cwd=folder)
    assert (failed.code, completed.code) == (1, 0)
    return InspectedHome(folder, {}, failed.json["execution_id"], completed.json["execution_id"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InspectedHome]:
    folder: Path = tmp_path_factory.mktemp("served")
    with server_process(folder) as server:
        ids = []
        for workload in ({}, {"total": 12}):
            started = server.client.start(StartExecution(playbook=SHOP, workload=workload))
            server.client.wait(started.execution_id)
            ids.append(started.execution_id)
        yield InspectedHome(folder, {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}, *ids)


@pytest.fixture(params=["embedded", "served"])
def home(request: pytest.FixtureRequest) -> InspectedHome:
    chosen: InspectedHome = request.getfixturevalue(request.param)
    return chosen


def test_a_timeline_fits_the_terminal(home: InspectedHome) -> None:
    for width in (40, 72, 200):
        lines = home("timeline", home.failed, COLUMNS=str(width)).out.splitlines()
        assert [line.split()[0] for line in lines[1:4]] == ["start", "each", "load"]
        assert all(len(line) <= width for line in lines), width
        assert lines[2].find("█") > lines[1].find("█")
        assert "✗" in lines[3]
        assert "✓" in lines[1]
    page = home.json("timeline", home.failed)
    assert [bar["status"] for bar in page["runs"]] == ["completed", "completed", "failed"]
    loop = page["runs"][1]["loop"]
    assert (loop["total"], loop["failed"]) == (3, 1)
    first = home("timeline", home.failed, "--at", "4").out
    assert "nothing has run" in first


def test_a_timeline_is_a_picture(home: InspectedHome) -> None:
    out = home.folder / "time.svg"
    assert home("timeline", home.failed, "-f", str(out)).code == 0
    root = ET.parse(out).getroot()  # noqa: S314 - made by the command
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"start", "each", "load"} <= set(texts)
    assert float(root.attrib["height"]) > 100


def test_a_step_that_was_not_reached_is_explained(home: InspectedHome) -> None:
    ran = home("explain", home.failed, "bigger")
    assert ran.code == 0
    assert "was not reached" in ran.out
    assert "ctx.total = 3, workload.limit = 10" in ran.out
    document = home.json("explain", home.failed, "bigger")
    assert document["verdict"] == "not_reached"
    assert document["stopped_at"][0]["through"] == ["bigger"]
    ran = home("explain", home.completed, "bigger")
    assert "start (r" in ran.out
    assert home.json("explain", home.completed, "bigger")["verdict"] == "ran"
    assert home.json("explain", home.failed, "load")["verdict"] == "failed"


def test_an_expression_is_evaluated(home: InspectedHome) -> None:
    assert home("eval", home.failed, "ctx.total + 1").out == "4\n"
    assert home.json("eval", home.failed, "{{ steps.start.result }}")["value"] == {"total": 3}
    assert home("eval", home.failed, "ctx.total | default(0)", "--at", "3").out == "0\n"
    assert home("eval", home.failed, "event.loop.failed", "--step", "each").out == "1\n"


def test_two_executions_are_compared(home: InspectedHome) -> None:
    text = home("diff", home.failed, home.completed).out
    assert "workload.total: 3 | 12" in text
    assert "each: completed" in text.replace("failed", "completed")
    document = home.json("diff", home.failed, home.completed)
    assert document["divergence"]["path"] == "workload.total"
    assert [guard["arc"] for guard in document["guards"]] == ["big"]
    assert "no difference" in home("diff", home.failed, home.failed).out


def test_a_dry_run_says_what_would_run_again(home: InspectedHome) -> None:
    events = home.json("events", home.failed)["events"]
    at = next(event["seq"] for event in events if event["name"] == "StepDone")
    preview = home.json("fork", home.failed, "--at", str(at), "--dry-run")
    assert [step["step"] for step in preview["kept"]] == ["start"]
    assert ("load", "write") in [(task["step"], task["effect"]) for task in preview["repeats"]]
    text = home("fork", home.failed, "--at", str(at), "--dry-run").out
    assert "nothing was recorded" in text
    retried = home.json("retry", home.failed, "--dry-run")
    assert retried["steps"] == ["load"]
    assert "load" in home("retry", home.failed, "--dry-run").out
    redriven = home.json("redrive", home.failed, "--dry-run")
    assert redriven["iterations"] == 1
    assert home.json("events", home.failed)["events"] == events


def test_an_execution_is_verified(home: InspectedHome) -> None:
    assert home("verify", home.failed).code == 0
    assert home.json("verify", home.completed)["ok"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "ID", "nobody"], "no step `nobody`"),
        (["explain", "ID", "start", "--at", "9999"], "there is no event 9999"),
        (["eval", "ID", "ctx.nothing"], "`ctx.nothing` is undefined"),
        (["eval", "ID", "keychain.a"], "`keychain` cannot be read"),
        (["eval", "ID", "n", "--iteration", "1"], "--iteration is one of a --step"),
        (["eval", "ID", "n", "--step", "each", "--iteration", "1"], "iteration 1 is not open"),
        (["timeline", "nobody"], "no execution `nobody`"),
        (["diff", "ID", "nobody"], "no execution `nobody`"),
        (["fork", "ID", "--at", "9999", "--dry-run"], "has no event 9999"),
        (["fork", "ID", "--at", "5", "--set", "a=1", "--dry-run"], "takes no values"),
        (["retry", "--where", "status=failed", "--dry-run"], "for one execution"),
        (["redrive", "ID", "--step", "start", "--dry-run"], "no loop at `start`"),
    ],
)
def test_what_cannot_be_seen_is_said_with_exit_code_2(
    home: InspectedHome, arguments: list[str], message: str
) -> None:
    words = [home.failed if word == "ID" else word for word in arguments]
    ran = home(*words)
    assert (ran.code, ran.out) == (2, ""), ran
    assert message in ran.err
    in_json = home(*words, "-o", "json")
    assert in_json.code == 2
    assert message in json.loads(in_json.out)["error"]["message"]
