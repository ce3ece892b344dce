"""Where executions are kept, as the settings say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from noetl.model.store_url import is_database_url
from noetl.ports.store import Store
from noetl.settings import Configuration, SettingsWrong
from noetl.stores import is_memory_url, store_file_of
from noetl.stores.credentials.encryption_key import KeyLocation
from noetl.stores.home_folder import FOLDER, Home, find_home, home_beside
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.result_store_urls import IN_STORE, open_result_stores, parse_named_urls


def home_of(configuration: Configuration) -> Home:
    """The folder of the embedded store: the one that is set, else the nearest, else one to be made here.

    A store in a file of its own has a home beside it; of one in a database the home has keys, logs and locks
    of this machine. Raises StoreUrlWrong.
    """
    settings = configuration.settings
    shared = is_database_url(settings.store)
    if settings.store and (file := store_file_of(settings.store)) is not None:
        return home_beside(configuration.directory / file)
    if settings.home:
        return Home(configuration.directory / Path(settings.home).expanduser(), shared=shared)
    environment = {"HOME": configuration.user_home} if configuration.user_home else {}
    return find_home(configuration.directory, environment, shared=shared)


def server_home_of(configuration: Configuration) -> Home:
    """The folder of a server: the one that is set, else `.noetl` in the user's home directory.

    Raises StoreUrlWrong, SettingsWrong.
    """
    settings = configuration.settings
    if settings.home or (settings.store and not is_database_url(settings.store)):
        return home_of(configuration)
    if not configuration.user_home:
        raise SettingsWrong("there is no home directory", "--home names the folder of the server")
    return Home(Path(configuration.user_home) / FOLDER, shared=is_database_url(settings.store))


def server_homes(configuration: Configuration) -> list[Home]:
    """Where commands look for a server: in the home that is set; else in the nearest, and in the user's."""
    homes = [home_of(configuration)]
    if not (configuration.settings.home or configuration.settings.store) and configuration.user_home:
        homes.append(server_home_of(configuration))
    return homes


def store_url(configuration: Configuration) -> str:
    """The store that is set, else that of the home."""
    return configuration.settings.store or f"sqlite:///{home_of(configuration).store}"


def server_store_url(configuration: Configuration, home: Home) -> str:
    """The store of a server: the database that is set, else that of its home."""
    url = configuration.settings.store
    return url if is_database_url(url) else f"sqlite:///{home.store}"


def result_store_names(configuration: Configuration) -> frozenset[str]:
    """The result stores that playbooks may name. Raises ResultStoreUrlWrong."""
    return frozenset(parse_named_urls(configuration.settings.result_stores))


def key_location(configuration: Configuration, home: Home | None = None) -> KeyLocation:
    """Where the key is that seals credentials; a store in memory has one only if it is given.

    `home` is another one than the settings say, if it is given.
    """
    settings = configuration.settings
    if settings.key_file:
        return KeyLocation(file=configuration.directory / Path(settings.key_file).expanduser())
    if home is None and not is_memory_url(store_url(configuration)):
        home = home_of(configuration)
    return KeyLocation(settings.key, home.key if home is not None else None)


def result_store_of(configuration: Configuration, home: Home | None, store: Store) -> NamedResults:
    """Where results are kept, as the settings say. Raises ResultStoreUrlWrong.

    If they do not: where other machines find them, too, if the store is a database; else in the home, and
    without one in memory.
    """
    settings = configuration.settings
    default = IN_STORE if is_database_url(settings.store) else ""
    return open_result_stores(
        home,
        store,
        own=settings.result_store or default,
        named=settings.result_stores,
        directory=configuration.directory,
    )


@asynccontextmanager
async def checked_results(results: NamedResults) -> AsyncIterator[None]:
    """They are tried before anything rests on them, and closed in the end. Raises ResultError."""
    try:
        await results.check()
        yield
    finally:
        await results.close()
