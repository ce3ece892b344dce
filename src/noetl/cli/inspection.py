"""Looking into executions: those of a server, or of the embedded store, with one and the same question."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from noetl.cli import options
from noetl.cli.server_connection import ask_server, find_remote_execution
from noetl.cli.store_access import with_store
from noetl.client.http_client import AsyncClient
from noetl.engine.history.history_views import HistoryViews
from noetl.home import result_store_of
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home

T = TypeVar("T")

Inspector: TypeAlias = AsyncClient | HistoryViews
"""Both answer the same questions with the same values."""


def inspect_execution(
    configuration: Configuration, name: str, question: Callable[[Inspector, str], Awaitable[T]]
) -> T:
    """What is seen of an execution. Raises CommandFailure, NoetlError."""

    async def ask(inspector: Inspector) -> T:
        return await question(inspector, await _target(inspector, name))

    return _ask(configuration, ask)


def inspect_two(
    configuration: Configuration,
    names: tuple[str, str],
    question: Callable[[Inspector, str, str], Awaitable[T]],
) -> T:
    """The same of two."""

    async def ask(inspector: Inspector) -> T:
        first, second = [await _target(inspector, name) for name in names]
        return await question(inspector, first, second)

    return _ask(configuration, ask)


def _ask(configuration: Configuration, ask: Callable[[Inspector], Awaitable[T]]) -> T:
    if options.asks_server(configuration):
        return ask_server(configuration, ask)

    async def look(home: Home, store: Store) -> T:
        results = result_store_of(configuration, home, store)
        return await ask(HistoryViews(store, results, configuration.settings.allow_kinds))

    return with_store(configuration, look)


async def _target(inspector: Inspector, name: str) -> str:
    """A server wants the whole id; the embedded store finds what is meant by itself."""
    return await find_remote_execution(inspector, name) if isinstance(inspector, AsyncClient) else name
