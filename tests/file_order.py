"""Files with long tests go first: at the end of a run, one worker would wait for what another has just begun.

How long the longest test of a file takes is what it took here when it last ran, which pytest's cache keeps. Nothing is
known of a new checkout: there, those come first that have a `timeout` of their own.
"""

import pytest

RECORD = "file_order/seconds"
LONG = 1.0
"""Files whose longest test takes fewer seconds stay in the order of their names."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that hears of all tests
        config.pluginmanager.register(_Stopwatch(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The same order in all workers: the record does not change before the end of the run."""
    known = _known_seconds(config)
    patient = {item.path for item in items if item.get_closest_marker("timeout")}

    def rank(item: pytest.Item) -> float:
        seconds = known.get(_name(item.nodeid), LONG if item.path in patient else 0.0)
        return -seconds if seconds >= LONG else 0.0

    items.sort(key=rank)


class _Stopwatch:
    """Keeps what the longest test of each file that ran took; of the others what is known stays."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tests = self._seconds.setdefault(_name(report.nodeid), {})
        tests[report.nodeid] = tests.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if self._seconds and hasattr(self._config, "cache"):
            longest = {name: round(max(tests.values()), 1) for name, tests in self._seconds.items()}
            self._config.cache.set(RECORD, {**_known_seconds(self._config), **longest})


def _known_seconds(config: pytest.Config) -> dict[str, float]:
    """Nothing with `-p no:cacheprovider`."""
    return config.cache.get(RECORD, {}) if hasattr(config, "cache") else {}


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[0]
