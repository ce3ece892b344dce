"""One seed: what it stands for, and whether the engine agrees with the oracle about it."""

from noetl.local import Local
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.oracle.document_writer import canonical_document
from noetl.testing.oracle.observed_ends import Oracle, engine_end, simulated_end
from noetl.testing.oracle.playbook_generator import abstract_playbook
from noetl.testing.oracle.playbook_model import TooManyStates
from noetl.testing.simulator.audit import AuditFailure
from noetl.testing.simulator.simulation import Simulator


class SeedCheck:
    """Checks seeds, one after the other. An async context manager, since it keeps an engine."""

    def __init__(self) -> None:
        self._store = SqliteStore.in_memory()
        self._local = Local(self._store)
        self._simulator = Simulator()

    async def __aenter__(self) -> "SeedCheck":
        await self._local.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._local.__aexit__(None, None, None)
        await self._store.close()

    async def check(self, seed: int) -> str:
        """What is wrong, with the document and how to see it again; empty if nothing is."""
        playbook = abstract_playbook(seed)
        try:
            oracle = Oracle(playbook)
        except TooManyStates:
            return ""
        where, problem = "", oracle.problem(await engine_end(self._local, self._store, playbook))
        if not problem:
            where = ", in the simulator"
            problem = self._simulated_problem(oracle, seed)
        if not problem:
            return ""
        again = f"python -m noetl.testing.oracle --seed {seed}"
        return f"seed {seed}{where}: {problem}\n\n{canonical_document(playbook).text}\nagain: {again}"

    def _simulated_problem(self, oracle: Oracle, seed: int) -> str:
        try:
            observed = simulated_end(self._simulator, abstract_playbook(seed), seed)
        except AuditFailure as finding:
            return str(finding)
        return oracle.problem(observed) if observed is not None else ""
