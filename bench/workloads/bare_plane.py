"""Both planes without an engine: what our server and worker could not take less than.

The same libraries in the same two processes, with as few messages and flushes of the disk as a run has: one
request that starts it and waits for its end; for each step a frame to the worker and one back, and it is on
the disk before the next goes out. Whatever waits is written by one commit and sent in one frame. Nothing is
decided, folded, leased, authorised or checked, and no tool is called.

`bench.bare_plane_side` starts it: `serve FOLDER PORT`, `work URL`, or the words of a workload to measure.
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bench.bare_plane_side import URL
from bench.protocol import Recorder, print_report, read_arguments
from bench.workload_table import RUN
from noetl.server.http.http_server import HttpServer, listen

FACTS = "x" * 600
"""What a step has to say, in each direction: its events are 600 to 900 bytes of JSON."""


class BareRun(msgspec.Struct):
    """A run of so many steps; the worker has said that `done` of them are."""

    number: int
    steps: int
    done: int = 0


class BareStep(msgspec.Struct):
    number: int
    facts: str = FACTS


class BareServer:
    """Numbers runs, and writes a row for each begin and each step."""

    def __init__(self, folder: Path) -> None:
        self._store = sqlite3.connect(folder / "bare.db", isolation_level=None)
        self._store.execute("PRAGMA journal_mode = WAL")
        self._store.execute("PRAGMA synchronous = FULL")
        self._store.execute("CREATE TABLE event (run, seq, facts, PRIMARY KEY (run, seq)) WITHOUT ROWID")
        self._runs: dict[int, tuple[BareRun, asyncio.Future[BareRun]]] = {}
        self._rows: list[tuple[int, int, str]] = []
        self._due: list[BareRun] = []
        self._woken = asyncio.Event()

    async def start(self, request: Request) -> Response:
        """Answers when the last step is on the disk."""
        steps = msgspec.json.decode(await request.body())["steps"]
        run = BareRun(len(self._runs) + 1, steps)
        end: asyncio.Future[BareRun] = asyncio.get_running_loop().create_future()
        self._runs[run.number] = run, end
        self._note(run, FACTS)
        return Response(msgspec.json.encode(await end), media_type="application/json")

    async def stream(self, websocket: WebSocket) -> None:
        await websocket.accept()
        sender = asyncio.create_task(self._send(websocket))
        try:
            while True:
                for step in msgspec.json.decode(await websocket.receive_bytes(), type=list[BareStep]):
                    run = self._runs[step.number][0]
                    run.done += 1
                    self._note(run, step.facts)
        except WebSocketDisconnect:
            sender.cancel()

    def _note(self, run: BareRun, facts: str) -> None:
        self._rows.append((run.number, run.done, facts))
        self._due.append(run)
        self._woken.set()

    async def _send(self, websocket: WebSocket) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            due, self._due = self._due, []
            rows, self._rows = self._rows, []
            self._store.execute("BEGIN IMMEDIATE")
            self._store.executemany("INSERT INTO event VALUES (?, ?, ?)", rows)
            self._store.execute("COMMIT")
            for run in due:
                if run.done == run.steps:
                    self._runs[run.number][1].set_result(run)
            if steps := [BareStep(run.number) for run in due if run.done < run.steps]:
                await websocket.send_bytes(msgspec.json.encode(steps))


async def serve(folder: Path, port: int) -> None:
    server = BareServer(folder)

    async def ready(_: Request) -> Response:
        return Response()

    routes = [
        Route("/run", server.start, methods=["POST"]),
        Route("/readyz", ready),
        WebSocketRoute("/stream", server.stream),
    ]
    await HttpServer(Starlette(routes=routes), listen("127.0.0.1", port), None).serve()


async def work(url: str) -> None:
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{url}/stream", max_msg_size=0) as socket:
        print("connected", flush=True)
        async for frame in socket:
            steps = msgspec.json.decode(frame.data, type=list[BareStep])
            await socket.send_bytes(msgspec.json.encode(steps))


async def measure(arguments: Sequence[str]) -> None:
    workload, plan = read_arguments(arguments)
    recorder = Recorder(workload, plan, "committed before the next step", waits=True)
    body = msgspec.json.encode({"steps": workload.steps})

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:

        async def run() -> int:
            async with http.post(f"{os.environ[URL]}/run", data=body) as response:
                return msgspec.json.decode(await response.read(), type=BareRun).done

        for _ in recorder.shots():
            for _ in range(workload.laps):
                with recorder.lap(RUN):
                    done = await asyncio.gather(*(run() for _ in range(workload.runs)))
                recorder.check(sum(done))
    print_report(recorder.report())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder, port]:
            asyncio.run(serve(Path(folder), int(port)))
        case ["work", url]:
            asyncio.run(work(url))
        case words:
            asyncio.run(measure(words))
