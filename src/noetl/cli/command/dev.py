"""`noetl dev`."""

import click

from noetl.cli import options
from noetl.cli.command.server import PORT, require_extra, serve


@click.command()
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
@options.output
def dev(
    port: int, home: str | None, slots: int | None, allow_kinds: tuple[str, ...], output: str | None
) -> None:
    """Serve the embedded store here, with a worker, for development.

    As `noetl server start --embedded-worker --allow-local`, on the store that `noetl run` uses here.
    """
    require_extra()
    from noetl.daemon import ServerOptions
    from noetl.home import home_of
    from noetl.settings import read_settings

    flags = {"home": home, "slots": slots, "allow_kinds": allow_kinds, "output": output}
    configuration = read_settings(flags)
    settings = ServerOptions(
        port=port, embedded_worker=True, allow_local=True, directory=configuration.directory
    )
    serve(configuration, home_of(configuration), settings)
