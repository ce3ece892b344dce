"""A server and its workers as processes, each of which can be killed, or stopped for a while."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.faults.effect_tools import EFFECTS, WORKER
from bench.faults.fault_plan import SERVER, Fault
from bench.faults.laws import Hit
from bench.server_process import end_process, launch_server, start_worker, wait_for_url, wait_for_words

TOOLS = str(Path(__file__).with_name("effect_tools.py"))
ROOT = str(Path(__file__).parents[2])


class FaultyPlane:
    """An async context manager. What has ended by a fault is started again, a server where it was before.

    Only processes that it started itself get signals.
    """

    def __init__(self, folder: Path, workers: int, slots: int, ttl: int) -> None:
        self.home = folder / "home"
        self.effects = folder / "effects.txt"
        self.hits: list[Hit] = []
        self.exit_codes: dict[str, int] = {}
        """Of those that were asked to end."""
        self._folder = folder
        self._slots = slots
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH")))),
            "NOETL_HOME": str(self.home),
            "NOETL_LEASE_TTL": str(ttl),
            EFFECTS: str(self.effects),
        }
        self._port = 0
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lives = dict.fromkeys((f"worker-{number}" for number in range(workers)), 0)
        self._down: set[str] = set()
        self._is_up = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    async def __aenter__(self) -> "FaultyPlane":
        self.effects.touch()
        try:
            await self._start(SERVER)
            await asyncio.gather(*(self._start(name) for name in self._lives))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """All at once, workers before the server that they give the rest back to."""
        server = self._processes.pop(SERVER, None)
        ends = [asyncio.to_thread(end_process, process) for process in self._processes.values()]
        self.exit_codes |= dict(zip(self._processes, await asyncio.gather(*ends), strict=True))
        if server is not None:
            self.exit_codes[SERVER] = await asyncio.to_thread(end_process, server)

    async def _start(self, name: str) -> None:
        """Raises StartFailed. The process is noted before it is ready: whoever ends all of them knows it."""
        log, tools = self.log(name), ("--tools", TOOLS)
        log.touch()
        if name == SERVER:
            process = launch_server(self.home, log, *tools, port=self._port, environment=self._environment)
            self._processes[name] = process
            url = await asyncio.to_thread(wait_for_url, process, log)
            self._port = int(url.rpartition(":")[2])
            return
        self._lives[name] += 1
        size = log.stat().st_size
        environment = {**self._environment, WORKER: self._life(name)}
        slots = ("--slots", str(self._slots))
        process = start_worker(self.url, self.home, log, *tools, *slots, environment=environment)
        self._processes[name] = process
        await asyncio.to_thread(wait_for_words, log, b"registered with", process, size)

    def _life(self, name: str) -> str:
        """Which of the processes that had this name one after the other."""
        return f"{name}.{self._lives[name]}" if name != SERVER else name

    async def choose(self, fault: Fault) -> str:
        """Whom it hits: a worker that is not up makes room for the next one that is."""
        names = list(self._lives)
        if fault.target == SERVER:
            names = [SERVER]
        else:
            first = names.index(fault.target)
            names = names[first:] + names[:first]
        async with self._is_up:
            await self._is_up.wait_for(lambda: not self._down >= {*names})
            target = next(name for name in names if name not in self._down)
            self._down.add(target)
        return target

    async def hit(self, fault: Fault, name: str) -> None:
        """Does it to the one that was chosen, and returns when that one can be hit again."""
        process, life, began = self._processes[name], self._life(name), time.monotonic()
        print(f"{life}: {fault.action} {fault.seconds:.1f} s", file=sys.stderr, flush=True)
        if fault.action != "kill":
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(fault.seconds)
        if fault.action in ("pause", "stop"):
            process.send_signal(signal.SIGCONT)
            ended = time.monotonic()
        else:
            process.kill()
            await asyncio.to_thread(process.wait)
            ended = time.monotonic()
            if process.stdout is not None:
                process.stdout.close()
            await self._start(name)
            if name == SERVER:
                ended = time.monotonic()
        self.hits.append(Hit(life, fault.action, began, ended))
        async with self._is_up:
            self._down.remove(name)
            self._is_up.notify_all()
