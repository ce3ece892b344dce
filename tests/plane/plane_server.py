"""A server with a worker plane and little else, as a process: what the tests of the plane start.

It says its port as soon as it takes connections. `POST /executions` starts one, and `GET` waits for its end, or
for an event.
"""

import argparse
import asyncio
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route

from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.inbox import decode_command
from noetl.engine.summary import execution_of
from noetl.engine.task_log import FileLog
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import ExecutionQuery
from noetl.server.plane.worker_routes import worker_routes
from noetl.server.server_engine import ServerEngine
from noetl.stores import open_store
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import KeyLocation
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners
from noetl.stores.results.result_store_urls import open_result_stores

TOKEN = "a worker's"
OTHER_TOKEN = "another worker's"


def token_name(connection: HTTPConnection) -> str | None:
    token = connection.headers.get("authorization", "").removeprefix("Bearer ")
    return token if token in (TOKEN, OTHER_TOKEN) else None


class EventBoard:
    """The names of the events of executions since this process began, and who waits for one."""

    def __init__(self) -> None:
        self._names: dict[str, Counter[str]] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(self, execution_id: str, events: Sequence[Event], _state: ExecutionState) -> None:
        names = self._names.setdefault(execution_id, Counter())
        names.update(type(event.body).__name__ for event in events)
        task = asyncio.get_running_loop().create_task(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait_for(self, execution_id: str, name: str, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._names.get(execution_id, Counter())[name] >= count)


@asynccontextmanager
async def open_engine(
    folder: Path, catalog: Path, ttl: float, board: EventBoard
) -> AsyncIterator[ServerEngine]:
    home = Home(folder)
    home.make()
    store = open_store(f"sqlite:///{home.store}")
    try:
        async with ServerEngine(
            store,
            playbooks=Playbooks([catalog]),
            owners=Owners(home.owners),
            logs=FileLog(home.logs),
            results=open_result_stores(home, store),
            credentials=EncryptedCredentials(store, KeyLocation(file=home.key)),
            ttl=ttl,
            watch=board.watch,
        ) as engine:
            for record in (await store.executions(ExecutionQuery(status=("running", "paused")))).executions:
                await engine.resume(record.execution_id)  # it runs: its end is waited for
            yield engine
    finally:
        await store.close()


async def serve(options: argparse.Namespace) -> None:
    board = EventBoard()
    async with open_engine(options.home, options.catalog, options.ttl, board) as engine:

        async def start(request: Request) -> Response:
            request_body = msgspec.json.decode(await request.body())
            source = PlaybookSource(
                request_body["text"], "playbook.yaml", str(options.catalog / "playbook.yaml")
            )
            execution_id = await engine.start(
                source, workload=request_body["workload"], ctx=request_body["ctx"]
            )
            await engine.flush()  # whoever knows it may look for it
            return Response(msgspec.json.encode(execution_id))

        async def end(request: Request) -> Response:
            state = await engine.wait_for_end(request.path_params["execution_id"])
            execution = execution_of(state)
            fields = msgspec.to_builtins(execution)
            fields["result"] = await engine.resolve(state.result)
            return Response(msgspec.json.encode(fields))

        async def submit(request: Request) -> Response:
            command = decode_command(await request.body())
            assert command is not None
            await engine.submit(request.path_params["execution_id"], command)
            return Response(b"null")

        async def retry(request: Request) -> Response:
            return Response(msgspec.json.encode(await engine.retry(request.path_params["execution_id"])))

        async def redrive(request: Request) -> Response:
            return Response(msgspec.json.encode(await engine.redrive(request.path_params["execution_id"])))

        async def event(request: Request) -> Response:
            count = int(request.query_params["count"])
            await board.wait_for(request.path_params["execution_id"], request.path_params["name"], count)
            return Response(b"null")

        routes = worker_routes(engine.plane, token_name)
        app = Starlette(
            routes=[
                *routes,
                Route("/executions", start, methods=["POST"]),
                Route("/executions/{execution_id}", end, methods=["GET"]),
                Route("/executions/{execution_id}/commands", submit, methods=["POST"]),
                Route("/executions/{execution_id}/retry", retry, methods=["POST"]),
                Route("/executions/{execution_id}/redrive", redrive, methods=["POST"]),
                Route("/executions/{execution_id}/events/{name}", event, methods=["GET"]),
            ]
        )
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", options.port))
        listener.listen()
        config = uvicorn.Config(
            app, log_level="warning", ws="websockets-sansio", http="httptools", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        await serving


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ttl", type=float, default=10.0)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
