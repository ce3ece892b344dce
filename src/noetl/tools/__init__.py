"""The built-in tool kinds, one file each."""

from noetl.dsl.kinds import Kind, Kinds
from noetl.tools import (
    artifact,
    duckdb,
    file,
    http,
    noop,
    playbook,
    postgres,
    python,
    quantum,
    s3,
    secrets,
    shell,
    sqlite,
    wait,
    workbook,
)

__all__ = ["BUILTIN", "builtin_kinds"]

BUILTIN: tuple[Kind, ...] = (
    noop.KIND,
    http.KIND,
    postgres.KIND,
    sqlite.KIND,
    duckdb.KIND,
    python.KIND,
    shell.KIND,
    playbook.KIND,
    workbook.KIND,
    secrets.KIND,
    artifact.KIND,
    s3.KIND,
    file.KIND,
    wait.KIND,
    quantum.KIND,
)


def builtin_kinds() -> Kinds:
    """A fresh registry with the built-ins in it."""
    return Kinds(BUILTIN)
