"""The SQL of this store, by name. It stands in `sql/*.sql` and nowhere else.

Parameters have names there, `:name`; PostgreSQL has numbers.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from noetl.stores.sql_files import load_queries, load_scripts

_FOLDER = Path(__file__).with_name("sql")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")  # not the type behind `::`


class PostgresQuery(NamedTuple):
    """A statement with numbers in the place of its parameters, and their names in this order."""

    text: str
    names: tuple[str, ...]

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[name] for name in self.names]


@lru_cache(512)
def number_parameters(query: str) -> PostgresQuery:
    """The query with `$1` for its first parameter, and so on; one of the same name has the same number."""
    names = list(dict.fromkeys(_PARAMETER.findall(query)))
    text = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", query)
    return PostgresQuery(text, tuple(names))


READ: Final = load_queries(_FOLDER / "read.sql")
WRITE: Final = load_queries(_FOLDER / "write.sql")
COMMIT: Final = load_queries(_FOLDER / "commit.sql")
"""Parts of one statement: see `noetl.stores.postgres.commit_statement`."""
CHECK: Final = load_queries(_FOLDER / "check.sql")


def current_schema() -> str:
    """The script that makes a store of an empty schema."""
    return (_FOLDER / "schema.sql").read_text("utf-8")


def schema_migrations() -> list[str]:
    """The scripts that lead from one version of the schema to the next; the first makes version 1."""
    return load_scripts(_FOLDER / "migrations")
