"""`noetl config`."""

import json
from typing import Any

import click
import msgspec

from noetl.cli import console, options
from noetl.model.secret import MASK
from noetl.settings import Configuration, read_settings


@click.group()
def config() -> None:
    """Show what is configured, and where."""


@config.command()
@options.output
def show(output: str | None) -> None:
    """Show every setting, its value, and where the value came from.

    In this order: flags, `NOETL_*` in the environment, `.env`, `noetl.toml`, defaults.
    """
    configuration = read_settings({"output": output})
    values = _values(configuration)
    if configuration.settings.output == "json":
        console.write_json(
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
        origin_text = f"{origin.source} ({origin.where})" if origin.where else origin.source
        rows.append((name, json.dumps(value, ensure_ascii=False), origin_text))
    name_width, text_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    console.write_text(
        "".join(
            f"{name:<{name_width}}  {text:<{text_width}}  {console.visible(origin_text)}\n"
            for name, text, origin_text in rows
        )
    )


def _values(configuration: Configuration) -> dict[str, Any]:
    """The settings as they take effect: places that are not set are those that will be used."""
    from noetl.home import home_of, store_url
    from noetl.model.store_url import without_password

    values: dict[str, Any] = msgspec.to_builtins(configuration.settings)
    locations = {
        "home": str(home_of(configuration).folder),
        "store": without_password(store_url(configuration)),
        "read_store": without_password(configuration.settings.read_store),
    }
    hidden = {name: MASK if values[name] else "" for name in ("key", "token")}
    return {**values, **locations, **hidden}
