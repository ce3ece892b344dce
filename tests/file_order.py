"""Files with long tests go first: at the end of a run, one worker would wait for what another has just begun.

How long the longest test of a file takes is what it took here when it last ran, which pytest's cache keeps. A new
checkout has no cache: there it is what `tests/file_seconds.json` says, which `--record-seconds` writes. Of files that
neither knows, those come first that have a `timeout` of their own. The files of a package stay together, for what they
share, and go by the longest test of all.
"""

import json
from pathlib import Path

import pytest

CACHE = "file_order/seconds"
RECORD = "tests/file_seconds.json"
"""Below the root of the project. It has the files with long tests alone: all others are in the order of their names."""
LONG = 1.0
"""Files whose longest test takes fewer seconds stay in the order of their names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"write what is known of the time of long tests, with what these take, into {RECORD}"
    parser.addoption("--record-seconds", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that hears of all tests
        config.pluginmanager.register(_Stopwatch(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The same order in all workers: the record does not change before the end of the run."""
    known = _known_seconds(config)
    patient = {item.path for item in items if item.get_closest_marker("timeout")}
    longest: dict[str, float] = {}
    for item in items:
        seconds = known.get(_name(item.nodeid), LONG if item.path in patient else 0.0)
        group = _group(item)
        longest[group] = max(longest.get(group, 0.0), seconds if seconds >= LONG else 0.0)
    items.sort(key=lambda item: -longest[_group(item)])


def _group(item: pytest.Item) -> str:
    """What stays together: a package, else a file."""
    package = item.getparent(pytest.Package)
    return package.nodeid if package is not None else _name(item.nodeid)


class _Stopwatch:
    """Keeps what the longest test of each file that ran took; of the others what is known stays."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tests = self._seconds.setdefault(_name(report.nodeid), {})
        tests[report.nodeid] = tests.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        longest = {name: round(max(tests.values()), 1) for name, tests in self._seconds.items()}
        if self._seconds and hasattr(self._config, "cache"):
            self._config.cache.set(CACHE, {**_cached_seconds(self._config), **longest})
        if self._config.getoption("record_seconds"):
            _write_record(self._config.rootpath, {**_known_seconds(self._config), **longest})


def _known_seconds(config: pytest.Config) -> dict[str, float]:
    record = config.rootpath / RECORD
    recorded = json.loads(record.read_text("utf-8")) if record.exists() else {}
    return {**recorded, **_cached_seconds(config)}


def _cached_seconds(config: pytest.Config) -> dict[str, float]:
    """Nothing with `-p no:cacheprovider`."""
    return config.cache.get(CACHE, {}) if hasattr(config, "cache") else {}


def _write_record(root: Path, seconds: dict[str, float]) -> None:
    """Without files that are gone."""
    long = {
        name: taken for name, taken in sorted(seconds.items()) if taken >= LONG and (root / name).exists()
    }
    (root / RECORD).write_text(json.dumps(long, indent=1) + "\n", "utf-8")


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[0]
