"""`noetl worker`."""

import os

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure


@click.group()
def worker() -> None:
    """Run steps for a server."""


@worker.command()
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="URL",
    help="The server. May be repeated: the first that answers is taken.  [default: as set, or that of here]",
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
@options.allow_kind
@options.tools
@click.pass_context
def start(
    ctx: click.Context,
    *,
    servers: tuple[str, ...],
    pools: tuple[str, ...],
    slots: int | None,
    processes: int,
    directory: str,
    allow_kinds: tuple[str, ...],
) -> int:
    """Take runs from a server until it is stopped.

    Ctrl-C or SIGTERM once ends the attempts in flight and gives the rest back; twice interrupts them, too.
    """
    import asyncio
    import socket
    from pathlib import Path

    from noetl.api import dedicate_process
    from noetl.cli.server_connection import find_server
    from noetl.settings import installed_release, read_settings
    from noetl.worker.session import WorkerOptions, WorkerRejected
    from noetl.worker.worker_process import run_processes, run_worker

    flags = {"slots": slots, "allow_kinds": allow_kinds, "server": servers[0] if servers else None}
    configuration = read_settings(flags)
    settings = configuration.settings
    address = find_server(configuration, lambda home: home.worker_token)
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
    )
    dedicate_process()
    try:
        asyncio.run(run_worker(worker_options, console.say))
    except WorkerRejected as error:
        raise CommandFailure("rejected", str(error), hint=error.hint, exit_code=3) from None
    return 0


def _same_command(ctx: click.Context) -> list[str]:
    """The words of this command for one process of several."""
    words = ["worker", "start"]
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if param.name not in (None, "processes") and value not in (None, ()):
            for item in value if isinstance(value, tuple) else (value,):
                words += [param.opts[0], str(item)]
    return words
