"""The server as a process: a home, an engine, HTTP in front of it, and a worker here or others elsewhere."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.routing import BaseRoute

from noetl.engine.catalog.catalog_playbooks import CatalogPlaybooks
from noetl.engine.history.lookup import PAGE
from noetl.engine.remote_control import RemoteControl
from noetl.engine.service import AlreadyRunning
from noetl.engine.task_log import TaskLog
from noetl.home import key_location, result_store_of
from noetl.local import Local
from noetl.model.timestamp import now_micros
from noetl.ports.http_api import TokenRequest
from noetl.ports.store import ExecutionQuery, Store
from noetl.server.http.access import caller_of, may_act_as
from noetl.server.http.application import create_application
from noetl.server.http.event_bell import EventBell
from noetl.server.http.http_server import HttpServer, ListenFailed, TlsFiles, is_loopback, listen, url_of
from noetl.server.http.resources import AuditLog, ServerResources
from noetl.server.plane.worker_routes import worker_routes
from noetl.server.server_engine import ServerEngine
from noetl.settings import Configuration
from noetl.stores import open_store
from noetl.stores.api_tokens import is_valid_token, make_token, token_hash
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners
from noetl.stores.server_record import (
    ServerRecord,
    only_server,
    read_token_file,
    write_private_file,
    write_server_record,
)

DRAIN_SECONDS = 30.0
"""How long tasks that run may take to end when the server is told to."""
LOCAL_ADMIN = "local-admin"
LOCAL_WORKER = "local-worker"
"""The names of the tokens that a server on loopback makes for the commands and workers of its own user."""


class ServerOptions(Struct, frozen=True, kw_only=True):
    """How a server runs. Without `embedded_worker` tasks run in workers that connect to it."""

    host: str = "127.0.0.1"
    port: int = 8642
    embedded_worker: bool = False
    allow_local: bool = False
    tls: TlsFiles | None = None
    directory: Path = Path()
    """Where relative paths of playbooks start."""


Announce = Callable[[ServerRecord], None]


async def run_server(
    configuration: Configuration,
    home: Home,
    options: ServerOptions,
    announce: Announce,
    routes: Sequence[BaseRoute] = (),
) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends what runs at once.

    `announce` hears when requests are answered. Raises ServerRunning, ListenFailed, StoreError: also when the
    store fails while it runs, since nothing could be recorded any more.
    """
    home.make()
    with only_server(home), _Signals() as signals:
        store = open_store(f"sqlite:///{home.store}", inline="nothing")
        try:
            await _prepare_access(store, home, options.host)
            listener = listen(options.host, options.port)
            async with open_resources(configuration, home, store, options) as resources:
                application = create_application(resources, [*routes, *_worker_routes(resources)])
                server = HttpServer(application, listener, options.tls)
                await _resume_interrupted(resources)
                serving = asyncio.create_task(server.serve())
                await server.wait_until_started(serving)
                record = ServerRecord(url_of(listener, options.tls), os.getpid())
                write_server_record(home, record)
                announce(record)
                await _serve_until_told(server, serving, resources, signals)
        finally:
            await store.close()


def _worker_routes(resources: ServerResources) -> list[BaseRoute]:
    """For workers elsewhere, unless the server has one of its own."""
    engine = resources.engine
    if not isinstance(engine, ServerEngine):
        return []
    return worker_routes(
        engine.plane, lambda connection: may_act_as(caller_of(connection.scope).role, "worker")
    )


async def _prepare_access(store: Store, home: Home, host: str) -> None:
    """Nobody beyond this machine without a token that somebody made; raises ListenFailed."""
    now = now_micros()
    tokens = [token for token in await store.api_tokens() if is_valid_token(token, now)]
    if not is_loopback(host):
        if not [token for token in tokens if token.name not in (LOCAL_ADMIN, LOCAL_WORKER)]:
            message = f"{host} can be reached from other machines, and there is no token that lets anybody in"
            hint = f"`noetl token create NAME --role admin --home {home.folder}` makes one"
            raise ListenFailed(message, hint)
        return
    await _make_local_token(store, TokenRequest(name=LOCAL_ADMIN, role="admin"), home.admin_token, now)
    await _make_local_token(store, TokenRequest(name=LOCAL_WORKER, role="worker"), home.worker_token, now)


async def _make_local_token(store: Store, request: TokenRequest, file: Path, now: int) -> None:
    """Unless the one in the file is valid."""
    known = await store.api_token(token_hash(read_token_file(file)))
    if known is not None and is_valid_token(known, now):
        return
    await store.revoke_api_token(request.name, now)
    created = await make_token(store, request, "noetl server")
    assert created is not None  # noqa: S101 - the name was just freed
    write_private_file(file, created.token.encode() + b"\n")


@asynccontextmanager
async def open_resources(
    configuration: Configuration, home: Home, store: Store, options: ServerOptions
) -> AsyncIterator[ServerResources]:
    """What the endpoints of a server work with, on an open store: an engine that runs."""
    settings = configuration.settings
    bell = EventBell()
    playbooks = CatalogPlaybooks(store, options.directory.absolute(), settings.allow_kinds)
    results = result_store_of(configuration, home, store)
    credentials = EncryptedCredentials(store, key_location(configuration, home))
    owners, logs = Owners(home.owners), TaskLog(home.logs)
    shared: dict[str, Any] = {
        "playbooks": playbooks,
        "owners": owners,
        "watch": bell.watch,
        "logs": logs,
        "results": results,
        "credentials": credentials,
    }
    engine: Local | ServerEngine = (
        Local(store, slots=settings.slots, **shared)
        if options.embedded_worker
        else ServerEngine(store, **shared)
    )
    async with engine:
        ringing = asyncio.create_task(bell.ring_for_others(store))
        try:
            yield ServerResources(
                engine=engine,
                store=store,
                playbooks=playbooks,
                results=results,
                logs=logs,
                credentials=credentials,
                control=RemoteControl(store, owners, results, playbooks),
                bell=bell,
                audit_log=AuditLog(store),
                allow_local=options.allow_local,
            )
        finally:
            bell.close()
            ringing.cancel()
            await asyncio.gather(ringing, return_exceptions=True)


async def _resume_interrupted(resources: ServerResources) -> None:
    """Goes on with what ran when the last server ended. What is paused, or another process runs, is left."""
    engine, cursor = resources.engine, ""
    while True:
        query = ExecutionQuery(status=("running",), cursor=cursor, limit=PAGE)
        page = await resources.store.executions(query)
        for record in page.executions:
            with suppress(AlreadyRunning):
                if not engine.is_running(record.execution_id):
                    await engine.resume(record.execution_id)
                    engine.forget_end(record.execution_id)
        if not (cursor := page.next):
            return


class _Signals:
    """The first SIGTERM or SIGINT asks for the end, the second for it at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    def __enter__(self) -> "_Signals":
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)

    def _on_signal(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


async def _serve_until_told(
    server: HttpServer, serving: "asyncio.Task[None]", resources: ServerResources, signals: _Signals
) -> None:
    """Until a signal comes, or the engine fails. Then tasks may end, streams are closed, all is written."""
    engine = resources.engine
    first, second = asyncio.create_task(signals.first.wait()), asyncio.create_task(signals.second.wait())
    stopped = asyncio.create_task(engine.wait_until_stopped())
    try:
        await asyncio.wait([first, stopped, serving], return_when=asyncio.FIRST_COMPLETED)
        resources.bell.close()
        engine.interrupt()
        await asyncio.wait([stopped, second], timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        await engine.kill()
        server.close()
        await serving
        await stopped
    finally:
        tasks = (first, second, stopped, serving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
