"""Where executions are kept, as the settings say."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noetl.ports.store import Store
from noetl.settings import Configuration, SettingsWrong
from noetl.stores import store_file_of
from noetl.stores.credentials.encryption_key import KeyLocation
from noetl.stores.home_folder import FOLDER, Home, find_home, home_beside
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.result_store_urls import ResultStoreUrlWrong, open_result_stores, parse_named_urls


def home_of(configuration: Configuration) -> Home:
    """The folder of the embedded store: the one that is set, else the nearest, else one to be made here.

    A store in a file of its own has a home beside it. Raises StoreUrlWrong.
    """
    settings = configuration.settings
    if settings.store and (file := store_file_of(settings.store)) is not None:
        return home_beside(configuration.directory / file)
    if settings.home:
        return Home(configuration.directory / Path(settings.home).expanduser())
    environment = {"HOME": configuration.user_home} if configuration.user_home else {}
    return find_home(configuration.directory, environment)


def server_home_of(configuration: Configuration) -> Home:
    """The folder of a server: the one that is set, else `.noetl` in the user's home directory.

    Raises StoreUrlWrong, SettingsWrong.
    """
    settings = configuration.settings
    if settings.home or settings.store:
        return home_of(configuration)
    if not configuration.user_home:
        raise SettingsWrong("there is no home directory", "--home names the folder of the server")
    return Home(Path(configuration.user_home) / FOLDER)


def store_url(configuration: Configuration) -> str:
    """The store that is set, else that of the home."""
    return configuration.settings.store or f"sqlite:///{home_of(configuration).store}"


def result_store_names(configuration: Configuration) -> frozenset[str]:
    """The result stores that playbooks may name. Raises SettingsWrong."""
    with _as_setting():
        return frozenset(parse_named_urls(configuration.settings.result_stores))


def key_location(configuration: Configuration, home: Home | None = None) -> KeyLocation:
    """Where the key is that seals credentials; a store in memory has one only if it is given.

    `home` is another one than the settings say, if it is given.
    """
    settings = configuration.settings
    if settings.key_file:
        return KeyLocation(file=configuration.directory / Path(settings.key_file).expanduser())
    if home is None and store_file_of(store_url(configuration)) is not None:
        home = home_of(configuration)
    return KeyLocation(settings.key, home.key if home is not None else None)


def result_store_of(configuration: Configuration, home: Home | None, store: Store) -> NamedResults:
    """Where results are kept, as the settings say; in memory without a home. Raises SettingsWrong."""
    settings = configuration.settings
    with _as_setting():
        return open_result_stores(
            home,
            store,
            own=settings.result_store,
            named=settings.result_stores,
            directory=configuration.directory,
        )


@contextmanager
def _as_setting() -> Iterator[None]:
    try:
        yield
    except ResultStoreUrlWrong as error:
        raise SettingsWrong(str(error), error.hint) from None
