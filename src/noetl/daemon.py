"""The server as a process: a home, an engine, HTTP in front of it, a worker here and others elsewhere."""

import asyncio
import hashlib
import os
import re
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from noetl.embedded_worker import EmbeddedOptions, EmbeddedWorker
from noetl.engine.archive.unfinished_copy import refuse_unfinished_copy
from noetl.engine.catalog.catalog_playbooks import CatalogPlaybooks
from noetl.engine.history.history_views import HistoryViews
from noetl.engine.history.wait_reader import WaitReader
from noetl.engine.remote_control import RemoteControl
from noetl.engine.segment_log import open_task_log
from noetl.home import checked_results, key_location, result_store_of, server_store_url
from noetl.model.store_url import without_password
from noetl.model.timestamp import now_micros
from noetl.ports.admin_api import TokenRequest
from noetl.ports.store import Store
from noetl.process_log import LogEvent, log_event
from noetl.server.engine_observer import EngineObserver
from noetl.server.feed_publisher import FeedPublisher, FeedTurn
from noetl.server.feed_stream import FeedStream
from noetl.server.http.access import caller_of, may_act_as
from noetl.server.http.application import create_application
from noetl.server.http.browser_sessions import KEY_BYTES, BrowserSessions
from noetl.server.http.event_bell import EventBell
from noetl.server.http.http_server import HttpServer, ListenFailed, TlsFiles, is_loopback, listen, url_of
from noetl.server.http.resources import AuditLog, ServerResources
from noetl.server.http.session_endpoints import login_path
from noetl.server.lost_workers import LostWorkers
from noetl.server.plane.worker_routes import worker_routes
from noetl.server.read_store import ReadStore
from noetl.server.server_engine import ServerEngine
from noetl.settings import Configuration, installed_release
from noetl.stores import open_store, shared_rows_of, use_database
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
from noetl.system import SYSTEM

if TYPE_CHECKING:
    from noetl.server.execution_traces import ExecutionTraces

DRAIN_SECONDS = 30.0
"""How long tasks that run may take to end when the server is told to."""
LOCAL_ADMIN = "local-admin"
LOCAL_WORKER = "local-worker"
"""The names of the tokens that a server on loopback makes for the commands and workers of its own user."""
_LOCAL_TOKEN = re.compile(rf"({LOCAL_ADMIN}|{LOCAL_WORKER})(-[0-9a-f]{{8}})?")


class ServerOptions(Struct, frozen=True, kw_only=True):
    """How a server runs.

    With `embedded_worker` it is a worker of the pool `default` itself; with `allow_local` it runs playbooks
    with `executor.kind: local`. All else runs in workers that connect to it.
    """

    host: str = "127.0.0.1"
    port: int = 8642
    embedded_worker: bool = False
    allow_local: bool = False
    tls: TlsFiles | None = None
    directory: Path = Path()
    """Where relative paths of playbooks start."""
    hosts: frozenset[str] = frozenset()
    """Names that a server on loopback answers to, beside those of loopback: a proxy may pass its own on."""


Announce = Callable[[ServerRecord, str], None]
"""Hears where the server answers, and the path of a login link; empty if there is none."""


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
        log_event(
            LogEvent.SERVER_STARTING, release=installed_release(), pid=os.getpid(), home=str(home.folder)
        )
        url = server_store_url(configuration, home)
        store = open_store(url, inline="quick commits")
        try:
            async with use_database(url, signals.first):
                await refuse_unfinished_copy(store, without_password(url))
                await _serve(
                    configuration, home, store, options, announce=announce, routes=routes, signals=signals
                )
        except Exception as error:  # raised again: the operator's log has it, whatever it is
            log_event(LogEvent.SERVER_FAILED, error=error)
            raise
        finally:
            await store.close()
        log_event(LogEvent.SERVER_STOPPED)


async def _serve(
    configuration: Configuration,
    home: Home,
    store: Store,
    options: ServerOptions,
    *,
    announce: Announce,
    routes: Sequence[BaseRoute],
    signals: "_Signals",
) -> None:
    await _prepare_access(store, home, options.host)
    listener = listen(options.host, options.port)
    async with open_resources(configuration, home, store, options) as resources:
        server = HttpServer(_application(resources, options, routes), listener, options.tls)
        worker = make_embedded_worker(configuration, options, resources)
        serving = asyncio.create_task(server.serve())
        await server.wait_until_started(serving)
        record = ServerRecord(url_of(listener, options.tls), os.getpid())
        write_server_record(home, record)
        announce(record, _login_link(resources.browser_sessions, home, options.host))
        log_event(LogEvent.SERVER_READY, url=record.url, executions=resources.engine.live_executions)
        await _serve_until_told(server, serving, resources, worker, signals)


