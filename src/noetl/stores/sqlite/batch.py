"""Many appends in one transaction: judged in order, then written with as few statements as possible.

SQLite's statements release the interpreter's lock, and taking it back beside a busy thread costs up to a
switch interval each time. So the number of statements must not grow with the number of rows or
executions: hence one question for all versions, and many rows in each INSERT.
"""

from collections.abc import Sequence

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from noetl.ports.store import (
    FACTS,
    NO_EFFECTS,
    Append,
    Committed,
    Conflict,
    KeyTaken,
    Row,
    Verdict,
    fact_values,
    merge_effects,
)
from noetl.stores.append_rows import fact_columns, full_fact_columns
from noetl.stores.checksums import checksum_of_append, pack_numbers
from noetl.stores.sqlite.queries import (
    WRITE,
    insert_effects,
    insert_rows,
    insert_values,
    json_text,
)


class KnownVersions(Struct, frozen=True):
    """Executions that were written before, with their number and version.

    It holds as long as `data_version` does, which changes with every commit, also of another process.
    It saves the query `current`, which is what is asked where nothing is known. An execution that is not
    among them, and whose first append this is, is taken for a new one: `highest_number` says which number it
    gets, and if it is there after all, SQLite refuses to insert it a second time.
    """

    data_version: int
    executions: dict[str, tuple[int, int]]
    highest_number: int = -1
    """-1 if it is not known."""


NO_KNOWN_VERSIONS = KnownVersions(-1, {})
"""With these nothing is taken for new that was not looked up."""
MAX_KNOWN_VERSIONS = 10_000
"""Beyond it all are forgotten: to choose the oldest would cost more than to ask for them again."""
EVENT_COLUMNS = 8
"""How many values of one row follow one another in what is given to `insert_events`."""


class _ExecutionChange:
    """What the batch does to one execution."""

    __slots__ = ("effects", "execution_id", "new", "version", "x")

    def __init__(self, execution_id: str, x: int, version: int) -> None:
        self.execution_id = execution_id
        self.x = x
        self.version = version
        self.new = version == 0
        self.effects = NO_EFFECTS

    def advance(self, append: Append) -> None:
        effects = append.effects
        if self.version == 0 and effects.started_at is None:
            effects = replace(effects, started_at=append.rows[0].ts)
        self.version += len(append.rows)
        if effects is not NO_EFFECTS:  # few appends have any
            self.effects = merge_effects(self.effects, effects)

    @property
    def changes_facts(self) -> bool:
        return fact_values(self.effects).count(None) < len(FACTS)


