"""Where executions are kept, and the commands that find them there again."""

from pathlib import Path
from shlex import quote

from noetl.settings import Configuration
from noetl.stores.home import Home, find_home
from noetl.stores.owner import Owners


def home_of(configuration: Configuration) -> Home:
    """The folder of the embedded store: the one that is set, else the nearest, else one to be made here."""
    if configuration.settings.home:
        return Home(configuration.directory / Path(configuration.settings.home).expanduser())
    environment = {"HOME": configuration.user_home} if configuration.user_home else {}
    return find_home(configuration.directory, environment)


def store_url(configuration: Configuration) -> str:
    """The store that is set, else that of the home."""
    return configuration.settings.store or f"sqlite:///{home_of(configuration).store}"


def owners_of(configuration: Configuration) -> Owners:
    """Who runs what, in a file beside the store that all its users find."""
    url = configuration.settings.store
    file = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else ""
    if file and file != ":memory:":
        return Owners(configuration.directory / f"{file}.owners")
    return Owners(home_of(configuration).owners)


class Again:
    """Commands for people to type, with the flags of this one, so that they find the same store."""

    def __init__(self, configuration: Configuration) -> None:
        self._flags = [
            f"--{name} {quote(getattr(configuration.settings, name))}"
            for name in ("home", "store")
            if configuration.origins[name].source == "flag"
        ]

    def executions(self, verb: str, execution_id: str, *words: str) -> str:
        """`noetl executions VERB ID …`."""
        return self._command(f"noetl executions {verb} {execution_id}", *words)

    def resume(self, execution_id: str) -> str:
        """`noetl run --resume ID`."""
        return self._command(f"noetl run --resume {execution_id}")

    def _command(self, start: str, *words: str) -> str:
        return " ".join([start, *map(quote, words), *self._flags])
