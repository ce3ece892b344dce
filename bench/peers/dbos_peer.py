"""DBOS, a library in the worker's own process.

Its database is SQLite, a file in `data`, or the PostgreSQL whose address `database` is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import environment, install_python, python, python_versions
from bench.resumption import Resumption, resume_program
from bench.side import Worker, Wrap

NAME = "dbos"
DURABLE = True


def install(folder: Path) -> None:
    install_python(folder, ["dbos==3.3.0"])


def versions(folder: Path) -> dict[str, str]:
    return python_versions(folder, ["dbos", "sqlalchemy"])


@contextmanager
def serve(folder: Path, data: Path, wrap: Wrap, database: str = "") -> Iterator[Worker]:
    url = database.replace("postgresql:", "postgresql+psycopg:", 1)
    yield Worker(wrap([*_command(folder), "measure"]), environment(DATA=str(data), DATABASE=url))


def resume(folder: Path, data: Path, steps: int) -> Resumption:
    command = _command(folder)
    return resume_program([*command, "begin"], [*command, "resume"], environment(DATA=str(data)), data, steps)


def _command(folder: Path) -> list[str]:
    return [python(folder), "-m", "bench.peers.scripts.dbos_worker"]
