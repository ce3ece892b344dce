"""Executions without an engine, shown as `noetl run` shows them."""

from typing import Any

from noetl.cli.progress.line_progress import Plain
from noetl.cli.progress.progress_model import Board
from noetl.cli.report.execution_report import Report
from noetl.cli.report.failed_attempts import Evidence
from noetl.cli.report.follow_up import Again
from noetl.engine.catalog.playbook_record import Source
from noetl.settings import read
from tests.kernel.driver import EXECUTION, Driver
from tests.playbooks import whole

AGAIN = Again(read(environment={}))


def driven(text: str, script: dict[str, Any] | None = None, **request: Any) -> Driver:
    """A playbook, run to its end or until it waits for somebody."""
    return Driver(text, script, kinds=["tool"]).run(**request)


def lines_of(driver: Driver, *, verbose: bool = False) -> list[str]:
    """The plain lines about it, without their times."""
    lines: list[str] = []
    shown = Plain(Board(AGAIN, verbose=verbose), lines.append)
    for append in driver.appends:
        shown.see(EXECUTION, append, driver.state)
    return [line.partition(" ")[2] for block in lines for line in block.split("\n")]


def report_of(driver: Driver, text: str) -> Report:
    evidence = Evidence()
    evidence.see(EXECUTION, driver.events)
    last = driver.events[-1].ts
    return Report(driver.state, AGAIN, Source(whole(text), "playbook.yaml"), evidence, last)
