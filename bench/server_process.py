"""A server and its workers as real processes, for benchmarks."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from noetl.stores.home_folder import Home

START_SECONDS = 300.0
"""How long a start may take on a machine that is busy with much else."""


class ServerProcess(NamedTuple):
    """One that answers, at `url`. `seconds` is how long it took to."""

    process: "subprocess.Popen[bytes]"
    url: str
    seconds: float


class StartFailed(Exception):
    """A process ended before it was ready; the message has its last words."""


def launch_server(
    home: Path,
    log: Path,
    *options: str,
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    wrap: Sequence[str] = (),
) -> "subprocess.Popen[bytes]":
    """At once: `wait_for_url` says when it answers. What it logs is added to `log`.

    `wrap` is a program that runs it, with its options.
    """
    words = ["server", "start", "--port", str(port), "--home", str(home), "-o", "json", *options]
    return _start(words, log, environment, wrap)


def wait_for_url(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Where it answers from now on. Raises StartFailed."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    text = b""
    while not _is_json(text):
        line = process.stdout.readline()
        if not line:
            raise StartFailed(f"the server ended with {process.wait()}: {_last_words(log)}")
        text += line
    return str(json.loads(text)["url"])


def start_worker(
    url: str,
    home: Path,
    log: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
    wrap: Sequence[str] = (),
) -> "subprocess.Popen[bytes]":
    """At once: `wait_for_words` says when it is registered. Raises OSError if the home has no token."""
    words = ["worker", "start", "--server", url, "--directory", str(home), *options]
    return _start(words, log, worker_settings(environment or os.environ, home), wrap)


def worker_settings(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """With the token that the server of a home made for workers of this machine."""
    return {**environment, "NOETL_TOKEN": Home(home).worker_token.read_text("ascii").strip()}


def _start(
    words: Sequence[str], log: Path, environment: Mapping[str, str] | None, wrap: Sequence[str]
) -> "subprocess.Popen[bytes]":
    with log.open("ab") as output:
        return subprocess.Popen(
            [*wrap, sys.executable, "-m", "noetl", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if words[0] == "server" else output,
            stderr=output,
            env=environment,
        )


def wait_for_words(log: Path, words: bytes, process: "subprocess.Popen[bytes]", after: int = 0) -> None:
    """Until they stand in the log, behind so many bytes of it. Raises StartFailed."""
    until = time.monotonic() + START_SECONDS
    while words not in log.read_bytes()[after:]:
        if process.poll() is not None or time.monotonic() > until:
            raise StartFailed(f"{words.decode()!r} was not logged: {_last_words(log)}")
        time.sleep(0.01)


def admin_token(home: Path) -> str:
    return Home(home).admin_token.read_text("ascii").strip()


def end_process(process: "subprocess.Popen[bytes]", seconds: float = 30.0) -> int:
    """Its exit code: politely first, also of one that stands still."""
    if process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    if process.stdout is not None:
        process.stdout.close()
    return process.wait()


@contextmanager
def started_server(home: Path, log: Path, *options: str) -> Iterator[ServerProcess]:
    """Raises StartFailed."""
    began = time.perf_counter()
    process = launch_server(home, log, *options)
    try:
        url = wait_for_url(process, log)
        yield ServerProcess(process, url, time.perf_counter() - began)
    finally:
        end_process(process)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _last_words(log: Path) -> str:
    return " ".join(log.read_text("utf-8", "replace").strip().splitlines()[-3:])
