"""The conformance suite of the `Store` port.

A test module makes a subclass with a fixture `open_store` that gives an `Opener`, and pytest does the rest:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def open_store(self, tmp_path: Path) -> Opener:
            return lambda: MyStore(tmp_path)

`pytest.register_assert_rewrite("noetl.testing")` in its `conftest.py` gives better messages.
"""

from noetl.testing.store.commit_cases import Commits
from noetl.testing.store.history_cases import History
from noetl.testing.store.maintenance_cases import Upkeep
from noetl.testing.store.model_cases import Model, SharedModel
from noetl.testing.store.query_cases import Listing
from noetl.testing.store.record_cases import Keeping
from noetl.testing.store.sharing_cases import Sharing
from noetl.testing.store.store_fixtures import Opener

__all__ = ["Opener", "SharedStoreSuite", "StoreSuite"]


class StoreSuite(Commits, History, Listing, Keeping, Upkeep, Model):
    """What every store does. Each call of the opener may give a store with data of its own."""


class SharedStoreSuite(StoreSuite, Sharing, SharedModel):
    """And what stores do that outlive their objects: each call opens the same data."""
