"""Where executions are kept, as the settings say."""

from pathlib import Path

from noetl.settings import Configuration
from noetl.stores import file_of
from noetl.stores.credentials.key import KeyPlace
from noetl.stores.home import Home, find_home, home_beside


def home_of(configuration: Configuration) -> Home:
    """The folder of the embedded store: the one that is set, else the nearest, else one to be made here.

    A store in a file of its own has a home beside it. Raises StoreUnusable if the URL names no store.
    """
    settings = configuration.settings
    if settings.store and (file := file_of(settings.store)) is not None:
        return home_beside(configuration.directory / file)
    if settings.home:
        return Home(configuration.directory / Path(settings.home).expanduser())
    environment = {"HOME": configuration.user_home} if configuration.user_home else {}
    return find_home(configuration.directory, environment)


def store_url(configuration: Configuration) -> str:
    """The store that is set, else that of the home."""
    return configuration.settings.store or f"sqlite:///{home_of(configuration).store}"


def key_place(configuration: Configuration) -> KeyPlace:
    """Where the key is that seals credentials; a store in memory has one only if it is given."""
    settings = configuration.settings
    if settings.key_file:
        return KeyPlace(file=configuration.directory / Path(settings.key_file).expanduser())
    in_memory = file_of(store_url(configuration)) is None
    return KeyPlace(settings.key, None if in_memory else home_of(configuration).key)
