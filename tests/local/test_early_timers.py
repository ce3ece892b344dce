"""A worker that is woken before its time."""

import asyncio
from collections.abc import Callable

from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.timers import Timers
from noetl.local import Local
from noetl.stores.sqlite.store import SqliteStore
from noetl.worker.runner import Runner

EARLY = 30_000
"""Microseconds."""

SHAKY = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shaky, path: shaky}
workflow:
- step: start
  loop: {in: [1, 2], iterator: n, spec: {mode: parallel}}
  tool:
    kind: noop
    args: {attempt: "{{ _attempt }}"}
    spec: {policy: {rules: [{when: "{{ outcome.result.attempt < 2 }}", then: {do: retry, attempts: 2, delay: "{{ n / 20 }}"}}]}}
"""


class EarlyLocal(Local):
    """One whose timers fire a moment before the clock says so, as they do where clocks are slewed."""

    def _make_worker(
        self, timers: Timers, wake: asyncio.Event, broken: Callable[[BaseException], None]
    ) -> Runner:
        def at(due: int, action: Callable[[], None]) -> None:
            timers.at(due - EARLY, action)

        return Runner(self._tools, wake=wake.set, at=at, broken=broken, keychains=self._keychains)


def test_it_waits_once_more() -> None:
    async def run() -> tuple[str, object]:
        store = SqliteStore.in_memory()
        async with EarlyLocal(store) as local:
            execution_id = await local.start(PlaybookSource(SHAKY, "shaky.yaml", ""))
            state = await asyncio.wait_for(local.wait_for_end(execution_id), 30)
        await store.close()
        return state.status, state.result

    assert asyncio.run(run()) == ("completed", [{"attempt": 2}, {"attempt": 2}])
