"""The conformance suite of the `Store` port.

A test module makes a subclass with a fixture `open_store` that gives a `StoreOpener`; pytest does the rest:

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def open_store(self, tmp_path: Path) -> StoreOpener:
            return lambda: MyStore(tmp_path)

`pytest.register_assert_rewrite("noetl.testing")` in its `conftest.py` gives better messages.
"""

from noetl.testing.store.catalog_cases import CatalogCases
from noetl.testing.store.commit_cases import CommitCases
from noetl.testing.store.history_cases import HistoryCases
from noetl.testing.store.maintenance_cases import MaintenanceCases
from noetl.testing.store.model_cases import ModelCases, SharedModelCases
from noetl.testing.store.query_cases import QueryCases
from noetl.testing.store.record_cases import RecordCases
from noetl.testing.store.row_cases import RowCases
from noetl.testing.store.sharing_cases import SharingCases
from noetl.testing.store.store_fixtures import StoreOpener

__all__ = ["SharedStoreSuite", "StoreOpener", "StoreSuite"]


class StoreSuite(
    CommitCases, HistoryCases, QueryCases, RecordCases, RowCases, CatalogCases, MaintenanceCases, ModelCases
):
    """What every store does. Each call of the opener may give a store with data of its own."""


class SharedStoreSuite(StoreSuite, SharingCases, SharedModelCases):
    """And what stores do that outlive their objects: each call opens the same data."""
