"""`noetl worker`."""

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure

if TYPE_CHECKING:
    from noetl.client.http_client import AsyncClient
    from noetl.ports.admin_api import PoolItem, WorkerItem
    from noetl.settings import Configuration
    from noetl.stores.home_folder import Home
    from noetl.worker.session import WorkerOptions

home_option = click.option(
    "--home",
    type=options.FileName(),
    metavar="DIR",
    help="Where the server of here, and workers that can be stopped, are noted.  [default: ~/.noetl]",
)


@click.group()
def worker() -> None:
    """Run steps for a server."""


@worker.command()
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="URL",
    help="The server. May be repeated: the first that answers is taken, and the next if it is gone."
    "  [default: as set, or that of here]",
)
@click.option(
    "--pool",
    "pools",
    multiple=True,
    metavar="POOL",
    help="Take runs of this pool. May be repeated.  [default: default]",
)
@click.option("--slots", type=click.IntRange(min=1), help="How many runs at the same time.  [default: 32]")
@click.option(
    "--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="How many such workers."
)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    help="Where relative paths of playbooks start.  [default: here]",
)
@click.option("--detach", is_flag=True, help="Go on in the background.")
@home_option
@options.allow_kind
@options.tools
@options.log_format
@options.log_level
@options.output
@click.pass_context
def start(
    ctx: click.Context,
    *,
    servers: tuple[str, ...],
    pools: tuple[str, ...],
    slots: int | None,
    processes: int,
    directory: str,
    detach: bool,
    home: str | None,
    allow_kinds: tuple[str, ...],
    log_format: str | None,
    log_level: str | None,
    output: str | None,
) -> int:
    """Take runs from a server until it is stopped.

    Ctrl-C, SIGTERM or `noetl worker stop` once ends the attempts in flight and gives the rest back; twice
    interrupts them, too.
    """
    import socket
    import sys
    from pathlib import Path

    from noetl.api import dedicate_process
    from noetl.cli.server_connection import find_server
    from noetl.home import server_home_of
    from noetl.process_log import configure_logs
    from noetl.settings import installed_release, read_settings
    from noetl.worker.session import WorkerOptions
    from noetl.worker.worker_process import run_processes

    flags = {"slots": slots, "allow_kinds": allow_kinds, "server": servers[0] if servers else None}
    flags |= {"log_format": log_format, "log_level": log_level, "home": home, "output": output}
    configuration = read_settings(flags)
    settings = configuration.settings
    address = find_server(configuration, lambda home: home.worker_token)
    worker_home = server_home_of(configuration)
    as_json = settings.output == "json"
    if detach and not _go_on_in_background(worker_home, processes, as_json=as_json):
        return 0
    if as_json and not detach:
        console.write_bytes(_started_json(processes, log=None))
    if processes > 1:
        return run_processes(processes, _same_command(ctx))
    worker_options = WorkerOptions(
        servers=servers or (address.url,),
        name=f"{socket.gethostname()}-{os.getpid()}",
        release=installed_release(),
        token=address.token,
        pools=pools or ("default",),
        slots=settings.slots,
        directory=Path(directory).resolve(),
        allow_kinds=settings.allow_kinds,
        traced=configuration.traced,
    )
    dedicate_process()
    configure_logs(sys.stderr, settings.log_format, settings.log_level)
    _run_until_stopped(worker_options, worker_home)
    return 0


def _run_until_stopped(worker_options: "WorkerOptions", home: "Home") -> None:
    from noetl.own_loop import run_on_uvloop
    from noetl.stores.worker_record import WorkerRecord, recorded_worker
    from noetl.worker.session import WorkerRejected
    from noetl.worker.worker_process import run_worker

    servers, pools = list(worker_options.servers), list(worker_options.pools)
    try:
        with recorded_worker(home, WorkerRecord(worker_options.name, os.getpid(), servers, pools)):
            run_on_uvloop(run_worker(worker_options))
    except WorkerRejected as error:
        raise CommandFailure("rejected", str(error), hint=error.hint, exit_code=3) from None


