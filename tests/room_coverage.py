"""Branch coverage that costs little: of the rooms without input and output, by tests of these with given examples.

Python 3.11 traces line by line, which takes two to four times the processor time, and where no line is measured it
still traces calls. So nothing is traced but the import of these rooms and their tests, and of a test the cases only
until some in a row went no new way. Property tests and those of large values (also marked `no_cover`) go the same ways
a thousand times: they are not traced. `scripts/test --cov` measures all but the marked ones.
"""

import pkgutil
from collections import Counter
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import is_hypothesis_test

TESTS = Path(__file__).parent
ROOMS = ("noetl.model", "noetl.events", "noetl.expr", "noetl.dsl", "noetl.kernel")
FOLDERS = {"checks", "dialects", "dsl", "events", "expr", "kernel", "model"}
"""Those of the tests of these rooms."""
LARGE = {"test_event_limit.py", "test_reference_loops.py"}
"""The tests of large values."""
CASES_IN_VAIN = 3
"""After so many cases in a row that go no new way, the others of a test are not traced."""


class RoomCoverage:
    """What this process measures. Its data has a file of its own beside those of other workers."""

    def __init__(self) -> None:
        self._coverage = Coverage(config_file=str(TESTS / "room_coverage.ini"), data_suffix=True)
        self._coverage.start()
        for room in ROOMS:
            for module in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
                import_module(module.name)
        self._coverage.stop()
        self._in_vain: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        test = item.nodeid.partition("[")[0]
        if not _is_of_room(item) or self._in_vain[test] == CASES_IN_VAIN:
            return (yield)
        before = self._count_ways()
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()
            self._in_vain[test] = self._in_vain[test] + 1 if self._count_ways() == before else 0

    def _count_ways(self) -> int:
        collector = self._coverage._collector  # to ask in public would write a database each time
        assert collector
        return sum(map(len, collector.data.values()))

    def pytest_sessionfinish(self) -> None:
        self._coverage.save()


def _is_of_room(item: pytest.Item) -> bool:
    in_room = item.path.relative_to(TESTS).parts[0] in FOLDERS and item.path.name not in LARGE
    in_vain = item.get_closest_marker("no_cover") or is_hypothesis_test(getattr(item, "obj", None))
    return in_room and not in_vain


def pytest_configure(config: pytest.Config) -> None:
    """Where tests run: in the workers, if there are any."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(RoomCoverage())
