"""`noetl server`."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.detachment import detach_process
from noetl.cli.format import pluralize
from noetl.model.store_url import is_database_url

if TYPE_CHECKING:
    from noetl.daemon import ServerOptions
    from noetl.settings import Configuration
    from noetl.stores.home_folder import Home
    from noetl.stores.server_record import ServerRecord

PORT = 8642
LONG_END = 45.0
"""Seconds after which an end takes longer than it may: half a minute for tasks, some for requests."""
home_option = click.option(
    "--home",
    type=options.FileName(),
    metavar="DIR",
    help="The folder of the server: its store, results, keys.  [default: ~/.noetl]",
)


@click.group()
def server() -> None:
    """Start and stop a server: playbooks by path, executions, HTTP."""


@server.command("start")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Where to listen; 0 is any that is free.",
)
@click.option("--detach", is_flag=True, help="Go on in the background when it is ready.")
@click.option("--embedded-worker", is_flag=True, help="Be a worker of the pool `default`, too.")
@click.option("--allow-local", is_flag=True, help="Accept playbooks with `executor.kind: local`.")
@click.option("--tls-cert", type=options.FileName(), metavar="FILE", help="Its certificate and chain, PEM.")
@click.option("--tls-key", type=options.FileName(), metavar="FILE", help="The key of the certificate, PEM.")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="On loopback, a name that a proxy passes on; may be repeated.",
)
@home_option
@click.option(
    "--store",
    type=options.TextArgument(),
    metavar="URL",
    help="A database to keep executions in: postgresql://….  [default: a file in the folder]",
)
@click.option(
    "--read-store",
    type=options.TextArgument(),
    metavar="URL",
    help="A replica of the database, for lists, searches and histories.",
)
@click.option(
    "--feed",
    type=options.TextArgument(),
    metavar="URL",
    help="Publish all events to a stream: nats://HOST:PORT/STREAM.",
)
@options.slots
@options.tools
@options.allow_kind
@options.log_format
@options.log_level
@options.output
def start(
    *,
    host: str,
    port: int,
    detach: bool,
    embedded_worker: bool,
    allow_local: bool,
    tls_cert: str | None,
    tls_key: str | None,
    hosts: tuple[str, ...],
    home: str | None,
    store: str | None,
    read_store: str | None,
    feed: str | None,
    slots: int | None,
    allow_kinds: tuple[str, ...],
    log_format: str | None,
    log_level: str | None,
    output: str | None,
) -> None:
    """Start a server, and serve until SIGTERM or Ctrl-C.

    It then lets the tasks that run end, for half a minute; a second Ctrl-C does not. On loopback it makes a
    token that commands on this machine find by themselves, and prints a link that opens its page, once.
    """
    from noetl.settings import read_settings

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    flags = {"home": home, "store": store, "slots": slots, "allow_kinds": allow_kinds, "output": output}
    flags |= {"read_store": read_store, "feed": feed, "log_format": log_format, "log_level": log_level}
    configuration = read_settings(flags)
    _require_replicated_store(configuration)
    require_extra()
    from noetl.daemon import ServerOptions
    from noetl.home import server_home_of
    from noetl.server.http.http_server import TlsFiles

    tls = TlsFiles(Path(tls_cert), Path(tls_key)) if tls_cert and tls_key else None
    settings = ServerOptions(
        host=host,
        port=port,
        embedded_worker=embedded_worker,
        allow_local=allow_local,
        tls=tls,
        directory=configuration.directory,
        hosts=frozenset(map(str.lower, hosts)),
    )
    serve(configuration, server_home_of(configuration), settings, detach=detach)


@server.command("stop")
@home_option
@options.output
def stop(home: str | None, output: str | None) -> None:
    """Stop the server of a home, and wait until it has ended."""
    from noetl.stores.server_record import read_server_record, wait_for_server_end

    configuration, server_home = _server_home(home, output)
    record = read_server_record(server_home)
    if record is None:
        raise CommandFailure("server-unreachable", f"no server runs in {server_home.folder}", exit_code=3)
    with contextlib.suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGTERM)
    if not wait_for_server_end(server_home, LONG_END):
        how = f"`kill -9 {record.pid}` ends it at once, and its next start goes on with what it ran"
        console.say(f"process {record.pid} has not ended yet; {how}")
        wait_for_server_end(server_home)
    if configuration.settings.output == "json":
        console.write_json({"url": record.url, "pid": record.pid, "stopped": True})
    else:
        console.write_text(f"{record.url}: stopped\n")


@server.command("status")
@home_option
@options.output
def status(home: str | None, output: str | None) -> int:
    """Say whether a server runs in a home, who works for it, and what waits.

    Exits with 3 if none runs.
    """
    from noetl.stores.server_record import read_server_record

    configuration, server_home = _server_home(home, output)
    record = read_server_record(server_home)
    document: dict[str, Any] = {"running": record is not None, "url": None, "pid": None}
    if record is not None:
        document |= {"url": record.url, "pid": record.pid, **_ask_status(configuration, server_home, record)}
    if configuration.settings.output == "json":
        console.write_json({**document, "home": str(server_home.folder)})
    elif record is not None:
        console.write_text(_status_text(document))
    else:
        console.write_text(f"no server runs in {console.visible(str(server_home.folder))}\n")
    return 0 if record is not None else 3


@server.command("login")
@home_option
@options.output
def login(home: str | None, output: str | None) -> None:
    """Print a link that opens the page of the server of a home, logged in, one time within an hour."""
    from noetl.cli.server_connection import failure_of_refusal
    from noetl.client.http_client import Client
    from noetl.client.server_requests import ServerError, ServerUnreachable
    from noetl.stores.server_record import read_server_record, read_token_file

    configuration, server_home = _server_home(home, output)
    record = read_server_record(server_home)
    if record is None:
        raise CommandFailure("server-unreachable", f"no server runs in {server_home.folder}", exit_code=3)
    token = configuration.settings.token or read_token_file(server_home.admin_token)
    try:
        link = Client(record.url, token).create_login_link()
    except ServerError as error:
        raise failure_of_refusal(error) from None
    except ServerUnreachable as error:
        raise CommandFailure("server-unreachable", str(error), hint=error.hint, exit_code=3) from None
    url = record.url + link.path
    if configuration.settings.output == "json":
        console.write_json({"login": url, "expires_at": link.expires_at})
    else:
        console.write_text(f"{url}\n")


def _ask_status(configuration: "Configuration", home: "Home", record: "ServerRecord") -> dict[str, Any]:
    """What the server says of itself; why it says nothing, if it does not."""
    from noetl.client.http_client import Client
    from noetl.client.server_requests import ServerError, ServerUnreachable
    from noetl.stores.server_record import read_token_file

    token = configuration.settings.token or read_token_file(home.admin_token)
    try:
        answer: dict[str, Any] = msgspec.to_builtins(Client(record.url, token).status())
        return answer
    except (ServerError, ServerUnreachable) as error:
        return {"ready": False, "problem": str(error)}


def _status_text(document: dict[str, Any]) -> str:
    state = "running" if document["ready"] else f"not ready ({console.visible(document['problem'])})"
    lines = [f"{document['url']}: {state}, process {document['pid']}"]
    if "release" in document:
        executions = f"{pluralize(document['executions'], 'execution')}, {document['stuck']} of them stuck"
        slots = f"{document['claimed']} of {document['slots']} slots in use"
        lines += [
            f"release {document['release']}, up since {document['started_at']}, {document['store']}",
            f"{executions}; {pluralize(document['workers'], 'worker')}, {slots}",
        ]
        for pool in document["pools"]:
            depth = pluralize(pool["depth"], "run")
            lines.append(
                f"pool {console.visible(pool['pool'])}: {depth} ready, for up to {pool['age']:.1f} s"
            )
        if (feed := document["feed"]) is not None:
            why = f" ({console.visible(feed['problem'])})" if feed["problem"] else ""
            lines.append(f"feed {feed['stream']}: {feed['lag']:.1f} s behind{why}")
        if (replica := document["read_store"]) is not None:
            state = f"{replica['lag']:.1f} s behind" if replica["lag"] is not None else replica["problem"]
            lines.append(f"lists and histories from {replica['store']}: {console.visible(state)}")
        lines.append(f"last commit {document['last_commit_at'] or 'none'}")
    return "".join(f"{line}\n" for line in lines)


def serve(
    configuration: "Configuration",
    home: "Home",
    settings: "ServerOptions",
    *,
    detach: bool = False,
    on_ready: "Callable[[ServerRecord], None] | None" = None,
) -> None:
    """Serves until it is told to end; detached, returns when the server is ready. Raises CommandFailure.

    `on_ready` hears when requests are answered.
    """
    ready: int | None = None
    if detach:
        home.make()
        if isinstance(forked := detach_process(home.server_log, "the server"), bytes):
            console.write_bytes(forked)
            return
        ready = forked
    from noetl.api import dedicate_process
    from noetl.daemon import run_server
    from noetl.own_loop import run_on_uvloop
    from noetl.process_log import configure_logs
    from noetl.server.feed_stream import FeedUnusable
    from noetl.server.http.http_server import ListenFailed
    from noetl.stores.server_record import ServerRunning

    def announce(record: "ServerRecord", login_path: str) -> None:
        text = _record_text(configuration, home, record, login_path)
        if ready is None:
            console.write_bytes(text)
        else:
            os.write(ready, text)
            os.close(ready)
        if on_ready is not None:
            on_ready(record)

    dedicate_process()
    configure_logs(sys.stderr, configuration.settings.log_format, configuration.settings.log_level)
    try:
        run_on_uvloop(run_server(configuration, home, settings, announce))
    except ListenFailed as error:
        raise CommandFailure("listen", str(error), hint=error.hint) from None
    except FeedUnusable as error:
        raise CommandFailure("feed", str(error), hint=error.hint, exit_code=3) from None
    except ServerRunning as error:
        hint = "`noetl server status` says where; --home names another folder"
        raise CommandFailure("server-running", str(error), hint=hint) from None


def _require_replicated_store(configuration: "Configuration") -> None:
    """Raises UsageError where `read_store` is no database, or nothing that it could be a replica of."""
    settings = configuration.settings
    if settings.read_store and not (is_database_url(settings.store) and is_database_url(settings.read_store)):
        raise click.UsageError("--read-store names a replica of the database in --store: postgresql://…")


def require_extra() -> None:
    """Raises CommandFailure if what a server needs is not installed."""
    try:
        import prometheus_client  # noqa: F401 - whether it is there
        import starlette  # noqa: F401 - likewise
        import uvicorn  # noqa: F401 - likewise
    except ImportError as error:
        hint = "install noetl[server]"
        raise CommandFailure(
            "not-installed", f"a server needs {error.name}", hint=hint, exit_code=3
        ) from None


def _server_home(home: str | None, output: str | None) -> "tuple[Configuration, Home]":
    from noetl.home import server_home_of
    from noetl.settings import read_settings

    configuration = read_settings({"home": home, "output": output})
    return configuration, server_home_of(configuration)


def _record_text(
    configuration: "Configuration", home: "Home", record: "ServerRecord", login_path: str
) -> bytes:
    url = record.url + login_path if login_path else None
    if configuration.settings.output == "json":
        document: dict[str, Any] = msgspec.to_builtins(record)
        return console.json_bytes({**document, "home": str(home.folder), "login": url})
    lines = [f"listening on {record.url}", *([f"log in, once, at {url}"] if url else [])]
    return "".join(f"{line}\n" for line in lines).encode()
