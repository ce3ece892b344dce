"""What one task could leave behind for the next in the same process.

Imported modules stay, as that is what a warm process is for. Code that changes the inside of a module
changes it for later tasks in that process. The rest is put back, or makes the process spent.
"""

import _thread
import builtins
import gc
import os
import resource
import signal
import sys
from types import ModuleType
from typing import Any

from noetl.guest.frame import CodeRequest

MODULE = "__noetl__"
"""The `__name__` of users' code: not `__main__`, or a script would run its `main` a second time."""

_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGUSR1]
_LIMITS = [resource.RLIMIT_NOFILE, resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_CPU]
_LIMITS += [resource.RLIMIT_FSIZE, resource.RLIMIT_STACK]


class ProcessState:
    """The state of the process as it was when this was made."""

    def __init__(self) -> None:
        self.env = dict(os.environ)
        self.raw_env = dict(_raw_env())
        self.folder = os.getcwd()
        self.path = list(sys.path)
        self.argv = list(sys.argv)
        self.streams = (sys.stdin, sys.stdout, sys.stderr)
        self.modules = dict(sys.modules)
        self.threads = _thread._count()
        self.unrestorable = _unrestorable()

    def enter(self, request: CodeRequest, module: ModuleType) -> None:
        """Sets up what the request asks for. OSError if its folder is not there."""
        if request.side_effect_free:
            # Such code can see nothing of what follows, nor change what `restore` compares. That saves a copy
            # of `sys.modules` and some dozen calls of the system for each task; a test holds both ways equal.
            sys.modules[module.__name__] = module
            return
        os.chdir(request.folder)
        os.environ.update(request.env)
        if request.script:
            sys.path.insert(0, os.path.dirname(request.script))
        sys.argv[:] = [request.script or request.name]
        self.modules = dict(sys.modules)  # anew, as earlier tasks may have imported more
        sys.modules[module.__name__] = module

    def restore(self, request: CodeRequest) -> bool:
        """Puts back what can be; whether the process is fit for another task."""
        if request.side_effect_free:
            sys.modules.pop(MODULE, None)
            return True
        try:
            self._restore()
        except Exception:  # noqa: BLE001 - the code may have broken anything it could reach
            return False
        return (
            self.unrestorable == _unrestorable() and _thread._count() <= self.threads and not _has_children()
        )

    def _restore(self) -> None:
        os.chdir(self.folder)
        if _raw_env() != self.raw_env:
            os.environ.clear()
            os.environ.update(self.env)
        extra = [folder for folder in sys.path if folder not in self.path]
        sys.path[:] = self.path
        sys.argv[:] = self.argv
        self._restore_modules(extra)
        sys.stdin, sys.stdout, sys.stderr = self.streams
        for stream in self.streams:
            stream.fileno()  # raises if it was closed

    def _restore_modules(self, extra: list[str]) -> None:
        """Keeps what was imported from where installed modules are; undoes every other change."""
        sys.modules.pop(MODULE, None)
        if sys.modules == self.modules:
            return
        for name, module in list(sys.modules.items()):
            if name not in self.modules and self._is_installed(name, module, extra):
                self.modules[name] = module
        sys.modules.clear()
        sys.modules.update(self.modules)

    def _is_installed(self, name: str, module: object, extra: list[str]) -> bool:
        """Whether the folder it comes from is one of ours, or a package of ours made it."""
        spec = getattr(module, "__spec__", None)
        locations = [
            getattr(spec, "origin", None),
            *(getattr(spec, "submodule_search_locations", None) or ()),
        ]
        location = next((candidate for candidate in locations if isinstance(candidate, str)), None)
        if location is None:
            return name.rpartition(".")[0] in self.modules
        return location in ("built-in", "frozen") or _matching_length(location, self.path) > _matching_length(
            location, extra
        )


def _matching_length(location: str, folders: list[str]) -> int:
    """Characters of the folder that the location lies in, the deepest one; 0 if it lies in none."""
    return max(
        (len(folder) for folder in folders if location.startswith(folder.rstrip("/") + "/")), default=0
    )


def _raw_env() -> dict[bytes, bytes]:
    """The environment before it is decoded, which takes longer than all the rest of a restoration.

    An internal of `os.environ`: if it goes, no child starts, and tests tell.
    """
    raw: dict[bytes, bytes] = vars(os.environ)["_data"]
    return raw


def _unrestorable() -> tuple[Any, ...]:
    """What is compared, and never put back."""
    mask = os.umask(0)  # there is no way to read it without setting it
    os.umask(mask)
    return (
        mask,
        [signal.getsignal(number) for number in _SIGNALS],
        signal.getitimer(signal.ITIMER_REAL),
        [resource.getrlimit(number) for number in _LIMITS],
        sys.getrecursionlimit(),
        sys.gettrace(),
        sys.getprofile(),
        gc.isenabled(),
        [_file_identity(fd) for fd in (0, 1, 2)],
        dict(builtins.__dict__),
    )


def _file_identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_children() -> bool:
    """Whether a process started by the code still runs; those that ended are reaped."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
