"""The built-in tool kinds, one package each."""

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.tools.artifact.kind import KIND as ARTIFACT
from noetl.tools.duckdb.kind import KIND as DUCKDB
from noetl.tools.file.kind import KIND as FILE
from noetl.tools.http.kind import KIND as HTTP
from noetl.tools.noop.kind import KIND as NOOP
from noetl.tools.playbook.kind import KIND as PLAYBOOK
from noetl.tools.postgres.kind import KIND as POSTGRES
from noetl.tools.python.kind import KIND as PYTHON
from noetl.tools.quantum.kind import KIND as QUANTUM
from noetl.tools.s3.kind import KIND as S3
from noetl.tools.secrets.kind import KIND as SECRETS
from noetl.tools.shell.kind import KIND as SHELL
from noetl.tools.sqlite.kind import KIND as SQLITE
from noetl.tools.wait.kind import KIND as WAIT
from noetl.tools.workbook.kind import KIND as WORKBOOK

__all__ = ["BUILTIN", "builtin_kinds"]

BUILTIN: tuple[Kind, ...] = (
    NOOP,
    HTTP,
    POSTGRES,
    SQLITE,
    DUCKDB,
    PYTHON,
    SHELL,
    PLAYBOOK,
    WORKBOOK,
    SECRETS,
    ARTIFACT,
    S3,
    FILE,
    WAIT,
    QUANTUM,
)


def builtin_kinds() -> Kinds:
    """A fresh registry with the built-ins in it."""
    return Kinds(BUILTIN)
