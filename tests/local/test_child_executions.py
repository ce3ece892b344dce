"""Playbooks that run playbooks, by the real command."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import COMMAND, environment, run
from tests.playbooks import document_of

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\n"


def playbook(folder: Path, path: str, text: str, more: str = "") -> None:
    file = folder / f"{path}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{HEADER}metadata: {{name: it, path: {path}, version: '2'}}\n{more}workflow:\n{text}")


def ran(folder: Path, *words: str, code: int = 0) -> Any:
    done = run("run", "parent.yaml", "-q", "-o", "json", *words, cwd=folder)
    assert done.code == code, done
    return done.json


def children_of(folder: Path, name: str) -> list[dict[str, Any]]:
    done = run("executions", "show", name, "-o", "json", cwd=folder)
    children: list[dict[str, Any]] = done.json["children"]
    return children


def parent(text: str) -> str:
    return document_of(f"- step: start\n{text}")


def test_a_hundred_children_wait_in_one_slot(tmp_path: Path) -> None:
    """One slot for all: were it held while a child runs, none of them could."""
    playbook(
        tmp_path,
        "shop/square",
        """\
- step: start
  tool: {kind: python, args: {n: "{{ workload.n }}"}, code: "result = n * n"}
  next: {arcs: [{step: end, args: {square: "{{ event.result }}"}}]}
- step: end
  tool: {kind: noop, args: {n: "{{ workload.n }}", square: "{{ args.square }}"}}
""",
        "workload: {n: 0}\n",
    )
    (tmp_path / "parent.yaml").write_text(
        parent("""\
  loop: {in: "{{ range(100) | list }}", iterator: i, spec: {mode: parallel, max_in_flight: 100}}
  tool: {kind: playbook, path: shop/square, args: {n: "{{ i }}"}}
""")
    )
    done = ran(tmp_path, "--slots", "1")
    assert done["result"] == [{"n": n, "square": n * n} for n in range(100)]
    children = children_of(tmp_path, done["execution_id"])
    assert [child["status"] for child in children] == ["completed"] * 100
    assert len({child["execution_id"] for child in children}) == 100


def test_children_within_children_need_one_slot(tmp_path: Path) -> None:
    playbook(
        tmp_path,
        "leaf",
        '- step: start\n  tool: {kind: noop, args: {n: "{{ workload.n }}"}}\n',
        "workload: {n: 0}\n",
    )
    playbook(
        tmp_path,
        "middle",
        """\
- step: start
  tool:
    - {name: call, kind: playbook, path: leaf, payload: {n: "{{ workload.n + 1 }}"}}
    - {name: more, kind: noop, args: {n: "{{ call.n + 10 }}"}}
""",
        "workload: {n: 0}\n",
    )
    (tmp_path / "parent.yaml").write_text(
        parent("  tool: {kind: playbook, path: middle, version: 2, args: {n: 5}}\n")
    )
    assert ran(tmp_path, "--slots", "1")["result"] == {"n": 16}


def test_a_large_result_of_a_child_comes_whole(tmp_path: Path) -> None:
    playbook(
        tmp_path,
        "large",
        "- step: start\n  tool: {kind: python, code: \"result = ['x' * 1000] * 300\"}\n",
    )
    (tmp_path / "parent.yaml").write_text(
        parent("""\
  tool:
    - {name: call, kind: playbook, path: large}
    - {name: count, kind: python, args: {rows: "{{ call }}"}, code: "result = [len(rows), len(rows[299])]"}
""")
    )
    assert ran(tmp_path)["result"] == [300, 1000]


def test_what_a_child_says_of_its_end_is_seen_by_policies(tmp_path: Path) -> None:
    playbook(tmp_path, "bad", "- step: start\n  tool: {name: divide, kind: python, code: 1 / 0}\n")
    (tmp_path / "parent.yaml").write_text(
        parent("""\
  tool:
    - name: call
      kind: playbook
      path: bad
      spec:
        policy:
          rules:
            - when: "{{ outcome.error.kind == 'child_failed' and outcome.playbook.status == 'failed' }}"
              then: {do: continue, set_ctx: {why: "{{ outcome.error.message }}", child: "{{ outcome.playbook.execution_id }}"}}
    - {name: end, kind: noop, args: {why: "{{ ctx.why }}", child: "{{ ctx.child }}"}}
""")
    )
    done = ran(tmp_path)
    (child,) = children_of(tmp_path, done["execution_id"])
    assert done["result"]["child"] == child["execution_id"]
    assert "division by zero" in done["result"]["why"]


def test_a_child_that_takes_too_long_is_named_and_cancelled(tmp_path: Path) -> None:
    playbook(tmp_path, "slow", "- step: start\n  tool: {kind: wait, seconds: 1000}\n")
    (tmp_path / "parent.yaml").write_text(
        parent("""\
  tool:
    - name: call
      kind: playbook
      path: slow
      spec:
        timeout: 1
        policy:
          rules:
            - when: "{{ outcome.error.kind == 'timeout' }}"
              then: {do: continue, set_ctx: {why: "{{ outcome.error.message }}", child: "{{ outcome.playbook.execution_id }}"}}
    - {name: end, kind: noop, args: {why: "{{ ctx.why }}", child: "{{ ctx.child }}"}}
