"""The folder that holds an embedded store and what belongs to it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG, S_ISVTX

from noetl.ports.store import StoreUnusable
from noetl.stores.durable_folder import flush_folder
from noetl.stores.private_files import (
    make_private_folder,
    open_private_file,
    restrict_file,
    restrict_folder,
    restrict_tree,
)

FOLDER = ".noetl"
STORE = "store.db"
_ELSEWHERE = "--home or --store names another place"


class Home:
    """The store, large results, task logs, the locks of owners and the key of credentials, below one folder.

    And the playbooks that were read before, which can be removed at any time, and what a server leaves
    there for those who look for it.

    Nothing is made before `make`. One that is `shared` has all that but the store, which is in a database.
    """

    def __init__(self, folder: Path, store: Path | None = None, *, shared: bool = False) -> None:
        self.folder = folder
        self.shared = shared
        self.store = store or folder / STORE
        self.results = folder / "results"
        self.scratch = folder / "scratch"
        self.logs = folder / "logs"
        self.playbooks = folder / "playbooks"
        self.owners = folder / "owners.lock"
        self.key = folder / "key"
        self.server = folder / "server.json"
        self.server_lock = folder / "server.lock"
        self.server_log = folder / "server.log"
        self.admin_token = folder / "admin.token"
        self.worker_token = folder / "worker.token"
        self.session_key = folder / "session.key"
        self.workers = folder / "workers"
        self.worker_log = folder / "worker.log"
        self._next_key = folder / "key.new"
        self._ignore = folder / ".gitignore"

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
        """Makes the folder if it is not there, with a `.gitignore` of its own; durable on return.

        Raises StoreUnusable.
        """
        if self.folder.is_dir():
            return
        made = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            make_private_folder(self.folder)
            # What SQLite syncs in there would be lost with the name of the folder. Where that may not be read
            # it cannot be flushed, and the store is used all the same.
            for folder in made:
                with suppress(PermissionError):
                    flush_folder(folder.parent)
            with open(open_private_file(self._ignore, os.O_WRONLY), "w", encoding="utf-8") as file:
                file.write("*\n")
        except FileExistsError:
            raise StoreUnusable(f"{self.folder} is no folder", _ELSEWHERE) from None
        except OSError as error:
            raise StoreUnusable(
                f"{self.folder} cannot be made: {error.strerror or error}", _ELSEWHERE
            ) from None

    def restrict(self) -> None:
        """Takes from others what an earlier version let them read.

        A folder that holds more than a home, as `--home .` names, is left to whoever shares it: there each
        file of ours is private when it is made or opened.
        """
        if self._is_own_folder():
            restrict_folder(self.folder)
            for file in (self._ignore, self.owners, self.key, self._next_key, *self._server_files):
                restrict_file(file)
            for folder in self._folders:
                restrict_tree(folder)

    @property
    def _server_files(self) -> tuple[Path, ...]:
        tokens = self.admin_token, self.worker_token, self.session_key
        return self.server, self.server_lock, self.server_log, *tokens

    @property
    def _folders(self) -> tuple[Path, ...]:
        return self.results, self.scratch, self.logs, self.playbooks

    def _is_own_folder(self) -> bool:
        """Whether it is named as homes are, or holds nothing that is not ours."""
        if self.folder.name.endswith(FOLDER):
            return True
        own = {path.name for path in (*self._folders, self.owners, self.key)}
        own |= {path.name for path in self._server_files}
        own |= {self._next_key.name, self._ignore.name, STORE, f"{STORE}-wal", f"{STORE}-shm"}
        try:
            # An empty folder that anybody may use is `/tmp` of a container.
            return not self.folder.stat().st_mode & S_ISVTX and own.issuperset(os.listdir(self.folder))
        except OSError:
            return False


def home_with(store: Path) -> Home:
    """The home that this store is in, if it is named as stores in homes are, or that lies beside it."""
    return Home(store.parent) if store.name == STORE else home_beside(store)


def home_beside(store: Path) -> Home:
    """What belongs to a store that is a file of its own: in a folder named after it."""
    return Home(store.with_name(f"{store.name}.noetl"), store)


def find_home(directory: Path, environment: Mapping[str, str], *, shared: bool = False) -> Home:
    """That of the working directory or of its nearest parent, stopping before the home directory.

    Where there is none it is that of the working directory, not made yet.
    """
    user = environment.get("HOME")
    for folder in (directory, *directory.parents):
        if user and folder == Path(user) and folder != directory:
            break
        if (folder / FOLDER).is_dir():
            return Home(folder / FOLDER, shared=shared)
    return Home(directory / FOLDER, shared=shared)
