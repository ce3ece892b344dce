"""The folder that holds an embedded store and what belongs to it."""

from collections.abc import Mapping
from pathlib import Path
from stat import S_ISREG

from noetl.ports.store import StoreUnusable

FOLDER = ".noetl"
_ELSEWHERE = "--home or --store names another place"


class Home:
    """The store, large results, task logs, the locks of owners and the key of credentials, below one folder.

    Nothing is made before `make`.
    """

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        self.folder = folder
        self.store = store or folder / "store.db"
        self.results = folder / "results"
        self.scratch = folder / "scratch"
        self.logs = folder / "logs"
        self.owners = folder / "owners.lock"
        self.key = folder / "key"

    @property
    def exists(self) -> bool:
        """Whether there is a store. Raises StoreUnusable where something else is, or nobody may look."""
        try:
            status = self.store.stat()
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise StoreUnusable(f"{self.store.parent} is no folder", _ELSEWHERE) from None
        except OSError as error:
            raise StoreUnusable(f"{self.store}: {error.strerror or error}", _ELSEWHERE) from None
        if not S_ISREG(status.st_mode):
            raise StoreUnusable(f"{self.store} is no file", _ELSEWHERE)
        return status.st_size > 0

    def make(self) -> None:
        """Makes the folder if it is not there, with a `.gitignore` of its own. Raises StoreUnusable."""
        if self.folder.is_dir():
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".gitignore").write_text("*\n", "utf-8")
        except FileExistsError:
            raise StoreUnusable(f"{self.folder} is no folder", _ELSEWHERE) from None
        except OSError as error:
            raise StoreUnusable(
                f"{self.folder} cannot be made: {error.strerror or error}", _ELSEWHERE
            ) from None


def home_beside(store: Path) -> Home:
    """What belongs to a store that is a file of its own: in a folder named after it."""
    return Home(store.with_name(f"{store.name}.noetl"), store)


def find_home(directory: Path, environment: Mapping[str, str]) -> Home:
    """That of the working directory or of its nearest parent, stopping before the home directory.

    Where there is none it is that of the working directory, not made yet.
    """
    user = environment.get("HOME")
    for folder in (directory, *directory.parents):
        if user and folder == Path(user) and folder != directory:
            break
        if (folder / FOLDER).is_dir():
            return Home(folder / FOLDER)
    return Home(directory / FOLDER)
