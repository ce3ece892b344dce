"""What runs in workers of a server goes as it goes in one process."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import noetl
from noetl.kernel.net.commands import Pause, Resume, Signal
from tests.plane.plane_processes import HELD, MeetingPoint, Plane, counted_kinds, document, kinds

CHAIN = """\
workload: {n: 2}
workflow:
- step: start
  tool: {kind: noop, set: {ctx.seen: "{{ workload.n }}"}}
  next: {arcs: [{step: double, args: {n: "{{ ctx.seen }}"}}]}
- step: double
  tool:
  - double: {kind: python, args: {n: "{{ args.n }}"}, code: "def main(n):\\n    print('doubling')\\n    return n * 2"}
  - keep: {kind: noop, set: {ctx.doubled: "{{ _prev }}"}}
  next: {spec: {mode: exclusive}, arcs: [{step: large, when: "{{ ctx.doubled > 3 }}"}, {step: small}]}
- step: large
  tool: {kind: python, args: {n: "{{ ctx.doubled }}"}, code: "def main(n):\\n    return {'large': n}"}
- step: small
  tool: {kind: noop}
"""

LOOP = """\
workflow:
- step: start
  loop: {in: [3, 1, 2], iterator: n, spec: {mode: sequential}}
  tool:
  - square: {kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return n * n"}
  - add: {kind: noop, set: {ctx.total: "{{ (ctx.total | default(0)) + _prev }}"}, args: {square: "{{ _prev }}"}}
"""

PARALLEL = """\
workflow:
- step: start
  loop: {in: "{{ range(12) | list }}", iterator: n, spec: {mode: parallel, max_in_flight: 4, reduce: {ctx.sum: sum}}}
  tool: {kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return n", set: {ctx.sum: "{{ outcome.result }}"}}
  next: {arcs: [{step: after}]}
- step: after
  tool: {kind: noop, args: {sum: "{{ ctx.sum }}"}}
"""

RETRIES = """\
workflow:
- step: start
  tool:
  - shaky:
      kind: python
      args: {attempt: "{{ _attempt }}"}
      code: "def main(attempt):\\n    if attempt < 3:\\n        raise ValueError('not yet')\\n    return attempt"
      spec: {policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 3, delay: 0.05}}]}}
  - rest: {kind: wait, seconds: 0.2}
  - after: {kind: noop, args: {waited: true}}
"""

FAILURE = """\
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    raise KeyError('gone')"}
  next: {arcs: [{step: rescue, when: "{{ event.name == 'step.failed' }}"}]}
- step: rescue
  tool: {kind: noop, args: {kind: "{{ steps.start.error.kind }}"}}
"""

CHILDREN = """\
workflow:
- step: start
  loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel}}
  tool: {kind: playbook, path: tests/child, args: {n: "{{ n }}"}}
"""

CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: tests/child}
workload: {n: 0}
workflow:
- step: start
  tool: {kind: python, args: {n: "{{ workload.n }}"}, code: "def main(n):\\n    return n * 10"}
"""

DETACHED = """\
workflow:
- step: start
  tool:
  - first: {kind: playbook, path: tests/child, args: {n: "{{ ctx.turn | default(1) }}"}, spec: {wait: false}}
  - keep:
      kind: noop
      set: {ctx.turn: "{{ (ctx.turn | default(1)) + 1 }}", ctx.ids: "{{ (ctx.ids | default([])) + [first.execution_id] }}"}
      spec: {policy: {rules: [{when: "{{ ctx.turn < 3 }}", then: {do: jump, to: first}}]}}
  - last: {kind: noop, args: {ids: "{{ ctx.ids }}"}}
"""

LARGE = """\
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    return {'text': 'x' * 300000, 'n': 7}"}
  next: {arcs: [{step: measure, when: "{{ event.result.n == 7 }}", args: {text: "{{ start.text }}"}}]}
- step: measure
  tool: {kind: python, args: {text: "{{ args.text }}"}, code: "def main(text):\\n    return len(text)"}
  next: {arcs: [{step: many}]}
- step: many
  loop: {in: "{{ range(40) | list }}", iterator: n, spec: {mode: parallel}}
  tool: {kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return str(n) * 20000"}
  next: {arcs: [{step: sum}]}
- step: sum
  tool: {kind: python, args: {texts: "{{ many }}"}, code: "def main(texts):\\n    return {'lengths': [len(t) for t in texts], 'texts': texts}"}
"""

PLAYBOOKS = {
    "chain": CHAIN,
    "loop": LOOP,
    "parallel": PARALLEL,
    "retries": RETRIES,
    "failure": FAILURE,
    "children": CHILDREN,
    "large": LARGE,
}
IN_ANY_ORDER = {"parallel", "children", "large"}
"""Those in which several things happen at once."""


def run_in_process(folder: Path, text: str, **workload: Any) -> tuple[noetl.Execution, list[dict[str, Any]]]:
    file = folder / "playbook.yaml"
    file.write_text(document(text), "utf-8")
    execution = noetl.run(str(file), workload, store=f"sqlite:///{folder / '.noetl' / 'store.db'}")
    return execution, noetl.open(folder / ".noetl").events(execution.execution_id)


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_a_worker_of_a_server_gives_what_one_process_gives(plane: Plane, tmp_path: Path, name: str) -> None:
    for folder in (plane.playbooks, tmp_path):
        (folder / "child.yaml").write_text(CHILD, "utf-8")
    expected, expected_events = run_in_process(tmp_path, PLAYBOOKS[name])
    execution_id = plane.start(PLAYBOOKS[name])
    ended = plane.end(execution_id)
    events = plane.events(execution_id)
    assert (ended["status"], ended["error"]) == (expected.status, expected.error)
    assert ended["result"] == expected.result
    assert ended["ctx"] == expected.ctx
    assert ended["steps"] == expected.steps
    if name in IN_ANY_ORDER:
        assert counted_kinds(events) == counted_kinds(expected_events)
    else:
        assert kinds(events) == kinds(expected_events)


