"""The SQL of this store, by name. It stands in `sql/*.sql` and nowhere else."""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

_FOLDER = files("noetl.stores.sqlite") / "sql"
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_VALUES = re.compile(r"VALUES (\([?, ]+\))")
_OPTION = re.compile(r"^.* -- if (\w+)\n", re.MULTILINE)


def _load(file: str) -> Mapping[str, str]:
    parts = _NAME.split((_FOLDER / file).read_text("utf-8"))
    return {name: text.strip() + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}


READ: Final = _load("read.sql")
WRITE: Final = _load("write.sql")
CHECK: Final = _load("check.sql")
REBUILD: Final = _load("rebuild.sql")


# Cached: every insert asks for one of ten texts, and to build one takes a regular expression over the query.
@lru_cache(512)
def repeat_values(query: str, times: int) -> str:
    """The query with its one row of `VALUES` written `times` times."""
    return _VALUES.sub(lambda match: "VALUES " + ",".join([match[1]] * times), query, count=1)


def line_conditions(query: str) -> frozenset[str]:
    """What lines of the query depend on."""
    return frozenset(_OPTION.findall(query))


def choose_lines(query: str, conditions: Collection[str]) -> str:
    """The query without the lines that depend on what is not given."""
    return _OPTION.sub(lambda match: match[0] if match[1] in conditions else "", query)


def schema_script() -> str:
    return (_FOLDER / "schema.sql").read_text("utf-8")


def migration_scripts() -> list[str]:
    """The scripts that lead from one version of the schema to the next; the first makes version 1."""
    scripts = (part for part in (_FOLDER / "migrations").iterdir() if part.name.endswith(".sql"))
    return [script.read_text("utf-8") for script in sorted(scripts, key=lambda script: script.name)]
