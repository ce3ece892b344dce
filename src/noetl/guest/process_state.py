"""What one task could leave behind for the next in the same process.

Imported modules stay, as that is what a warm process is for. Code that changes the inside of a module that
nothing of ours rests on changes it for later tasks in that process. The rest is put back, or makes the
process spent.
"""

import _locale
import _signal  # type: ignore[import-not-found]  # typeshed has no stub for it
import _socket
import _thread
import codecs
import decimal
import faulthandler
import fcntl
import gc
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from noetl.guest.frame import CodeRequest
from noetl.guest.module_guard import guard_modules

MODULE = "__noetl__"
"""The `__name__` of users' code: not `__main__`, or a script would run its `main` a second time."""

_SIGNALS = sorted(signal.valid_signals())
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_LIMITS = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
_ERROR_HANDLERS = ("strict", "ignore", "replace", "backslashreplace", "surrogateescape", "xmlcharrefreplace")
_CONTEXTS = (decimal.DefaultContext, decimal.BasicContext, decimal.ExtendedContext)
_FILES = "/dev/fd"
_HIDDEN = ("addaudithook", "ctypes", "putenv", "register_at_fork", "unsetenv")
"""What changes a process in ways that nobody can read back: code that says it gets a process of its own."""


class ProcessState:
    """The state of the process as it was when this was made."""

    def __init__(self) -> None:
        self.env = dict(os.environ)
        self.raw_env = dict(_raw_env())
        self.folder = os.getcwd()
        self.path = list(sys.path)
        self.argv = list(sys.argv)
        self.system = dict(vars(sys))
        self.hooks = list(sys.meta_path)
        self.path_hooks = list(sys.path_hooks)
        self.finders = dict(sys.path_importer_cache)
        self.filters = list(warnings.filters)
        self.zone = _zone()
        self.modules = dict(sys.modules)
        self.threads = _thread._count()
        self.fixed = read_fixed()
        self.guard = guard_modules()

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

    def is_at_rest(self, request: CodeRequest) -> bool:
        """Whether nothing of the task still runs, nor could unseen. If not, the process is spent.

        Before anything else of ours is called, `guard.put_back` is to be.
        """
        if request.side_effect_free:
            return True
        try:
            return (
                not any(name in request.code for name in _HIDDEN)
                and _thread._count() <= self.threads
                and not _has_children()
            )
        except Exception:  # noqa: BLE001 - the code may have broken anything it could reach
            return False

    def restore(self, request: CodeRequest) -> bool:
        """Puts back what can be; False if the process cannot be fit for another task."""
        if request.side_effect_free:
            sys.modules.pop(MODULE, None)
            return True
        try:
            self._restore()
            if self.fixed == read_fixed():
                return True
            gc.collect()  # a file that only a cycle of dead objects holds open
            return self.fixed == read_fixed()
        except Exception:  # noqa: BLE001 - likewise
            return False

    def _restore(self) -> None:
        os.chdir(self.folder)
        if _raw_env() != self.raw_env:
            os.environ.clear()
            os.environ.update(self.env)
            time.tzset()  # the system may have looked at `TZ` without Python's knowledge
        elif _zone() != self.zone:
            time.tzset()
        extra = [folder for folder in sys.path if folder not in self.path]
        # What code bound anew in `sys` (`sys.path = […]`), and then what it changed in place.
        if vars(sys) != self.system:
            vars(sys).clear()
            vars(sys).update(self.system)
        sys.path[:] = self.path
        sys.argv[:] = self.argv
        self._restore_modules(extra)
        self._restore_import_hooks()
        if warnings.filters != self.filters:
            warnings.filters[:] = self.filters  # type: ignore[index]  # a list, whatever its type says
            warnings._filters_mutated()  # type: ignore[attr-defined]  # what was decided by them is forgotten
        if (random := sys.modules.get("random")) is not None:
            random.seed()
        _thread.stack_size(0)
        faulthandler.cancel_dump_traceback_later()
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.fileno()  # raises if it was closed

    def _restore_import_hooks(self) -> None:
        """Keeps the hooks of installed modules, which need them; undoes every other change."""
        kinds: list[tuple[list[Any], list[Any]]] = [
            (sys.meta_path, self.hooks),
            (sys.path_hooks, self.path_hooks),
        ]
        for hooks, before in kinds:
            if hooks != before:
                before += [hook for hook in hooks if hook not in before and self._is_of_module(hook)]
                hooks[:] = before
        if sys.path_importer_cache != self.finders:
            sys.path_importer_cache.clear()
            sys.path_importer_cache.update(self.finders)

    def _is_of_module(self, hook: object) -> bool:
        """Whether a module that stays defines it or its class."""
        kind = hook if hasattr(hook, "__qualname__") else type(hook)
        names = vars(self.modules.get(kind.__module__, object))
        return names.get(kind.__qualname__) is kind

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


def _zone() -> tuple[Any, ...]:
    return time.tzname, time.timezone, time.altzone, time.daylight


def _umask() -> int:
    mask = os.umask(0)  # there is no way to read it without setting it
    os.umask(mask)
    return mask


def _open_files() -> dict[int, Any]:
    """What each descriptor is of."""
    return {int(name): _file_identity(int(name)) for name in os.listdir(_FILES)}


FIXED: dict[str, Callable[[], Any]] = {
    "file mode mask": _umask,
    "signal handlers": lambda: list(map(_signal.getsignal, _SIGNALS)),  # without making names of them
    "blocked signals": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
    "timers": lambda: list(map(signal.getitimer, _TIMERS)),
    "limits": lambda: list(map(resource.getrlimit, _LIMITS)),
    "users": lambda: (os.getuid(), os.geteuid()),
    "groups": lambda: (os.getgid(), os.getegid(), os.getgroups()),
    "process group": lambda: (os.getpgrp(), os.getsid(0)),
    "priority": lambda: os.getpriority(os.PRIO_PROCESS, 0),
    "root folder": lambda: _identity(os.stat("/")),
    "open files": _open_files,
    "locale": lambda: _locale.setlocale(_locale.LC_ALL, None),
    "socket timeout": _socket.getdefaulttimeout,
    "switch interval": sys.getswitchinterval,
    "recursion limit": sys.getrecursionlimit,
    "digits limit": sys.get_int_max_str_digits,
    "trace function": sys.gettrace,
    "profile function": sys.getprofile,
    "generator hooks": sys.get_asyncgen_hooks,
    "coroutine origins": sys.get_coroutine_origin_tracking_depth,
    "garbage collection": lambda: (gc.isenabled(), gc.get_threshold(), gc.get_debug(), list(gc.callbacks)),
    "crash report": faulthandler.is_enabled,
    "error handlers": lambda: list(map(codecs.lookup_error, _ERROR_HANDLERS)),
    "decimal contexts": lambda: list(map(repr, _CONTEXTS)),
}
"""What is compared, and never put back: how each is read."""
if hasattr(os, "sched_getaffinity"):
    FIXED["processors"] = lambda: os.sched_getaffinity(0)
    FIXED["scheduling"] = lambda: os.sched_getscheduler(0)
if hasattr(sys, "getdlopenflags"):
    FIXED["library flags"] = sys.getdlopenflags


def read_fixed() -> list[Any]:
    """The values of all that is compared."""
    return [read() for read in FIXED.values()]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _file_identity(fd: int) -> Any:
    try:
        return *_identity(os.fstat(fd)), fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:  # that of the list itself
        return None


def _has_children() -> bool:
    """Whether a process started by the code still runs; those that ended are reaped."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
