"""DBOS on SQLite: a library in the worker's own process, its database a file in `data`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import Worker, environment, install_python, python, python_versions

NAME = "dbos"


def install(folder: Path) -> None:
    install_python(folder, ["dbos==3.3.0"])


def versions(folder: Path) -> dict[str, str]:
    return python_versions(folder, ["dbos", "sqlalchemy"])


@contextmanager
def serve(folder: Path, data: Path) -> Iterator[Worker]:
    yield Worker([python(folder), "-m", "bench.peers.scripts.dbos_worker"], environment(DATA=str(data)))
