"""Branch coverage that costs little: of the rooms without input and output, by the tests of these with given examples.

Python 3.11 traces line by line, which makes tests up to twice as long, most of all property tests, and these go the
same ways a hundred times. `scripts/test --cov` measures all.
"""

from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

FOLDERS = {"checks", "dialects", "dsl", "events", "expr", "kernel", "model"}
"""Those of the tests of these rooms."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder not in FOLDERS or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("no_cover")