def test_a_child_that_nobody_waits_for_is_started_also_when_its_parent_is_through_at_once(
    plane: Plane,
) -> None:
    (plane.playbooks / "child.yaml").write_text(CHILD, "utf-8")
    children = plane.run(DETACHED)["result"]["ids"]
    assert len(set(children)) == 2
    for child in children:
        plane.wait_for(child, "PlaybookProcessed")
    assert [plane.executions.show(child).result for child in children] == [10, 20]


def test_claims_name_the_worker_and_its_session(plane: Plane) -> None:
    execution_id = plane.start(CHAIN)
    plane.end(execution_id)
    claims = [event for event in plane.events(execution_id) if event["name"] == "TokenClaimed"]
    assert len(claims) == 3
    assert {len(claim["data"]["session"]) for claim in claims} == {32}
    assert len({claim["data"]["session"] for claim in claims}) == 1


def test_what_tasks_print_is_in_the_log_of_the_server(plane: Plane) -> None:
    execution_id = plane.start(CHAIN)
    plane.end(execution_id)
    log = (plane.home / "logs" / f"{execution_id}.jsonl").read_text("utf-8")
    assert '"text":"doubling"' in log


TALKATIVE = """\
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    for n in range(900):\\n        print(n, 'x' * 9000)\\n    print('the last')"}
"""


def test_much_that_is_printed_comes_in_pieces(plane: Plane) -> None:
    execution_id = plane.start(TALKATIVE)
    plane.end(execution_id)
    lines = (plane.home / "logs" / f"{execution_id}.jsonl").read_text("utf-8").splitlines()
    assert '"text":"the last"' in lines[-1]


SECRET = """\
keychain:
- {name: door, kind: env, env: PLANE_SECRET}
workflow:
- step: start
  tool:
    kind: python
    args: {word: "{{ keychain.door.value }}"}
    code: "def main(word):\\n    return {'length': len(word), 'word': word}"
"""


def test_a_secret_is_had_by_the_worker_and_stands_nowhere(plane: Plane) -> None:
    execution_id = plane.start(SECRET)
    ended = plane.end(execution_id)
    assert (ended["status"], ended["result"]["length"]) == ("completed", 14)
    stored = b"".join(path.read_bytes() for path in plane.home.rglob("*") if path.is_file())
    assert b"open sesame" not in stored


WAITING = """\
workflow:
- step: start
  tool:
  - gate: {kind: wait, signal: go}
  - after: {kind: noop, args: {word: "{{ _prev }}"}}
"""


def test_a_signal_wakes_a_run_that_no_worker_holds(plane: Plane) -> None:
    execution_id = plane.start(WAITING)
    plane.executions.signal(execution_id, "go", {"by": "me"})
    assert plane.end(execution_id)["result"] == {"word": {"by": "me"}}


def test_a_cancelled_execution_ends_within_two_seconds(plane: Plane, meeting: MeetingPoint) -> None:
    execution_id = plane.start(HELD, port=meeting.port)
    guest = meeting.next_guest()
    plane.executions.cancel(execution_id)
    guest.wait_until_killed()
    assert plane.end(execution_id)["status"] == "cancelled"
    times = {event["name"]: event["timestamp"] for event in plane.events(execution_id)}
    requested, ended = (
        datetime.fromisoformat(times[name]) for name in ("CancelRequested", "PlaybookProcessed")
    )
    assert (ended - requested).total_seconds() < 2


def test_a_paused_execution_lets_go_at_the_next_task_and_goes_on_later(
    plane: Plane, meeting: MeetingPoint
) -> None:
    execution_id = plane.start(HELD, port=meeting.port)
    guest = meeting.next_guest()
    plane.submit(execution_id, Pause())
    # The worker hears of things in their order: when it has done something else, it knows of the pause.
    plane.end(plane.start(CHAIN))
    guest.let_go("first")
    plane.wait_for(execution_id, "RunSuspended")
    assert plane.executions.show(execution_id).status == "paused"
    plane.submit(execution_id, Resume())
    assert plane.end(execution_id)["result"] == {"word": "first"}


HALF_WAITING = HELD.replace(
    """- step: start
  tool:
""",
    """- step: start
  loop: {in: [0, 1], iterator: n, spec: {mode: parallel}}
  tool:
  - choose: {kind: noop, spec: {policy: {rules: [{when: "{{ n == 0 }}", then: {do: jump, to: meet}}]}}}
  - gate: {kind: wait, signal: go}
""",
)


def test_an_iteration_that_a_signal_wakes_goes_on_in_the_worker_that_has_the_run(
    plane: Plane, meeting: MeetingPoint
) -> None:
    execution_id = plane.start(HALF_WAITING, port=meeting.port)
    first = meeting.next_guest()
    plane.submit(execution_id, Signal("go"))
    second = meeting.next_guest()
    assert second.text != first.text
    assert first.is_alive
    second.let_go("second")
    first.let_go("first")
    assert plane.end(execution_id)["result"] == [{"word": "first"}, {"word": "second"}]
    claims = [event for event in plane.events(execution_id) if event["name"] == "TokenClaimed"]
    assert len(claims) == 1
