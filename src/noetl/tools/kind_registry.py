"""The tool kinds that there are: the built-in ones, and those that this process declared itself."""

from typing import NamedTuple

from noetl.dsl.document.kinds import Kind, Kinds, KindTaken
from noetl.tools.artifact.kind import KIND as ARTIFACT
from noetl.tools.container.kind import KIND as CONTAINER
from noetl.tools.duckdb.kind import KIND as DUCKDB
from noetl.tools.file.kind import KIND as FILE
from noetl.tools.http.kind import KIND as HTTP
from noetl.tools.mysql.kind import KIND as MYSQL
from noetl.tools.nats.kind import KIND as NATS
from noetl.tools.noop.kind import KIND as NOOP
from noetl.tools.playbook.kind import KIND as PLAYBOOK
from noetl.tools.postgres.kind import KIND as POSTGRES
from noetl.tools.python.kind import KIND as PYTHON
from noetl.tools.quantum.kind import KIND as QUANTUM
from noetl.tools.s3.kind import KIND as S3
from noetl.tools.secrets.kind import KIND as SECRETS
from noetl.tools.shell.kind import KIND as SHELL
from noetl.tools.snowflake.kind import KIND as SNOWFLAKE
from noetl.tools.sqlite.kind import KIND as SQLITE
from noetl.tools.wait.kind import KIND as WAIT
from noetl.tools.workbook.kind import KIND as WORKBOOK

BUILTIN: tuple[Kind, ...] = (
    NOOP,
    HTTP,
    POSTGRES,
    MYSQL,
    SNOWFLAKE,
    SQLITE,
    DUCKDB,
    PYTHON,
    SHELL,
    CONTAINER,
    PLAYBOOK,
    WORKBOOK,
    SECRETS,
    ARTIFACT,
    S3,
    FILE,
    NATS,
    WAIT,
    QUANTUM,
)


def builtin_kinds() -> Kinds:
    """A fresh registry with the built-ins in it."""
    return Kinds(BUILTIN)


class _Declared(NamedTuple):
    kind: Kind
    origin: str


_declared: dict[str, _Declared] = {}


def declare_kind(kind: Kind, origin: str) -> None:
    """Adds a kind to those of this process. `origin` is the name of the code that declares it.

    Declaring it again from the same origin replaces it, as running a notebook's cell again does.
    Raises KindTaken if the name is a built-in kind's or comes from another origin.
    """
    declared = _declared.get(kind.name)
    if any(builtin.name == kind.name for builtin in BUILTIN):
        raise KindTaken(f"the tool kind `{kind.name}` is built in: choose another name")
    if declared is not None and declared.origin != origin:
        raise KindTaken(
            f"the tool kind `{kind.name}` of `{origin}` is declared by `{declared.origin}` already"
        )
    _declared[kind.name] = _Declared(kind, origin)


def declared_kinds() -> tuple[Kind, ...]:
    """The kinds that were declared so far."""
    return tuple(declared.kind for declared in _declared.values())
