"""Deciding a history again, with the values that it stored."""

import asyncio
from typing import Any

from noetl.engine.history.read import RecordedHistory
from noetl.kernel.verify.verification import Verification, verify
from noetl.model.table_reader import decode_value_or_table
from noetl.ports.results import ResultError, ResultStore
from noetl.stores.results.result_reader import read_result


async def verify_history(history: RecordedHistory, results: ResultStore) -> Verification:
    """As `kernel.verify`, beside the event loop: it takes as long as the history is."""
    loop = asyncio.get_running_loop()

    def read(key: str) -> Any:
        try:
            data = asyncio.run_coroutine_threadsafe(read_result(results, key), loop).result()
        except ResultError as error:
            raise LookupError(str(error)) from error
        return decode_value_or_table(data)

    return await asyncio.to_thread(verify, history.plan, history.record.execution_id, history.events, read)
