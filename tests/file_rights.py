"""Files that may be read and not written, and the rights that files have."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def readable_only(folder: Path) -> Iterator[None]:
    """Everybody may read the folder and its files, nobody may write in it, and not even root ignores that."""
    user = os.geteuid()
    for path in folder.iterdir():
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode:  # else the test took all rights away
            path.chmod(mode | (0o055 if path.is_dir() else 0o044))
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        folder.chmod(0o755)


def rights_below(folder: Path) -> dict[str, str]:
    """The rights of a folder and of everything in it, by the path from there."""
    return {
        str(path.relative_to(folder)): format(stat.S_IMODE(path.lstat().st_mode), "04o")
        for path in (folder, *folder.rglob("*"))
    }