class AppendBatch:
    """Judges appends and collects what they write. One object serves one transaction.

    `apply` raises apsw.ConstraintError where an execution was taken for new that is not; then nothing of the
    transaction may be kept, and a batch that knows no versions gives the verdicts.
    """

    def __init__(self, connection: apsw.Connection, known: KnownVersions) -> None:
        self._connection = connection
        # Inside the transaction: only its begin brings the counter up to date with other processes.
        if known.data_version != connection.data_version():
            known = NO_KNOWN_VERSIONS
        # Never changed in place where nothing is known: all batches share that one.
        self._known_versions = known.executions or {}
        self._highest_number = known.highest_number
        self._changes: dict[str, _ExecutionChange] = {}
        self._keys: dict[str, str] = {}
        self._starts: list[tuple[str, int]] = []
        self._events: list[object] = []
        self._answered: list[int] = []
        self._delivered: list[int] = []
        self._audit: list[tuple[object, ...]] = []

    def apply(self, appends: Sequence[Append]) -> list[Verdict]:
        """Writes what is accepted; a verdict for each."""
        self._look_up(appends)
        verdicts = [self._judge(append) for append in appends]
        changed = [
            change for change in self._changes.values() if change.new or change.effects is not NO_EFFECTS
        ]
        if changed:
            self._write_facts(changed)
        if self._starts:
            insert_rows(self._connection, "insert_starts", self._starts)
        insert_values(self._connection, "insert_events", self._events, EVENT_COLUMNS)
        if self._answered:
            self._connection.execute(WRITE["take"], (json_text(self._answered),))
        if self._delivered:
            self._connection.execute(WRITE["sent"], (json_text(self._delivered),))
        insert_rows(self._connection, "put_audit", self._audit)
        return verdicts

    @property
    def known(self) -> KnownVersions:
        """For the next batch, once this one is committed."""
        # Changed in place: the writer let go of it when this transaction began, so nobody else sees it.
        executions = self._known_versions if len(self._known_versions) < MAX_KNOWN_VERSIONS else {}
        for execution_id, change in self._changes.items():
            executions[execution_id] = change.x, change.version
        return KnownVersions(self._connection.data_version(), executions, self._highest_number)

    def _look_up(self, appends: Sequence[Append]) -> None:
        unknown: set[str] = set()
        keys: list[str] = []
        all_new = self._highest_number >= 0
        for append in appends:
            execution_id = append.execution_id
            if (identity := self._known_versions.get(execution_id)) is None:
                unknown.add(execution_id)
                all_new = all_new and not append.expected_version
            elif execution_id not in self._changes:
                self._changes[execution_id] = _ExecutionChange(execution_id, *identity)
            if append.start_key:
                keys.append(append.start_key)
        if keys or (unknown and not all_new):
            bindings = json_text([*unknown]), json_text(keys)
            # All answers in one row: to fetch each row would let another thread take the interpreter's lock.
            row = self._connection.execute(WRITE["current"], bindings).get
            identities, taken_keys, self._highest_number = row
            for execution_id, identity in msgspec.json.decode(identities).items():
                self._changes[execution_id] = _ExecutionChange(execution_id, *identity)
            self._keys = msgspec.json.decode(taken_keys)

    def _judge(self, append: Append) -> Verdict:
        if append.start_key in self._keys:
            return KeyTaken(self._keys[append.start_key])
        change = self._changes.get(append.execution_id)
        version = change.version if change else 0
        if append.expected_version != version:
            return Conflict(version)
        if change is None:
            self._highest_number += 1
            change = _ExecutionChange(append.execution_id, self._highest_number, 0)
            self._changes[append.execution_id] = change
        if append.start_key:
            self._keys[append.start_key] = append.execution_id
            self._starts.append((append.start_key, change.x))
        self._add_events(change.x, append.rows)
        self._answered += append.answers
        self._delivered += append.delivered
        self._audit += [entry[:-1] for entry in append.audit]
        change.advance(append)
        return Committed(change.version)

    def _add_events(self, x: int, rows: Sequence[Row]) -> None:
        numbers: list[bytes] = []
        bodies: list[bytes] = []
        # One flat list: it is what the statement is bound to, and no tuple is kept for each event.
        values = self._events
        for seq, ts, kind, version, body, last in map(astuple, rows):  # with one call for each row, not six
            numbers.append(pack_numbers(seq, ts, kind, version, last, len(body)))
            bodies.append(body)
            checksum = None
            if last:  # a fork brings many appends along, everybody else one
                checksum = checksum_of_append(numbers, bodies)
                numbers, bodies = [], []
            values += (x, seq, ts, kind, version, body, last, checksum)

    def _write_facts(self, changed: Sequence[_ExecutionChange]) -> None:
        insert_rows(
            self._connection, "begin_executions", [_execution_row(change) for change in changed if change.new]
        )
        insert_rows(
            self._connection,
            "describe_executions",
            [
                (change.x, *fact_columns(change.effects))
                for change in changed
                if change.changes_facts and not change.new
            ],
        )
        insert_effects(self._connection, [(change.x, change.effects) for change in changed])


def _execution_row(change: _ExecutionChange) -> tuple[object, ...]:
    effects = change.effects
    return (change.x, change.execution_id, *full_fact_columns(effects), bool(effects.served))