""")
    )
    done = ran(tmp_path)
    (child,) = children_of(tmp_path, done["execution_id"])
    assert child["status"] == "cancelled"
    why = f"the child {child['execution_id']} was not done within 1 s"
    assert done["result"] == {"why": why, "child": child["execution_id"]}


def test_cancelling_reaches_all_that_is_below(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    leaf = "- step: start\n  tool: {kind: shell, command: echo on > started; sleep 1000}\n"
    playbook(tmp_path, "leaf", leaf)
    playbook(
        tmp_path,
        "middle",
        """\
- step: start
  loop: {in: [1, 2, 3], iterator: i, spec: {mode: parallel}}
  tool: {kind: playbook, path: leaf}
""",
    )
    (tmp_path / "parent.yaml").write_text(parent("  tool: {kind: playbook, path: middle}\n"))
    with subprocess.Popen(
        [*COMMAND, "run", "parent.yaml", "-o", "json"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stderr
            name = next(
                line.split()[1].rstrip(",") for line in running.stderr if line.startswith("execution ")
            )
            with os.fdopen(os.open(tmp_path / "started", os.O_RDWR)) as started:
                assert [started.readline() for _ in range(3)] == ["on\n"] * 3
            assert run("executions", "cancel", name, cwd=tmp_path).code == 0
            out, _ = running.communicate()
        finally:
            running.kill()
    assert json.loads(out)["status"] == "cancelled"
    listed = run("executions", "list", "-o", "json", cwd=tmp_path).json["executions"]
    assert [child["status"] for child in listed] == ["cancelled"] * 5


@pytest.mark.parametrize(
    ("executor", "most"), [("", 32), ("executor: {kind: local, spec: {max_depth: 3}}\n", 3)]
)
def test_a_chain_without_end_is_refused(tmp_path: Path, executor: str, most: int) -> None:
    playbook(
        tmp_path,
        "again",
        '- step: start\n  tool: {kind: playbook, path: again, args: {n: "{{ workload.n + 1 }}"}}\n',
        executor + "workload: {n: 0}\n",
    )
    (tmp_path / "parent.yaml").write_text(parent("  tool: {kind: playbook, path: again}\n"))
    done = ran(tmp_path, code=1)
    assert done["error"]["kind"] == "child_failed"
    message = done["error"]["message"]
    assert f"failed: more than {most} executions start one another" in message
    assert message.count("the child") == 2, message
    listed = run("executions", "list", "--limit", "100", "-o", "json", cwd=tmp_path).json["executions"]
    assert len(listed) == most + 2
    assert {child["status"] for child in listed} == {"failed"}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("path: nowhere", "no playbook `nowhere`"),
        ("path: shop/it, version: 7", "no playbook `shop/it` of version 7"),
    ],
)
def test_a_child_that_is_not_there_is_told_before_anything_happens(
    tmp_path: Path, task: str, message: str
) -> None:
    playbook(tmp_path, "shop/it", "- step: start\n  tool: {kind: noop}\n")
    (tmp_path / "parent.yaml").write_text(parent(f"  tool: {{kind: playbook, {task}}}\n"))
    done = run("run", "parent.yaml", "-q", "-o", "json", cwd=tmp_path)
    assert done.code != 0
    assert message in done.out + done.err
    assert not run("executions", "list", "-o", "json", cwd=tmp_path).json["executions"]


def failure_report(folder: Path, *words: str) -> list[str]:
    """What `run` says at the end of a failure, and `show` too."""
    failed = run("run", "parent.yaml", *words, cwd=folder)
    assert failed.code == 1
    lines = failed.err.splitlines()
    report = lines[next(at for at, line in enumerate(lines) if line.startswith("failed after")) :]
    page = run("executions", "show", "latest", cwd=folder).out.splitlines()
    assert page[: len(report)] == report
    return report


def test_the_failure_of_a_child_is_told_with_its_place_and_how_to_go_on(tmp_path: Path) -> None:
    playbook(tmp_path, "bad", "- step: start\n  tool: {name: divide, kind: python, code: 1 / 0}\n")
    playbook(tmp_path, "middle", "- step: start\n  tool: {name: call, kind: playbook, path: bad}\n")
    (tmp_path / "parent.yaml").write_text(parent("  tool: {kind: playbook, path: middle}\n"))
    report = failure_report(tmp_path)
    details = run("executions", "show", "latest", "-o", "json", cwd=tmp_path).json
    (middle,) = details["children"]
    (bad,) = children_of(tmp_path, middle["execution_id"])
    at = report.index(f"  child middle {middle['execution_id']}: failed")
    assert report[at : at + 8] == [
        f"  child middle {middle['execution_id']}: failed",
        f"  child bad {bad['execution_id']}: failed",
        "    step `start`, task `divide`, attempt 1: python",
        "      ZeroDivisionError: division by zero",
        "",
        f"    {tmp_path / 'bad.yaml'}:6:44",
        "        6 |   tool: {name: divide, kind: python, code: 1 / 0}",
        "          |                                            ^",
    ]
    assert "    traceback:" in report[at:]
    assert [line.split("  ")[1] for line in report[-4:]] == [
        f"noetl executions retry {bad['execution_id']} --playbook {tmp_path / 'bad.yaml'}",
        f"noetl executions retry {details['execution_id']}",
        f"noetl executions show {details['execution_id']}",
        f"noetl executions show {bad['execution_id']}",
    ]
    text = (tmp_path / "bad.yaml").read_text()
    (tmp_path / "bad.yaml").write_text(text.replace("1 / 0", "result = 7"))
    for line in report[-4:-2]:
        last = run(*line.split("  ")[1].split()[1:], "-q", cwd=tmp_path)
        assert last.code == 0
    assert last.out == "7\n"


def test_a_passing_failure_of_a_child_recommends_a_retry_of_the_parent(tmp_path: Path) -> None:
    playbook(tmp_path, "bad", "- step: start\n  tool: {name: no, kind: shell, command: ['false']}\n")
    (tmp_path / "parent.yaml").write_text(parent("  tool: {kind: playbook, path: bad}\n"))
    report = failure_report(tmp_path)
    verbs = [line.split()[2] for line in report[-3:]]
    assert (verbs, "--playbook" in "".join(report)) == (["retry", "show", "show"], False)


def test_what_a_failed_child_printed_is_in_the_report_of_its_parent(tmp_path: Path) -> None:
    playbook(
        tmp_path, "bad", "- step: start\n  tool: {name: no, kind: shell, command: 'echo last words; false'}\n"
    )
    (tmp_path / "parent.yaml").write_text(parent("  tool: {kind: playbook, path: bad}\n"))
    report = failure_report(tmp_path)
    at = report.index("    printed:")
    assert report[at + 1] == "      last words"
    assert [line.split()[2] for line in report[-4:]] == ["retry", "show", "show", "logs"]
    ended = run("executions", "watch", "latest", cwd=tmp_path).err.splitlines()
    assert ended[-len(report) :] == report


def test_a_child_that_stands_in_its_parent_is_repaired_there(tmp_path: Path) -> None:
    text = parent("""\
  loop: {in: [1, 0], iterator: n}
  tool:
    kind: playbook
    args: {n: "{{ iter.n }}"}
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: inline, path: inline}
      workload: {n: 0}
      workflow:
      - step: start
        tool: {name: divide, kind: python, args: {n: "{{ workload.n }}"}, code: result = 1 / n}
