"""The heartbeat of a worker: which way it goes, and for whom."""

import asyncio
import time

import aiohttp
import pytest

from noetl.ports.control import Beaten
from noetl.worker.heartbeat import HeartbeatThread, LeaseClock
from noetl.worker.http_link import HttpLink
from tests.plane.plane_processes import PATIENCE, Plane
from tests.plane.plane_server import TOKEN
from tests.plane.raw_worker import RawWorker

TTL = 0.3


def test_no_proxy_of_the_environment_comes_between_a_worker_and_its_server(
    long_lived: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def beat(session: str) -> None:
        async with aiohttp.ClientSession() as http:
            link = HttpLink(http, TOKEN)
            link.join(long_lived.url, session)
            leases = LeaseClock(time.monotonic, TTL, time.monotonic())
            first, end = leases.deadline, link.start_heartbeat(leases)
            try:
                async with asyncio.timeout(PATIENCE):
                    while leases.deadline == first:
                        leases.turn()
                        await asyncio.sleep(TTL / 20)
            finally:
                end()

    with RawWorker(long_lived) as worker:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        asyncio.run(beat(worker.session))


def test_nobody_speaks_for_a_worker_whose_loop_stands_still() -> None:
    leases = LeaseClock(time.monotonic, TTL, time.monotonic())
    thread = HeartbeatThread(leases, lambda _: Beaten(known=True))

    def wait_until(*, holds: bool) -> None:
        limit = time.monotonic() + PATIENCE
        while leases.lease_holds != holds:
            assert time.monotonic() < limit
            if holds:
                leases.turn()
            time.sleep(TTL / 20)

    thread.start()
    try:
        wait_until(holds=False)
        wait_until(holds=True)
    finally:
        thread.end()
        thread.join()


def test_a_beat_counts_from_when_it_was_sent_if_the_session_is_known() -> None:
    leases = LeaseClock(lambda: 8.0, ttl=10.0, registered_at=0.0)
    leases.beaten(5.0, Beaten(known=False))
    assert leases.deadline == 10.0, "a server that does not know the session has given its runs to others"
    leases.beaten(5.0, Beaten(known=True))
    assert leases.deadline == 15.0
