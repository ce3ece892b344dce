"""The result stores that settings name."""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from noetl.model.errors import NoetlError
from noetl.model.reference import OWN_STORE
from noetl.ports.results import ResultError, ResultStore
from noetl.ports.store import Store
from noetl.stores.home_folder import Home
from noetl.stores.results.bucket_backend import BUCKET_SCHEMES, BucketResults
from noetl.stores.results.database_backend import DatabaseResults
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.nats_backend import NatsResults

IN_STORE = "store:"
"""The URL of the event store itself."""
_HINT = (
    "file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, "
    "nats://HOST/BUCKET or store:"
)


class ResultStoreUrlWrong(NoetlError):
    """The settings name result stores that there cannot be."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


def open_result_stores(
    home: Home | None, store: Store, *, own: str = "", named: Iterable[str] = (), directory: Path = Path()
) -> NamedResults:
    """The engine's own store at the URL `own`, and those `NAME=URL`. Without one it is files in the home.

    Relative folders start in `directory`. Raises ResultStoreUrlWrong.
    """
    scratch = home.scratch if home is not None else None

    def open_url(url: str) -> ResultStore:
        return _open_result_store(url, store, scratch, directory)

    stores = {name: open_url(url) for name, url in parse_named_urls(named).items()}
    default: ResultStore = FileResults(home.results) if home is not None else MemoryResults()
    return NamedResults(open_url(own) if own else default, stores, own_is_set=bool(own))


def parse_named_urls(named: Iterable[str]) -> dict[str, str]:
    """The URLs by name. Raises ResultStoreUrlWrong."""
    urls: dict[str, str] = {}
    for entry in named:
        name, equals, url = entry.partition("=")
        name, url = name.strip(), url.strip()
        if not equals or not name.isidentifier() or name == OWN_STORE:
            message = f"`{entry}` in `result_stores` is not NAME=URL"
            raise ResultStoreUrlWrong(message, "a name is a word other than `auto`, a URL " + _HINT)
        if name in urls:
            raise ResultStoreUrlWrong(f"`result_stores` has `{name}` twice", "give each another name")
        urls[name] = url
    return urls


def _open_result_store(url: str, store: Store, scratch: Path | None, directory: Path) -> ResultStore:
    scheme, colon, rest = url.partition(":")
    try:
        match scheme:
            case "file" if rest.startswith("//"):
                path = unquote(urlsplit(url).netloc + urlsplit(url).path)
                if path:
                    return FileResults(directory / path)
            case "nats":
                return NatsResults(url, scratch)
            case scheme if scheme in BUCKET_SCHEMES:
                return BucketResults(url, scratch)
            case "store" if colon and not rest:
                return DatabaseResults(store, scratch)
    except ResultError as error:
        raise ResultStoreUrlWrong(f"`{_without_password(url)}`: {error}", error.hint) from None
    raise ResultStoreUrlWrong(f"`{_without_password(url)}` is no place for results")


def _without_password(url: str) -> str:
    return re.sub(r"//[^/]*@", "//…@", url)