""")
    (tmp_path / "parent.yaml").write_text(text)
    report = failure_report(tmp_path)
    assert "    step `start`, task `divide`, attempt 1: python" in report
    retry, same = [line.split("  ")[1] for line in report if " retry " in line]
    assert retry == f"{same} --playbook parent.yaml"
    (tmp_path / "parent.yaml").write_text(text.replace("1 / n", "n"))
    done = run(*retry.split()[1:], "-q", "-o", "json", cwd=tmp_path)
    assert (done.code, done.json["result"]) == (0, [1, 0])


def test_children_that_are_gone_or_were_repaired_since_are_no_obstacle(tmp_path: Path) -> None:
    playbook(tmp_path, "bad", "- step: start\n  tool: {name: divide, kind: python, code: 1 / 0}\n")
    (tmp_path / "parent.yaml").write_text(parent("  tool: {kind: playbook, path: bad}\n"))
    report = failure_report(tmp_path)
    text = (tmp_path / "bad.yaml").read_text()
    (tmp_path / "bad.yaml").write_text(text.replace("1 / 0", "result = 7"))
    repair = next(line for line in report if "--playbook" in line).split("  ")[1]
    assert run(*repair.split()[1:], "-q", cwd=tmp_path).code == 0
    page = run("executions", "show", "latest", cwd=tmp_path).out.splitlines()
    child = repair.split()[3]
    assert f"  child bad {child}: completed" in page
    assert not any("--playbook" in line for line in page)


def test_what_children_print_is_among_the_logs(tmp_path: Path) -> None:
    playbook(tmp_path, "talk", "- step: start\n  tool: {name: say, kind: python, code: print('hello')}\n")
    (tmp_path / "parent.yaml").write_text(
        parent("""\
  tool:
    - {name: before, kind: python, code: print('before')}
    - {name: call, kind: playbook, path: talk}
    - {name: after, kind: python, code: print('after')}
""")
    )
    ran(tmp_path)
    lines = run("executions", "logs", "latest", cwd=tmp_path).out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        "start/before  before",
        "[talk] start/say  hello",
        "start/after  after",
    ]