def _application(
    resources: ServerResources, options: ServerOptions, routes: Sequence[BaseRoute]
) -> Starlette:
    count = resources.observer.measures.count_request
    plane_routes = worker_routes(resources.plane, _worker_token, count)
    hosts = options.hosts if is_loopback(options.host) else None
    return create_application(resources, [*routes, *plane_routes], hosts)


def make_embedded_worker(
    configuration: Configuration, options: ServerOptions, resources: ServerResources
) -> EmbeddedWorker:
    """What the server does itself."""
    settings = configuration.settings
    embedded = EmbeddedOptions(
        serves_default=options.embedded_worker,
        allow_local=options.allow_local,
        slots=settings.slots,
        directory=options.directory.absolute(),
        allow_kinds=settings.allow_kinds,
        release=installed_release(),
        traced=configuration.traced,
    )
    return EmbeddedWorker(resources.plane, embedded)


def _worker_token(connection: HTTPConnection) -> str | None:
    caller = caller_of(connection.scope)
    return caller.name if may_act_as(caller.role, "worker") else None


async def _prepare_access(store: Store, home: Home, host: str) -> None:
    """Nobody beyond this machine without a token that somebody made; raises ListenFailed."""
    now = now_micros()
    tokens = [token for token in await store.api_tokens() if is_valid_token(token, now)]
    if not is_loopback(host):
        if not [token for token in tokens if not _LOCAL_TOKEN.fullmatch(token.name)]:
            message = f"{host} can be reached from other machines, and there is no token that lets anybody in"
            hint = f"`noetl token create NAME --role admin --home {home.folder}` makes one"
            raise ListenFailed(message, hint)
        return
    admin, worker = f"{LOCAL_ADMIN}{_mark_of(home)}", f"{LOCAL_WORKER}{_mark_of(home)}"
    await _make_local_token(store, TokenRequest(name=admin, role="admin"), home.admin_token, now)
    await _make_local_token(store, TokenRequest(name=worker, role="worker"), home.worker_token, now)


def _mark_of(home: Home) -> str:
    """What tells the tokens of servers on one store apart."""
    if not home.shared:
        return ""
    address = f"{socket.gethostname()}:{home.folder.absolute()}"
    return f"-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


async def _make_local_token(store: Store, request: TokenRequest, file: Path, now: int) -> None:
    """Unless the one in the file is valid."""
    known = await store.api_token(token_hash(read_token_file(file)))
    if known is not None and is_valid_token(known, now):
        return
    await store.revoke_api_token(request.name, now)
    created = await make_token(store, request, "noetl server")
    assert created is not None  # noqa: S101 - the name was just freed
    write_private_file(file, created.token.encode() + b"\n")


def _login_link(sessions: BrowserSessions, home: Home, host: str) -> str:
    """On loopback: a session of the one who started the server."""
    return (
        login_path(sessions.make_code(token_hash(read_token_file(home.admin_token))))
        if is_loopback(host)
        else ""
    )


def _session_key(home: Home) -> bytes:
    """What signs sessions: made once, so that they outlive the server."""
    with suppress(FileNotFoundError):
        if len(key := home.session_key.read_bytes()) == KEY_BYTES:
            return key
    key = secrets.token_bytes(KEY_BYTES)
    write_private_file(home.session_key, key)
    return key


