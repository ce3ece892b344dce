"""Files and folders for their owner alone, whatever the umask says.

Who may read a file may also lock it, and so stop whoever waits for that lock.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def open_private_file(path: str | os.PathLike[str], flags: int) -> int:
    """The descriptor of a file, which is made if it is not there. Raises OSError.

    Not for a database that this process has open: closing the descriptor would free SQLite's locks on it.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    restrict_file(descriptor)
    return descriptor


def make_private_folder(folder: Path) -> None:
    """Makes a folder; one that is there stays as it is, and those that lead there are made as usual.

    Raises OSError.
    """
    try:
        folder.mkdir(FOLDER_MODE)
    except FileNotFoundError:
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_private_folder(folder)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(FOLDER_MODE)  # the umask may have taken rights of the owner's


def restrict_file(file: int | str | os.PathLike[str]) -> None:
    """Takes a file from everybody but its owner; one that is missing, or of another owner, stays as it is."""
    _restrict(file, FILE_MODE)


def restrict_folder(folder: Path) -> bool:
    """As `restrict_file`. Whether others had rights in it."""
    return _restrict(folder, FOLDER_MODE)


def restrict_tree(folder: Path) -> None:
    """A folder with all that is in it.

    The folder first: from then on nobody gets to the rest. One that is private already is not searched,
    since nobody else could have got to what is in it, and it may hold a million files.
    """
    if restrict_folder(folder):
        for parent, folders, files in os.walk(folder):
            for name, mode in [
                *((name, FOLDER_MODE) for name in folders),
                *((name, FILE_MODE) for name in files),
            ]:
                path = Path(parent, name)
                if not path.is_symlink():  # what it names may be anybody's
                    _restrict(path, mode)


def _restrict(file: int | str | os.PathLike[str], mode: int) -> bool:
    # Not every file system has rights, and not every file is ours; what can be used is used nonetheless.
    with suppress(OSError):
        status = os.stat(file)
        if stat.S_IMODE(status.st_mode) != mode:
            os.chmod(file, mode)
            return True
    return False
