"""How long it counts that a worker can have the credentials of a playbook."""

import time
from pathlib import Path

from noetl.server.plane.needs_checks import GOOD_FOR
from noetl.system import SYSTEM
from tests.engine.hand_worker import HandWorker, hand_server
from tests.engine.test_served_executions import play

USES_ENTRY = """\
keychain: [{name: api, kind: env, env: ANY}]
workflow:
- step: start
  tool: {kind: noop, args: {a: "{{ keychain.api.value }}"}}
"""


def test_what_a_worker_said_counts_for_a_minute(tmp_path: Path) -> None:
    async def test() -> None:
        ahead = 0.0
        system = SYSTEM._replace(monotonic=lambda: time.monotonic() + ahead)
        async with hand_server(tmp_path, system=system, ttl=1_000) as server:
            worker = HandWorker(server)
            await worker.register()
            await server.start(USES_ENTRY)
            await worker.answer_question()
            await worker.end(await worker.command())
            ahead = GOOD_FOR / 2
            await server.start(USES_ENTRY)
            await worker.end(await worker.command())  # and it was asked nothing
            ahead = GOOD_FOR + 1
            await server.start(USES_ENTRY)
            await worker.answer_question()
            await worker.end(await worker.command())

    play(test)