@asynccontextmanager
async def open_resources(
    configuration: Configuration, home: Home, store: Store, options: ServerOptions
) -> AsyncIterator[ServerResources]:
    """What the endpoints of a server work with, on an open store: an engine that runs."""
    settings = configuration.settings
    bell, observer = EventBell(), EngineObserver()
    playbooks = CatalogPlaybooks(
        store, options.directory.absolute(), settings.allow_kinds, allow_local=options.allow_local
    )
    results = result_store_of(configuration, home, store)
    credentials = EncryptedCredentials(store, key_location(configuration, home))
    owners, logs = Owners(home.owners), open_task_log(home, results)
    engine = ServerEngine(
        store,
        playbooks=playbooks,
        owners=owners,
        watch=bell.watch,
        logs=logs,
        results=results,
        credentials=credentials,
        ttl=settings.lease_ttl,
        adopts=not home.shared,
        shared=shared_rows_of(store),
        system=observer.system,
    )
    engine.subscribe(observer)
    audit_log, lost_workers = AuditLog(store), LostWorkers(store)
    engine.plane.sessions.on_worker_lost = lost_workers.note
    traces = _open_traces() if configuration.traced else None
    if traces is not None:
        engine.subscribe(traces)
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(checked_results(results))
        opened.push_async_callback(logs.close)
        # Outside the engine: what that writes at its end is published, too.
        feed = await opened.enter_async_context(_feed_of(configuration, store, bell, home, engine.server_id))
        await opened.enter_async_context(engine)
        replica = await _open_read_store(configuration, store, opened)
        ringing = asyncio.create_task(bell.ring_for_others(store, engine.running_elsewhere))
        try:
            yield ServerResources(
                engine=engine,
                store=store,
                playbooks=playbooks,
                results=results,
                views=HistoryViews(
                    store, results, playbooks.allow_kinds, replica.store if replica is not None else None
                ),
                logs=logs,
                credentials=credentials,
                control=RemoteControl(store, owners, results, playbooks),
                bell=bell,
                observer=observer,
                plane=engine.plane,
                audit_log=audit_log,
                lost_workers=lost_workers,
                browser_sessions=BrowserSessions(_session_key(home), store),
                wait_reader=WaitReader(store, settings.allow_kinds, engine.live_state),
                home=home,
                store_url=without_password(server_store_url(configuration, home)),
                started_at=now_micros(),
                feed=feed,
                read_store=replica,
            )
        finally:
            bell.close()
            ringing.cancel()
            await asyncio.gather(ringing, return_exceptions=True)
            await lost_workers.close()
            await audit_log.close()
            if traces is not None:
                await traces.close()


async def _open_read_store(
    configuration: Configuration, store: Store, opened: AsyncExitStack
) -> ReadStore | None:
    """The replica that the settings name. Raises StoreUnusable."""
    if not (url := configuration.settings.read_store):
        return None
    return await opened.enter_async_context(ReadStore(url, store))


@asynccontextmanager
async def _feed_of(
    configuration: Configuration, store: Store, bell: EventBell, home: Home, server_id: str
) -> AsyncIterator[FeedPublisher | None]:
    """What publishes the events, if the settings name a stream. Raises FeedUnusable."""
    if not (url := configuration.settings.feed):
        yield None
        return
    stream = FeedStream(url, os.environ)
    shared = shared_rows_of(store)
    turn = FeedTurn(shared, server_id) if shared is not None else None
    async with FeedPublisher(stream, store, bell, keeps_end=not home.shared, turn=turn) as publisher:
        yield publisher


def _open_traces() -> "ExecutionTraces | None":
    """None if what makes them is not installed."""
    try:
        from noetl.server.execution_traces import ExecutionTraces  # noqa: PLC0415 - most servers send none
    except ImportError as error:
        log_event(LogEvent.NOT_TRACED, error=str(error))
        return None
    return ExecutionTraces(SYSTEM)


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
    server: HttpServer,
    serving: "asyncio.Task[None]",
    resources: ServerResources,
    worker: EmbeddedWorker,
    signals: _Signals,
) -> None:
    """Until a signal comes, or the engine fails. Then tasks may end, streams are closed, all is written."""
    engine = resources.engine
    first, second = asyncio.create_task(signals.first.wait()), asyncio.create_task(signals.second.wait())
    stopped = asyncio.create_task(engine.wait_until_stopped())
    working = asyncio.create_task(worker.run())
    try:
        ends = [first, stopped, serving]
        # The operator may have told the worker to leave: then the server goes on without it.
        await asyncio.wait([*ends, working], return_when=asyncio.FIRST_COMPLETED)
        if working.done() and working.exception() is None:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        log_event(LogEvent.SERVER_DRAINING, executions=engine.live_executions)
        resources.bell.close()
        worker.drain()
        drained = [working, stopped, second]
        await asyncio.wait(drained, timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        await worker.kill()
        await working
        engine.interrupt()
        await engine.kill()
        server.close()
        await serving
        await stopped
    finally:
        tasks = (first, second, stopped, serving, working)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
