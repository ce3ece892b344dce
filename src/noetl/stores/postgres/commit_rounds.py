"""Appends judged by one statement at a time, with the same verdicts as one after the other.

Of each execution a statement has one *chain*: its first append, and those that are built on that. PostgreSQL
says which chains won. What cannot be told before that is known, as an append that is not built on the one
before, waits for the next round; nearly always there is one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from noetl.ports.store import (
    NO_EFFECTS,
    Append,
    Committed,
    Conflict,
    Effects,
    KeyTaken,
    Row,
    Verdict,
    merge_effects,
)


class AppendChain:
    """Appends to one execution that are built on each other; `positions` are theirs in the commit."""

    def __init__(self, position: int, append: Append) -> None:
        self.execution_id = append.execution_id
        self.start_key = append.start_key
        self.expected = append.expected_version
        self.version = append.expected_version
        self.effects: Effects = NO_EFFECTS
        self.positions: list[int] = []
        self.appends: list[Append] = []
        self.add(position, append)

    def add(self, position: int, append: Append) -> None:
        effects = append.effects
        if self.version == 0 and effects.started_at is None:
            effects = replace(effects, started_at=append.rows[0].ts)
        self.version += len(append.rows)
        self.effects = merge_effects(self.effects, effects)
        self.positions.append(position)
        self.appends.append(append)

    @property
    def updated_at(self) -> int:
        return self.appends[-1].rows[-1].ts

    def rows(self) -> Iterator[Row]:
        for append in self.appends:
            yield from append.rows


class CommitRounds:
    """The appends of one commit until each has its verdict."""

    def __init__(self, appends: Sequence[Append]) -> None:
        self._verdicts: dict[int, Verdict] = {}
        self._waiting = list(enumerate(appends))
        self._versions: dict[str, int] = {}
        self._keys: dict[str, str] = {}

    @property
    def verdicts(self) -> list[Verdict]:
        """In the order of the appends, when `next_chains` has given none."""
        return [self._verdicts[position] for position in range(len(self._verdicts))]

    def next_chains(self) -> list[AppendChain]:
        """What the next statement asks; nothing when all is judged."""
        chains: list[AppendChain] = []
        while self._waiting and not chains:
            chains = self._gather()
        return chains

    def _gather(self) -> list[AppendChain]:
        """What can be asked at once. The first that waits is asked, or its verdict is known."""
        chains: dict[str, AppendChain] = {}
        keys: set[str] = set()
        blocked: set[str] = set()
        waiting, self._waiting = self._waiting, []
        for position, append in waiting:
            execution_id, chain = append.execution_id, chains.get(append.execution_id)
            extends = chain is not None and append.expected_version == chain.version
            if execution_id not in blocked and chain is not None and extends and not append.start_key:
                chain.add(position, append)
                continue
            # Who comes first has the key, also if it waits.
            waits = execution_id in blocked or chain is not None or append.start_key in keys
            if append.start_key:
                keys.add(append.start_key)
            if waits:
                blocked.add(execution_id)
                self._waiting.append((position, append))
            elif (verdict := self._known_verdict(append)) is not None:
                self._verdicts[position] = verdict
            else:
                chains[execution_id] = AppendChain(position, append)
        return [*chains.values()]

    def settle(
        self,
        chains: Sequence[AppendChain],
        won: Collection[str],
        versions: Mapping[str, int],
        keys: Mapping[str, str],
    ) -> None:
        """Takes the answer: which executions `won`, and for the others the versions and keys that there are.

        A chain that lost for a reason that is gone already is asked again.
        """
        self._versions = {chain.execution_id: 0 for chain in chains} | {**versions}
        self._keys = {chain.start_key: "" for chain in chains} | {**keys}
        again: list[tuple[int, Append]] = []
        for chain in chains:
            if chain.execution_id in won:
                self._accept(chain)
            else:
                again += self._refuse(chain)
        self._waiting = sorted([*again, *self._waiting], key=lambda item: item[0])

    def _accept(self, chain: AppendChain) -> None:
        for position, append in zip(chain.positions, chain.appends, strict=True):
            self._verdicts[position] = Committed(append.expected_version + len(append.rows))
        self._versions[chain.execution_id] = chain.version
        if chain.start_key:
            self._keys[chain.start_key] = chain.execution_id

    def _refuse(self, chain: AppendChain) -> list[tuple[int, Append]]:
        """Notes the verdicts that follow from what is there; what is left is asked again."""
        items = list(zip(chain.positions, chain.appends, strict=True))
        for number, (position, append) in enumerate(items):
            if (verdict := self._known_verdict(append)) is None:
                # This one fits what is there now, and what follows may be built on it.
                return items[number:]
            self._verdicts[position] = verdict
        return []

    def _known_verdict(self, append: Append) -> Verdict | None:
        """None if only the database can tell. An empty owner: the key was free."""
        if append.start_key:
            owner = self._keys.get(append.start_key)
            if owner:
                return KeyTaken(owner)
            if owner is None:
                return None
        version = self._versions.get(append.execution_id)
        return None if version is None or version == append.expected_version else Conflict(version)
