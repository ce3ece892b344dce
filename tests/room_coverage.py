"""Branch coverage that costs little: of the rooms without input and output, by the tests of these with given examples.

Python 3.11 traces line by line, which takes two to four times the processor time. Property tests and those of large
values go the same ways a thousand times: they are not traced. `scripts/test --cov` measures all.
"""

from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

FOLDERS = {"checks", "dialects", "dsl", "events", "expr", "kernel", "model"}
"""Those of the tests of these rooms."""
LARGE = {"test_event_limit.py", "test_reference_loops.py"}
"""The tests of large values."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder not in FOLDERS or item.path.name in LARGE or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("no_cover")
