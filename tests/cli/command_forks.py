"""`noetl` in child processes that are forked from one that has imported it.

Python starts and imports for longer than a short command runs, and the tests run a thousand of these. A forked child has
streams, a working directory, an environment and an end of its own, like one that is started.
"""

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path

import noetl.cli

ROOT = Path(__file__).parents[2]
PRELOADED = (
    "noetl.cli",
    "noetl.dsl",
    "noetl.graph",
    "noetl.tools.host",
    "noetl.tools.http",
    "noetl.tools.process",
    "noetl.tools.python",
    "noetl.tools.shell",
    "noetl.tools.sqlite",
)
"""Packages with all of their modules. They import what is below them, but nothing that starts threads."""
PRELOADED_LIBRARY = ("encodings.utf_8_sig", "faulthandler", "getpass", "importlib.metadata")
STARTUP_VARIABLES = ("PYTHON", "LC_", "LANG", "COVERAGE", "SSL_")
"""How the names begin that Python reads when it starts: a forked child would not see that they are others."""
MOST_INPUT = 1 << 16
"""What a pipe holds before anybody reads."""
MOST_REQUEST = 1 << 17


class CommandForks:
    """The process that forks, seen from the tests. It ends with this process, however that ends."""

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._startup = _startup_variables(os.environ)
        self._connection, connection = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with connection:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(connection.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[connection.fileno()],
            )
        atexit.register(self._end)

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: bytes
    ) -> "subprocess.CompletedProcess[bytes] | None":
        """As `subprocess.run` with captured output; None if the command must be started after all.

        That is where a forked child would not be the same, or another command still runs.
        """
        request = json.dumps([arguments, str(cwd.absolute()), dict(environment)]).encode()
        if _startup_variables(environment) != self._startup or len(request) > MOST_REQUEST:
            return None
        if len(stdin) > MOST_INPUT or not self._running.acquire(blocking=False):
            return None
        try:
            return self._run(arguments, request, stdin)
        finally:
            self._running.release()

    def _run(
        self, arguments: Sequence[str], request: bytes, stdin: bytes
    ) -> "subprocess.CompletedProcess[bytes]":
        with ExitStack() as files, ThreadPoolExecutor(2) as readers:
            with ExitStack() as theirs:
                pipes = [
                    [os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb"), strict=True)]
                    for _ in range(3)
                ]
                (their_input, our_input), (our_output, their_output), (our_errors, their_errors) = pipes
                for file in (their_input, their_output, their_errors):
                    theirs.enter_context(file)
                for file in (our_output, our_errors):
                    files.enter_context(file)
                with our_input:
                    our_input.write(stdin)
                streams = [file.fileno() for file in (their_input, their_output, their_errors)]
                socket.send_fds(self._connection, [request], streams)
            out, err = readers.submit(our_output.read), readers.submit(our_errors.read)
            code = self._exit_code()
            return subprocess.CompletedProcess(arguments, code, out.result(), err.result())

    def _exit_code(self) -> int:
        pid = self._reply()
        try:
            return self._reply()
        except BaseException:  # the time of the test is over, or Ctrl-C
            os.kill(pid, signal.SIGKILL)
            self._reply()
            raise

    def _reply(self) -> int:
        reply = self._connection.recv(64)
        if not reply:
            raise RuntimeError("the process that forks commands is gone")
        return int(reply)

    def _end(self) -> None:
        self._connection.close()
        self._process.wait()


@cache
def command_forks() -> CommandForks | None:
    """That of this process; none where a process is not sure to live on when it forks, as on macOS."""
    return CommandForks() if sys.platform == "linux" else None


def _startup_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(STARTUP_VARIABLES)}


def _preload() -> None:
    for package in PRELOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    for name in PRELOADED_LIBRARY:
        import_module(name)
    gc.collect()
    gc.freeze()  # else the first collection in each child would copy every page


def _become_child_of_request(connection: socket.socket) -> None:
    """Fork a child for each request, and return in it with all that it asks for; end when nobody asks any more."""
    while True:
        request, streams, _, _ = socket.recv_fds(connection, MOST_REQUEST, 3)
        if not request:
            sys.exit()
        if (pid := os.fork()) == 0:
            connection.close()
            break
        for descriptor in streams:
            os.close(descriptor)
        connection.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, cwd, environment = json.loads(request)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(cwd)
    sys.path[0] = cwd  # as of `python -m`
    sys.argv = [noetl.cli.__file__, *arguments]


def _run_command() -> None:
    """Ends the process as Python does, without taking all modules apart.

    A child would copy every page of them for that, which takes longer than most commands.
    """
    try:
        noetl.cli.main()
    except SystemExit as end:
        if isinstance(end.code, int) and _has_said_all():
            os._exit(end.code)
        raise


def _has_said_all() -> bool:
    """Does what comes before that."""
    threading._shutdown()  # type: ignore[attr-defined]  # there is no public name for it
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    _preload()
    _become_child_of_request(socket.socket(fileno=int(sys.argv[1])))
    _run_command()
