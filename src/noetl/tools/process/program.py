"""One program that runs for a task, from its start to the end of all it started."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from noetl.model.outcome import ToolError
from noetl.tools.process.orphan_killer import OrphanKiller
from noetl.tools.process.process_tree import exit_handle, kill_tree, tree_pids

_POLL_SECONDS = 0.02
"""Seconds between two looks at a process where the system has no descriptor for it."""


class Program:
    """A process with a group of its own. Belongs to the running event loop; `end` it in any case.

    ToolError if it cannot be started. `stdin` is a descriptor, or `subprocess.PIPE` or `DEVNULL`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str],
        stdin: int,
        orphan_killer: OrphanKiller,
    ) -> None:
        full_env = {**os.environ, **env}
        executable = _find_executable(command[0], folder, full_env)
        # A pipe of our own, and not one of `Popen`: the killer has to know it before the program starts.
        out, printed = os.pipe()
        self._out = os.fdopen(out, "rb", 0)
        self._orphan_killer = orphan_killer
        try:
            orphan_killer.expect(out)
            self._process = subprocess.Popen(  # noqa: S603 - this is what the tool is for
                command,
                executable=executable,
                stdin=stdin,
                stdout=printed,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=full_env,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            orphan_killer.expect(None)
            self._out.close()
            raise _start_error(command[0], folder, error) from None
        finally:
            os.close(printed)
        self.pid = self._process.pid
        self._exited = asyncio.Event()
        self._exit_handle = exit_handle(self.pid)
        if self._exit_handle is not None:
            asyncio.get_running_loop().add_reader(self._exit_handle, self._exited.set)
        try:
            orphan_killer.watch(self.pid)
        except OSError as error:
            self.end()
            raise _start_error(command[0], folder, error) from None

    @property
    def stdin(self) -> IO[bytes] | None:
        return self._process.stdin

    @property
    def streams(self) -> tuple[IO[bytes], IO[bytes]]:
        """Standard output and error."""
        err = self._process.stderr
        assert err is not None  # noqa: S101 - as `__init__` asks for
        return self._out, err

    async def wait(self) -> None:
        """Waits for the end of the process itself; those it started may go on."""
        if self._exit_handle is not None:
            await self._exited.wait()
            return
        while self._process.poll() is None:
            await asyncio.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """Ends the whole group at once."""
        # Without a handle, `wait` has reaped the process itself; of its group others may still be there.
        if self._process.returncode is None or self._exit_handle is None:
            kill_tree(self.pid)

    async def stop(self, grace: float) -> None:
        """Asks the whole group to end by `SIGTERM`, and kills it if that takes more than `grace` seconds.

        Processes that left the group are killed, too: they are known by the one that started them.
        """
        # Now: when their parent is gone, nothing tells that they are ours.
        strays = tree_pids(self.pid)[1:]
        try:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
            async with asyncio.timeout(grace):
                await self.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def end(self) -> int:
        """The exit code, or minus the signal. Whatever of the group still runs is killed."""
        self.kill()
        self._orphan_killer.forget(self.pid)
        code = self._process.wait()
        self._close()
        return code

    def _close(self) -> None:
        if self._exit_handle is not None:
            asyncio.get_running_loop().remove_reader(self._exit_handle)
            os.close(self._exit_handle)
            self._exit_handle = None
        for pipe in (self._process.stdin, self._out, self._process.stderr):
            if pipe is not None:
                pipe.close()


def _find_executable(program: str, folder: Path, env: Mapping[str, str]) -> str:
    """The file to run. The system itself tells of the first place that hinders it, not of the right one."""
    if "/" in program:
        return program
    directories = [str(folder.absolute() / directory) for directory in os.get_exec_path(env)]
    executable = shutil.which(program, path=os.pathsep.join(directories))
    if executable is not None:
        return executable
    if any(os.path.isfile(os.path.join(directory, program)) for directory in directories):
        raise _forbidden_error(program, folder)
    raise ToolError("not_found", f"there is no program `{program}`")


def _forbidden_error(program: str, folder: Path) -> ToolError:
    return ToolError("permission", f"the program `{program}` may not be run in {folder}")


def _start_error(program: str, folder: Path, error: Exception) -> ToolError:
    """Why nothing runs, in words; the system does not say which of the two files it misses."""
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.is_dir():
        return ToolError("not_found", f"`cwd`: there is no folder {folder}")
    match error:
        case FileNotFoundError():
            return ToolError("not_found", f"there is no program `{program}`")
        case PermissionError():
            return _forbidden_error(program, folder)
        case BlockingIOError():
            return ToolError("limit", f"no process can be started: {error.strerror}", retryable=True)
        case OSError():
            return ToolError("input", f"the program `{program}` cannot be run: {error.strerror}")
        case _:
            return ToolError("input", f"the command or its environment cannot be passed on: {error}")
