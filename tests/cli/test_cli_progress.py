"""What is shown while an execution runs."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from noetl.cli.progress.display import LineProgress
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.progress.terminal import MOST_LINES_AT_ONCE, MOST_RUNS, TerminalProgress
from noetl.kernel.net.commands import Cancel, LeaseLost, Pause
from noetl.kernel.pipeline.policy import SECOND
from tests.cli.execution_display import FOLLOW_UP, drive, progress_lines
from tests.kernel.driver import EXECUTION, Driver, Fault, error
from tests.playbooks import step

TWO = step(
    """
    tool: {name: fetch, kind: tool}
    next: {arcs: [{step: end}]}
    """
) + step("tool: {kind: noop}", "end")
RETRYING = step(
    """
    tool:
      name: fetch
      kind: tool
      spec:
        policy:
          rules:
            - when: "{{ outcome.status == 'error' }}"
              then: {do: retry, attempts: 3, delay: 2}
    """
)


def looping(total: int, more: str = "") -> str:
    return step(
        f"""
        loop: {{in: "{{{{ range({total}) | list }}}}", iterator: i{more}}}
        tool: {{name: fetch, kind: tool}}
        """
    )


def test_steps_begin_and_end() -> None:
    assert progress_lines(drive(TWO)) == [
        "step start",
        "step start done in 0.00 s",
        "step end",
        "step end done in 0.00 s",
    ]


def test_a_step_that_begins_and_ends_at_once_is_one_line() -> None:
    routing = step("next: {arcs: [{step: end}]}") + step("tool: {kind: noop}", "end")
    assert progress_lines(drive(routing))[:2] == ["step start done in 0.00 s", "step end"]


def test_lines_have_the_time_of_their_events() -> None:
    written: list[str] = []
    driver = drive(TWO)
    LineProgress(ProgressModel(FOLLOW_UP), written.append).observe(EXECUTION, driver.events, driver.state)
    assert all(re.match(r"\d\d:\d\d:\d\d step ", line) for line in "\n".join(written).split("\n"))


def test_a_retry_says_why_and_when() -> None:
    lines = progress_lines(drive(RETRYING, {"fetch": [Fault("connection"), 1]}))
    assert lines[1] == "step start: task fetch, attempt 1: connection: it broke; again in 2.0 s"
    assert lines[2] == "step start done in 2.0 s, 1 retried"


def test_a_failure_says_where_and_why() -> None:
    driver = drive(TWO, {"fetch": error("sql", "no\x1b[2J table\nat line 2")})
    assert "step start failed: task fetch, attempt 1: sql: no␛[2J table …" in progress_lines(driver)


def test_a_loop_is_told_in_tenths() -> None:
    lines = progress_lines(drive(looping(1_000)))
    assert lines[1:4] == [
        "step start: 1,000 iterations",
        "step start: 100 of 1,000 (10 %)",
        "step start: 200 of 1,000 (20 %)",
    ]
    assert lines[-2:] == ["step start: 900 of 1,000 (90 %)", "step start done in 0.00 s, 1,000 iterations"]
    assert len(lines) == 12


@pytest.mark.parametrize("total", [0, 1, 3, 7, 11, 99])
def test_a_small_loop_has_no_more_lines_than_iterations(total: int) -> None:
    lines = [line for line in progress_lines(drive(looping(total))) if " of " in line]
    assert len(lines) == min(max(total - 1, 0), 9)


def test_iterations_that_fail_are_counted() -> None:
    outcomes: dict[str, Any] = {"fetch": lambda call: error() if call.iteration % 2 else 1}
    loop = looping(20, ", spec: {policy: {failure: {mode: best_effort}}}")
    lines = progress_lines(drive(loop, outcomes))
    assert "step start: 10 of 20 (50 %), 5 failed" in lines
    assert lines[-1] == "step start done in 0.00 s, 20 iterations, 10 failed"


def test_verbose_tells_every_task_and_decision() -> None:
    assert progress_lines(drive(TWO), verbose=True) == [
        "step start",
        "step start: task fetch, attempt 1",
        "step start: task fetch: ok, continue",
        "step start done in 0.00 s",
        "step start: step.done goes to end",
        "step end",
        "step end: task task_0, attempt 1",
        "step end: task task_0: ok, continue",
        "step end done in 0.00 s",
    ]


def test_whoever_waits_for_a_signal_is_told_how_to_send_it() -> None:
    command = f"send it with: noetl executions signal {EXECUTION} go-on"
    waiting = step("tool: {name: hold, kind: wait, signal: go-on}")
    assert progress_lines(drive(waiting))[-1] == f"step start: waits for the signal; {command}"
    guarded = step(
        """
        spec: {policy: {admit: {rules: [{when: "{{ ctx.signals['go-on'] }}", then: {allow: true}}]}}}
        tool: {kind: noop}
        """
    )
    assert progress_lines(drive(guarded)) == [f"step start: waits for the signal; {command}"]


def test_what_happens_to_the_execution_is_told() -> None:
    driver = Driver(TWO, kinds=["tool"]).start()
    driver.submit(Pause())
    driver.submit(Cancel(by="ann", reason="enough"))
    lines = progress_lines(driver)
    assert f"execution: paused; go on with: noetl executions resume {EXECUTION}" in lines
    assert "execution: cancelled by ann: enough" in lines


def test_a_child_has_the_name_of_its_playbook() -> None:
    written: list[str] = []
    plain = LineProgress(ProgressModel(FOLLOW_UP), written.append)
    driver = drive(TWO)
    for execution in ("parent", "one", "two"):
        plain.observe(execution, driver.events, driver.state)
    heads = [block.split("\n")[0].partition(" ")[2] for block in written]
    assert [head.partition("step")[0] for head in heads] == ["", "[docs/page] ", "[docs/page#2] "]


def test_an_execution_met_in_the_middle_is_taken_over() -> None:
    driver = Driver(RETRYING, {"fetch": [Fault("connection"), 1]}, kinds=["tool"]).start()
    before = len(driver.events)
    model = ProgressModel(FOLLOW_UP)
    model.observe(EXECUTION, (), driver.state)
    assert [step_run.step for step_run in model.queued.values()] == ["start"]
    driver.run()
    model.observe(EXECUTION, driver.events[before:], driver.state)
    assert [line.kind for line in model.take_lines()] == ["retry", "done"]
    assert [model.queued, model.working, model.waiting] == [{}, {}, {}]


class Terminal:
    """A display of a given width on which time stands still."""

    def __init__(self, width: int, driver: Driver, *, verbose: bool = False, encoding: str = "utf-8") -> None:
        self.file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        self.console = Console(
            file=self.file,
            width=width,
            height=24,
            force_terminal=True,
            color_system=None,
            legacy_windows=False,
        )
        self.model = ProgressModel(FOLLOW_UP, verbose=verbose)
        self.progress = TerminalProgress(self.model, self.console, verbose=verbose, clock=lambda: driver.now)

    def output(self) -> str:
        """Everything that was drawn, without what steers the terminal."""
        self.file.flush()
        raw = self.file.buffer.getvalue().decode(self.file.encoding)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw)

    def picture(self) -> list[str]:
        """What the display would be now."""
        console = Console(file=io.StringIO(), width=self.console.width)
        with console.capture() as capture:
            console.print(self.progress.picture())
        return capture.get().splitlines()


def seen(terminal: Terminal, driver: Driver) -> None:
    for append in driver.appends:
        terminal.progress.observe(EXECUTION, append, driver.state)
    driver.appends.clear()


@pytest.mark.parametrize("width", [40, 80])
def test_the_display_has_a_line_for_each_run_and_one_that_counts(width: int) -> None:
    driver = Driver(looping(100, ", spec: {policy: {failure: {mode: best_effort}}}"), kinds=["tool"]).start()
    outcomes = iter([error(), *[1] * 99])
    driver.script["fetch"] = lambda _: next(outcomes)
    run = driver.claim(driver.state.ready.first)
    while driver.state.runs[run.id].loop is None or run.loop is None or run.loop.low < 25:
        driver.move(run)
    terminal = Terminal(width, driver)
    seen(terminal, driver)
    driver.now += 61 * SECOND
    line, counts = terminal.picture()
    full = "━" * (2 if width == 40 else 5)
    assert line.startswith(f"⠋ start {full}─"), line
    assert "25/100 1 failed" in line
    assert len(line) <= width
    assert counts == "  1 min 1 s"
    if width == 80:
        assert line.endswith("fetch 1 min 1 s")


def test_a_retry_counts_down() -> None:
    driver = Driver(RETRYING, {"fetch": Fault("connection")}, kinds=["tool"]).start()
    run = driver.claim(driver.state.ready.first)
    driver.move(run)
    terminal = Terminal(80, driver)
    seen(terminal, driver)
    driver.now += SECOND // 2
    assert terminal.picture()[0].endswith("start fetch attempt 1 failed, again in 1.5 s 0.50 s")


def test_steps_that_end_scroll_by() -> None:
    driver = drive(TWO, {"fetch": error("sql", "[bold]no\x1b[2J table")})
    terminal = Terminal(80, driver)
    seen(terminal, driver)
    terminal.progress.draw()
    terminal.progress.say("a message")
    terminal.progress.close()
    terminal.progress.close()
    output = terminal.output()
    assert "✗ start task fetch, attempt 1: sql: [bold]no␛[2J table" in output
    assert "✓ end 0.00 s" in output
    assert "a message" in output


def test_a_thousand_steps_do_not_flood_the_terminal() -> None:
    fan = "next:\n  spec: {mode: inclusive}\n  arcs:\n" + "\n".join(f"  - step: s{n}" for n in range(1_000))
    text = step(fan) + "".join(step("tool: {name: fetch, kind: tool}", f"s{n}") for n in range(1_000))
    driver = Driver(text, kinds=["tool"]).start()
    runs = [driver.claim(driver.state.ready.first) for _ in range(50)]
    terminal = Terminal(80, driver)
    seen(terminal, driver)
    assert len(terminal.picture()) == MOST_RUNS + 1
    assert terminal.picture()[-1].startswith(f"  {50 - MOST_RUNS} more running, 950 queued, 1 done")
    for run in runs:
        driver.work(run)
    driver.run()
    seen(terminal, driver)
    terminal.progress.draw()
    lines = terminal.output().split("✓")
    assert f"{1_001 - MOST_LINES_AT_ONCE} more" in lines[0]
    assert len(lines) - 1 == MOST_LINES_AT_ONCE
    assert terminal.picture() == ["  1,001 done, 0.00 s"]


def test_a_terminal_without_unicode_gets_ascii() -> None:
    driver = drive(TWO)
    terminal = Terminal(80, driver, encoding="ascii")
    seen(terminal, driver)
    terminal.progress.draw()
    assert terminal.output().isascii()
    assert "+ start 0.00 s" in terminal.output()


def test_what_passed_while_nobody_ran_a_step_is_not_its_time() -> None:
    driver = Driver("- step: start\n  tool: [{name: a, kind: noop}, {name: b, kind: noop}]\n").start()
    run = driver.claim(driver.state.ready.first)
    driver.now += 2 * SECOND
    driver.submit(LeaseLost(run.id, run.fence, "released"))
    driver.now += 3600 * SECOND
    lines: dict[str, list[str]] = {"from the beginning": [], "after it was taken up again": []}
    first, second = (LineProgress(ProgressModel(FOLLOW_UP), written.append) for written in lines.values())
    for append in driver.appends:
        first.observe(EXECUTION, append, driver.state)
    driver.claim(run.id)
    for progress in (first, second):
        progress.observe(EXECUTION, driver.appends[-1], driver.state)
    driver.now += SECOND
    before = len(driver.appends)
    driver.work(run)
    for append in driver.appends[before:]:
        for progress in (first, second):
            progress.observe(EXECUTION, append, driver.state)
    for name, written in lines.items():
        assert "step start done in 3.0 s" in "\n".join(written), name
