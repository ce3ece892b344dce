"""Executions without an engine, shown as `noetl run` shows them."""

from typing import Any

from noetl.cli.progress.display import LineProgress
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.report.execution_report import ExecutionReport
from noetl.cli.report.failed_attempts import FailedAttempts
from noetl.cli.report.follow_up import FollowUp
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.settings import read_settings
from tests.kernel.driver import EXECUTION, Driver
from tests.playbooks import document_of

FOLLOW_UP = FollowUp(read_settings(environment={}))


def drive(text: str, script: dict[str, Any] | None = None, **request: Any) -> Driver:
    """A playbook, run to its end or until it waits for somebody."""
    return Driver(text, script, kinds=["tool"]).run(**request)


def progress_lines(driver: Driver, *, verbose: bool = False) -> list[str]:
    """The plain lines about it, without their times."""
    lines: list[str] = []
    progress = LineProgress(ProgressModel(FOLLOW_UP, verbose=verbose), lines.append)
    for append in driver.appends:
        progress.observe(EXECUTION, append, driver.state)
    return [line.partition(" ")[2] for block in lines for line in block.split("\n")]


def report_of(driver: Driver, text: str) -> ExecutionReport:
    attempts = FailedAttempts()
    attempts.observe(EXECUTION, driver.events)
    last_ts = driver.events[-1].ts
    return ExecutionReport(
        driver.state, FOLLOW_UP, PlaybookSource(document_of(text), "playbook.yaml"), attempts, last_ts
    )
