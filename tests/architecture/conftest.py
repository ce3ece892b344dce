"""What the tests of the source code share."""

import gc
from collections.abc import Iterator

import pytest

from tests.architecture.source_tree import importers, modules


@pytest.fixture(scope="package", autouse=True)
def source_trees() -> Iterator[None]:
    """Millions of nodes: the collector would walk them again and again, and in all tests after these."""
    gc.disable()
    yield
    modules.cache_clear()
    importers.cache_clear()
    gc.enable()