def _go_on_in_background(home: "Home", processes: int, *, as_json: bool) -> bool:
    """False in the process that the user waits for."""
    from noetl.cli.detachment import detach_process

    home.make()
    forked = detach_process(home.worker_log, "the worker")
    if isinstance(forked, bytes):
        console.write_bytes(forked)
        return False
    text = f"process {os.getpid()}: started, its log is {home.worker_log}\n".encode()
    os.write(forked, _started_json(processes, log=str(home.worker_log)) if as_json else text)
    os.close(forked)
    return True


def _started_json(processes: int, *, log: str | None) -> bytes:
    return console.json_bytes({"pid": os.getpid(), "processes": processes, "log": log})


@worker.command("stop")
@click.argument("names", nargs=-1, metavar="[NAME]…", type=options.TextArgument())
@options.server_options
def stop(names: tuple[str, ...], **flags: str | None) -> None:
    """Stop workers, as `noetl worker list` names them; without a name, all that run here.

    They end the attempts in flight, and give the rest back. One of another machine is told so by the server,
    and not waited for.
    """
    from noetl.home import server_home_of
    from noetl.stores.worker_record import read_worker_records, wait_for_worker_end

    configuration = options.read_configuration(**flags)
    home = server_home_of(configuration)
    records = {record.name: record for record in read_worker_records(home)}
    if not names and not records:
        raise CommandFailure("no-worker", f"no worker runs in {home.folder}", exit_code=3)
    here = [records[name] for name in (names or records) if name in records]
    for record in here:
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
    elsewhere = [name for name in names if name not in records]
    if elsewhere:
        _drain_elsewhere(configuration, elsewhere)
    for record in here:
        wait_for_worker_end(home, record)
    if configuration.settings.output == "json":
        console.write_json({"stopped": [record.name for record in here], "draining": elsewhere})
        return
    for record in here:
        console.write_text(f"{console.visible(record.name)}: stopped\n")
    for name in elsewhere:
        console.write_text(f"{console.visible(name)}: was told to end\n")


def _drain_elsewhere(configuration: "Configuration", names: list[str]) -> None:
    """Raises CommandFailure, also for a name that no worker has."""
    from noetl.cli.server_connection import ask_server

    async def ask(client: "AsyncClient") -> None:
        for name in names:
            await client.drain_worker(name)

    ask_server(configuration, ask)


@worker.command("list")
@options.server_options
def list_(**flags: str | None) -> None:
    """List the workers of a server, and the pools that they serve."""
    import msgspec

    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**flags)

    async def ask(client: "AsyncClient") -> "tuple[list[WorkerItem], list[PoolItem]]":
        return (await client.workers()).workers, (await client.pools()).pools

    workers, pools = ask_server(configuration, ask)
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins({"workers": workers, "pools": pools}))
        return
    if not workers:
        console.say("the server has no workers")
    else:
        rows = [
            (
                console.visible(item.worker) or "not back yet",
                ",".join(map(console.visible, item.pools)),
                _runs_text(item),
                f"{item.heartbeat_age:.0f} s ago",
                item.release,
            )
            for item in workers
        ]
        console.write_text(console.table_text(("NAME", "POOLS", "RUNS", "HEARD OF", "RELEASE"), rows))
    for pool in pools:
        if pool.depth:
            waiting = f"pool {console.visible(pool.pool)}: {pool.depth} ready, for up to {pool.age:.1f} s"
            console.write_text(
                waiting + (f"; {console.visible(pool.problem)}" if pool.problem else "") + "\n"
            )


def _runs_text(item: "WorkerItem") -> str:
    if item.slots:
        return f"{len(item.runs)}/{item.slots}"
    # Of a session from before a restart of the server only its leases are known.
    return f"{len(item.runs)}, draining" if item.worker else str(len(item.runs))


def _same_command(ctx: click.Context) -> list[str]:
    """The words of this command for one process of several."""
    words = ["worker", "start"]
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if param.name not in (None, "processes", "detach", "output") and value not in (None, ()):
            for item in value if isinstance(value, tuple) else (value,):
                words += [param.opts[0], str(item)]
    return words
