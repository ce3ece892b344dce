"""Pictures of executions: what ran, how often, how long, and which ways were taken."""

from pathlib import Path

from noetl.kernel.net.commands import LeaseLost
from noetl.kernel.pipeline.moves import RunTask
from noetl.model.outcome import Outcome, succeeded
from tests.executions.in_process_command import InProcessCommand
from tests.executions.recorded_executions import RecordedExecutions
from tests.kernel.driver import error

ROUTED = """\
workflow:
  - step: start
    tool: {name: read, kind: noop}
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: work, when: "{{ event.name == 'step.done' }}"}
        - {step: work}
        - {step: end, when: "{{ event.result == 5 }}"}
  - step: work
    tool:
      name: fetch
      kind: http
      url: http://example.org
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3}}]}}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
"""


def test_the_picture_of_an_execution_tells_arcs_attempts_and_times(
    noetl: InProcessCommand, recorded: RecordedExecutions, tmp_path: Path
) -> None:
    execution = recorded.begin(ROUTED)
    lost: list[str] = []

    def fetch(_call: object) -> Outcome:
        execution.driver.now += 1_500_000
        turn = execution.driver.turns["calls"] = execution.driver.turns.get("calls", 0) + 1
        return error() if turn == 1 else succeeded(turn)

    execution.driver.script["fetch"] = fetch
    execution.start()
    while execution.driver.state.ready:
        run = execution.driver.claim(execution.driver.state.ready.first)
        if run.step.name == "work" and not lost:
            # A worker that is lost in the middle of an attempt makes no other attempt of it.
            move = execution.driver.advance(run)
            assert isinstance(move, RunTask)
            execution.driver.report(run, *move.begins)
            lost.append(run.id)
            execution.driver.submit(LeaseLost(run.id, run.fence))
        else:
            execution.driver.work(run)
    execution.driver.run()
    execution.save()
    picture = noetl("graph", "--execution", "latest", "--format", "dot").out
    assert "work (completed)\\l2 runs · fetch: 3 attempts · 4.5 s\\l" in picture
    edges = [line.split(", tooltip")[0].strip() for line in picture.splitlines() if "->" in line]
    assert edges[:2] == ['s0 -> s1 [label="+ ✓"', 's0 -> s1 [label="+"']
    assert ["style=dotted" in line for line in picture.splitlines() if "->" in line] == [
        False,
        False,
        True,
        False,
    ]
    assert edges[3] == 's1 -> s2 [label="2\u00d7"'
    moved = execution.text.replace("- {step: work}", "- {step: other}\n        - {step: work}")
    (tmp_path / "now.yaml").write_text(moved + "  - step: other\n    tool: {kind: noop}\n")
    other = noetl("graph", "now.yaml", "--execution", "latest", "--format", "dot").out
    assert ["style=dotted" in line for line in other.splitlines() if "->" in line] == [
        False,
        True,
        True,
        True,
        False,
    ]
