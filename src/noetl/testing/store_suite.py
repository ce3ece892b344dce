"""The conformance suite of the `Store` port.

A test module makes a subclass with a fixture `open_store` that gives an `Opener`, and pytest does the rest:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def open_store(self, tmp_path: Path) -> Opener:
            return lambda: MyStore(tmp_path)

`pytest.register_assert_rewrite("noetl.testing")` in its `conftest.py` gives better messages.
"""

from noetl.testing.store.commits import Commits
from noetl.testing.store.history import History
from noetl.testing.store.keeping import Keeping
from noetl.testing.store.listing import Listing
from noetl.testing.store.model import Model, SharedModel
from noetl.testing.store.scenario import Opener
from noetl.testing.store.sharing import Sharing
from noetl.testing.store.upkeep import Upkeep

__all__ = ["Opener", "SharedStoreSuite", "StoreSuite"]


class StoreSuite(Commits, History, Listing, Keeping, Upkeep, Model):
    """What every store does. Each call of the opener may give a store with data of its own."""


class SharedStoreSuite(StoreSuite, Sharing, SharedModel):
    """And what stores do that outlive their objects: each call opens the same data."""
