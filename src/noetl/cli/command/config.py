"""`noetl config`."""

import json

import click
import msgspec

from noetl.cli import option, stream
from noetl.settings import read


@click.group()
def config() -> None:
    """Show what is configured, and where."""


@config.command()
@option.output
def show(output: str | None) -> None:
    """Show every setting, its value, and where the value came from.

    In this order: flags, `NOETL_*` in the environment, `.env`, `noetl.toml`, defaults.
    """
    configuration = read({"output": output})
    values = msgspec.to_builtins(configuration.settings)
    if configuration.settings.output == "json":
        stream.write_json(
            {
                "settings": {
                    name: {"value": value, **msgspec.to_builtins(configuration.origins[name])}
                    for name, value in values.items()
                }
            }
        )
        return
    rows = []
    for name, value in values.items():
        origin = configuration.origins[name]
        place = f"{origin.source} ({origin.where})" if origin.where else origin.source
        rows.append((name, json.dumps(value, ensure_ascii=False), place))
    names, texts = (max(len(row[column]) for row in rows) for column in (0, 1))
    stream.write_text(
        "".join(f"{name:<{names}}  {text:<{texts}}  {stream.visible(place)}\n" for name, text, place in rows)
    )
