"""Stores in other processes: a script runs in a child, says what it has done, and may be killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRELUDE = """
import asyncio, itertools, os, sys
from pathlib import Path
from noetl.ports.store import *
from noetl.stores.ownership import Owners
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import new_append, begin_execution, commit_accepted
PATH = Path(sys.argv[1])
def say(*words): print(*words, flush=True)
"""


@contextmanager
def child(script: str, path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Runs a script beside the test; kills it at the end if it still runs."""
    command = [sys.executable, "-c", PRELUDE + script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: "subprocess.Popen[str]") -> str:
    """The next line that the child says; empty if it has ended."""
    assert process.stdout
    return process.stdout.readline().strip()
