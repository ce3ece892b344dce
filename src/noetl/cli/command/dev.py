"""`noetl dev`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from noetl.cli import options
from noetl.cli.command.server import PORT, require_extra, serve

if TYPE_CHECKING:
    from noetl.stores.server_record import ServerRecord


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False), required=False, metavar="[DIR]")
@click.option("--reload", is_flag=True, help="Register playbooks of DIR again when their files change.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Where to listen; 0 is any that is free.",
)
@options.home
@options.slots
@options.tools
@options.allow_kind
@options.log_format
@options.log_level
@options.output
def dev(
    *,
    folder: str | None,
    reload: bool,
    port: int,
    home: str | None,
    slots: int | None,
    allow_kinds: tuple[str, ...],
    log_format: str | None,
    log_level: str | None,
    output: str | None,
) -> None:
    """Serve the embedded store here, with a worker, for development.

    As `noetl server start --embedded-worker --allow-local`, on the store that `noetl run` uses here. The
    playbooks in DIR and below are registered; with --reload those of the working directory unless DIR says
    another. A file that is not valid is said, and what was registered of it stays.
    """
    require_extra()
    from noetl.cli.playbook_folder import register_in_background
    from noetl.client.http_client import Client
    from noetl.daemon import ServerOptions
    from noetl.home import home_of
    from noetl.settings import read_settings
    from noetl.stores.server_record import read_token_file

    flags = {"home": home, "slots": slots, "allow_kinds": allow_kinds, "output": output}
    configuration = read_settings({**flags, "log_format": log_format, "log_level": log_level})
    settings = ServerOptions(
        port=port, embedded_worker=True, allow_local=True, directory=configuration.directory
    )
    store_home = home_of(configuration)

    def register(record: "ServerRecord") -> None:
        if folder is not None or reload:
            client = Client(record.url, read_token_file(store_home.admin_token))
            register_in_background(Path(folder or configuration.directory), client, reload=reload)

    serve(configuration, store_home, settings, on_ready=register)
