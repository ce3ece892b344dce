"""What installing and serving a peer needs."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.side import Unavailable

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 900
START_SECONDS = 240
STOP_SECONDS = 15


def call(command: Sequence[str], folder: Path) -> str:
    """What the command printed. Raises Unavailable with its last words."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=True
        )
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took longer than {INSTALL_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).strip().splitlines()
        raise Unavailable(f"{' '.join(command[:3])}: {' '.join(words[-3:])}") from None
    return done.stdout


def install_python(folder: Path, requirements: Sequence[str]) -> None:
    """A venv of this interpreter with `requirements`; a second call does nothing until they change."""
    wanted = "\n".join([sys.version, *requirements])
    marker = folder / "installed.txt"
    if marker.exists() and marker.read_text("utf-8") == wanted:
        return
    shutil.rmtree(folder / "venv", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    call([sys.executable, "-m", "venv", "venv"], folder)
    call([python(folder), "-m", "pip", "install", "--quiet", *requirements], folder)
    marker.write_text(wanted, "utf-8")


def python(folder: Path) -> str:
    return str(folder / "venv" / "bin" / "python")


def python_versions(folder: Path, names: Sequence[str]) -> dict[str, str]:
    packages = json.loads(call([python(folder), "-m", "pip", "list", "--format", "json"], folder))
    return {entry["name"]: entry["version"] for entry in packages if entry["name"].lower() in names}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environment(**settings: str) -> dict[str, str]:
    """Ours, with the repository importable, and no peer's counting of its users."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1", **settings}


class Server(NamedTuple):
    """A process that serves, with its children, and what it prints."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, url: str, body: bytes | None = None, **headers: str) -> None:
        """Asks until the answer is good. Raises Unavailable if the server ends, or is late."""
        until = time.monotonic() + START_SECONDS
        words = {name.replace("_", "-"): text for name, text in headers.items()}
        request = urllib.request.Request(url, body, {"content-type": "application/json", **words})  # noqa: S310 - an address on loopback
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=START_SECONDS):  # noqa: S310 - an address on loopback
                    return
            except OSError:
                time.sleep(0.02)
        state = "ended" if self.process.poll() is not None else f"gave no good answer in {START_SECONDS} s"
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        raise Unavailable(f"its server {state}: {' '.join(lines[-2:])}")

    def end(self, *signals: signal.Signals) -> None:
        """It and its children, politely first unless `signals` say otherwise."""
        for number in signals or (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(STOP_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


@contextmanager
def run_server(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Server]:
    """The command beside its log; it and its children have ended when the block has."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=log.parent, stdout=output, stderr=output, start_new_session=True
        )
    server = Server(process, log)
    try:
        yield server
    finally:
        server.end()
