"""Executions without an engine, shown as `noetl run` shows them."""

from typing import Any

from noetl.cli.progress.display import LineProgress
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.report.execution_report import ExecutionReport
from noetl.cli.report.follow_up import FollowUp
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.failed_attempts import FailedAttempts
from noetl.engine.history.failure_chain import describe_failure
from noetl.engine.summary import execution_of, first_failure
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
    source = PlaybookSource(document_of(text), "playbook.yaml")
    failures = [describe_failure(driver.state, source, attempts)] if first_failure(driver.state) else []
    return ExecutionReport(execution_of(driver.state, last=driver.events[-1].ts), FOLLOW_UP, failures)
