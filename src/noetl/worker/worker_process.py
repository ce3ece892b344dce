"""A worker as a process, or several of them: signals, and what belongs to all of its sessions."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence

import aiohttp

from noetl.loader import installed_kinds
from noetl.process_log import LogEvent, log_event
from noetl.tools.host.worker_tools import Tools
from noetl.worker.http_link import HttpLink
from noetl.worker.session import RemoteWorker, WorkerOptions

SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def run_worker(options: WorkerOptions) -> None:
    """Works until a signal stops it: the first lets it drain, the second interrupts what is in flight.

    Raises WorkerRejected.
    """
    loop = asyncio.get_running_loop()
    tools = Tools(installed_kinds().with_allowed(options.allow_kinds), traced=options.traced)
    timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=300)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as http:
        link = HttpLink(http, options.token)
        worker = RemoteWorker(options, tools, link)
        kills: set[asyncio.Task[None]] = set()
        draining = False

        def stop() -> None:
            nonlocal draining
            if draining:
                kills.add(loop.create_task(worker.kill()))
            else:
                draining = True
                log_event(LogEvent.WORKER_DRAINING, worker=options.name)
                worker.drain()

        for number in SIGNALS:
            loop.add_signal_handler(number, stop)
        try:
            await worker.run()
            log_event(LogEvent.WORKER_STOPPED, worker=options.name)
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
            await link.results.close()
            await tools.close()


def run_processes(count: int, command: Sequence[str]) -> int:
    """The same command as so many processes, until all of them have ended; the worst of their exit codes.

    Signals are handed on: a group is stopped like one.
    """
    children = [subprocess.Popen([sys.executable, "-m", "noetl", *command]) for _ in range(count)]  # noqa: S603 - ourselves

    def hand_on(number: int, _frame: object) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in SIGNALS}
    try:
        return max(abs(child.wait()) for child in children)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
