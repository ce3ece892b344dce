"""The one statement that is a commit: of the parts that are needed, with all rows in arrays."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from noetl.ports.store import FACTS
from noetl.stores.append_rows import KEYED_COLUMNS, fact_columns, keyed_changes
from noetl.stores.checksums import checksum_of_append, pack_numbers
from noetl.stores.postgres.commit_rounds import AppendChain
from noetl.stores.postgres.queries import COMMIT, PostgresQuery, number_parameters
from noetl.stores.postgres.stored_text import storable_text
from noetl.stores.sql_files import choose_lines

_EVENTS = tuple(
    f"event_{name}" for name in ("ids", "seqs", "ts", "kinds", "versions", "encs", "checksums", "bodies")
)
_AUDIT = tuple(
    f"audit_{name}" for name in ("ids", "at", "by", "roles", "actions", "targets", "addresses", "statuses")
)
_KEYED = {
    "timers": ("timer_ids", "timer_keys", "timer_due"),
    "outbox": ("outbox_ids", "outbox_keys", "outbox_bodies"),
    "ready": ("ready_ids", "ready_keys", "ready_pools", "ready_kinds", "ready_priorities"),
    "leases": ("lease_ids", "lease_keys", "lease_sessions", "lease_fences"),
}


class CommitStatement:
    """What chains write. Execute `query` with its `arguments`; each row of the answer is one that won."""

    def __init__(self, chains: Sequence[AppendChain], shift: int) -> None:
        self._parts: set[str] = set()
        self._values: dict[str, Any] = {
            "shift": shift,
            "ids": [chain.execution_id for chain in chains],
            "expected": [chain.expected for chain in chains],
            "versions": [chain.version for chain in chains],
            "updated_at": [chain.updated_at for chain in chains],
        }
        begins = any(not chain.expected for chain in chains)
        moves = any(chain.expected for chain in chains)
        self._conditions = {
            name
            for name, holds in {"begins": begins, "moves": moves, "both": begins and moves}.items()
            if holds
        }
        if begins:
            self._values["start_keys"] = [storable_text(chain.start_key) for chain in chains]
            self._values["served"] = [bool(chain.effects.served) for chain in chains]
        self._add_facts(chains)
        self._add_events(chains)
        self._add_keyed(chains)
        self._add_removals(chains)

    @property
    def query(self) -> PostgresQuery:
        return _compose(frozenset(self._parts), frozenset(self._conditions))

    @property
    def arguments(self) -> list[Any]:
        return self.query.arguments(self._values)

    def _add_facts(self, chains: Sequence[AppendChain]) -> None:
        columns = [fact_columns(chain.effects) for chain in chains]
        # An execution that begins has at least the time when.
        if "begins" in self._conditions or any(value is not None for row in columns for value in row):
            self._conditions.add("facts")
            self._values |= _in_columns(FACTS, (map(storable_text, row) for row in columns))

    def _add_events(self, chains: Sequence[AppendChain]) -> None:
        rows: list[tuple[Any, ...]] = []
        for chain in chains:
            numbers: list[bytes] = []
            bodies: list[bytes] = []
            for row in chain.rows():
                enc, checksum = int(row.last), None
                numbers.append(pack_numbers(row.seq, row.ts, row.kind, row.version, enc, len(row.body)))
                bodies.append(row.body)
                if row.last:
                    checksum = checksum_of_append(numbers, bodies)
                    numbers, bodies = [], []
                rows.append(
                    (chain.execution_id, row.seq, row.ts, row.kind, row.version, enc, checksum, row.body)
                )
        self._values |= _in_columns(_EVENTS, rows)

    def _add_keyed(self, chains: Sequence[AppendChain]) -> None:
        keyed = [chain for chain in chains if any(keyed_changes(chain.effects))]
        for name, columns in KEYED_COLUMNS.items():
            to_set: list[tuple[Any, ...]] = []
            to_clear: list[tuple[Any, ...]] = []
            for chain in keyed:
                for key, value in getattr(chain.effects, name).items():
                    if value is None:
                        to_clear.append((chain.execution_id, key))
                    else:
                        to_set.append((chain.execution_id, key, *columns(value)))
            self._add_part(f"set_{name}", _KEYED[name], to_set)
            self._add_part(f"clear_{name}", [f"no_{column}" for column in _KEYED[name][:2]], to_clear)

    def _add_removals(self, chains: Sequence[AppendChain]) -> None:
        appends = [append for chain in chains for append in chain.appends]
        answers = [(append.execution_id, number) for append in appends for number in append.answers]
        delivered = [(append.execution_id, number) for append in appends for number in append.delivered]
        audit = [
            (append.execution_id, *map(storable_text, entry[:-1]))
            for append in appends
            for entry in append.audit
        ]
        self._add_part("answered", ("answer_ids", "answers"), answers)
        self._add_part("delivered", ("delivered_ids", "delivered"), delivered)
        self._add_part("audited", _AUDIT, audit)

    def _add_part(self, part: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._parts.add(part)
            self._values |= _in_columns(names, rows)


def _in_columns(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> Mapping[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


# Cached: there are a few dozen of them, and PostgreSQL keeps the plan of a text that it knows.
@lru_cache(512)
def _compose(parts: Collection[str], conditions: Collection[str]) -> PostgresQuery:
    always = {"asked", "won", "winners"}
    if "begins" in conditions:
        always.add("made")
    if "moves" in conditions:
        always.add("moved")
    text = "".join(text for name, text in COMMIT.items() if name in always or name in parts)
    return number_parameters(choose_lines(text, conditions))
