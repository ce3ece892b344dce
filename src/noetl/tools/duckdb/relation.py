"""What statements give, as record batches."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import duckdb
import pyarrow as pa

from noetl.tools.sql.target_table import quote_identifier

BATCH = 8_192
"""Rows of a result that are in memory at a time."""
_RUN = compile("__cursor__.sql(__statement__, params=__values__)", "<duckdb>", "eval")
_WITHOUT_ARROW = re.compile(r"(?:UHUGEINT|BIGNUM|BIT|TIME WITH TIME ZONE)((?:\[\d*\])*)")
"""Types that Arrow has no form for: DuckDB would give other values for them."""


def run_to_relation(
    cursor: duckdb.DuckDBPyConnection,
    text: str,
    values: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Any:
    """What a statement gives; it has run unless it only reads. Raises `duckdb.Error`.

    DuckDB looks for tables it does not have among the variables of the frame that calls it: this one has
    exactly those of the task, and no local of ours can be taken for a table. Tables that are registered
    would hide those of the database.
    """
    names = {"__cursor__": cursor, "__statement__": text, "__values__": values or None}
    return eval(_RUN, {**(variables or {}), **names})  # noqa: S307 - a text of ours


def batch_reader(relation: Any) -> pa.RecordBatchReader:
    """The rows, with columns as text where Arrow has no type for them. Raises `duckdb.Error`."""
    unfit = [_WITHOUT_ARROW.fullmatch(str(kind)) for kind in relation.types]
    if any(unfit):
        casts = [f"::VARCHAR{match[1]}" if match else "" for match in unfit]
        columns = enumerate(zip(casts, relation.columns, strict=True), start=1)  # `#1`: names may repeat
        relation = relation.project(
            ", ".join(f"#{n}{cast} AS {quote_identifier(name)}" for n, (cast, name) in columns)
        )
    return relation.to_arrow_reader(BATCH)


def chain_relations(first: Any, following: Iterable[Any]) -> pa.RecordBatchReader:
    """The rows of all runs of one statement, each of which is done when its turn comes."""
    reader = batch_reader(first)

    def batches() -> Iterator[pa.RecordBatch]:
        for run in chain([reader], map(batch_reader, following)):
            for batch in run:
                yield batch.cast(reader.schema)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def count_rows(reader: pa.RecordBatchReader, *, rows: int) -> tuple[pa.RecordBatchReader, int]:
    """The first rows, all from one batch, and how many there are; reads everything."""
    first: list[pa.RecordBatch] = []
    count = 0
    for batch in reader:
        if not count:
            first = [batch.slice(0, rows)]
        count += batch.num_rows
    return pa.RecordBatchReader.from_batches(reader.schema, first), count
