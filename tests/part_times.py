"""What the tests of the engine took, and those with a server and other processes, in a run with several workers.

A part of the clock is the time of its tests, shared by the workers: they work at once all the time.
"""

from collections import defaultdict

import pytest

PROCESSES = {"bench", "mysql", "observability", "plane", "server", "snowflake", "web"}
"""The folders of the tests that are not the engine's alone."""


def pytest_configure(config: pytest.Config) -> None:
    workers = config.getoption("numprocesses", None)
    if workers and not hasattr(config, "workerinput"):  # the process that hears of all tests
        config.pluginmanager.register(_PartTimes(workers))


class _PartTimes:
    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = report.nodeid.removeprefix("tests/").partition("/")[0]
        self._seconds["server and processes" if folder in PROCESSES else "engine"] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for part, seconds in sorted(self._seconds.items()):
            minutes, rest = divmod(round(seconds / self._workers), 60)
            terminalreporter.write_line(f"tests of {part}: {minutes} min {rest:02} s")
