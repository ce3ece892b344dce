"""The keychains of the executions that a worker runs; most executions have none."""

from typing import Any

from noetl.credentials.resolver import CredentialResolver, uses_secrets
from noetl.dsl.document.playbook import Playbook
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import SecretOrigin
from noetl.ports.ledger import Ledger
from noetl.worker.keychain.execution_keychain import Keychain
from noetl.worker.keychain.keychain_views import SecretMemory

LARGEST_SEALED = 8 << 20
"""Bytes of a value, as JSON, that is kept elsewhere, too."""
KNOWN = 1_000
"""Playbooks of which it is remembered whether they have to do with secrets."""


class Keychains:
    """One keychain for each execution that needs one, until it is forgotten."""

    def __init__(self, resolver: CredentialResolver) -> None:
        self._resolver = resolver
        self.memory = SecretMemory()
        self._made: dict[str, Keychain] = {}
        self._concerned: dict[str, bool] = {}

    def of(self, ledger: Ledger) -> Keychain | None:
        """None if nothing in the playbook has to do with secrets, and none came in so far."""
        made = self._made.get(ledger.execution_id) if self._made else None
        if made is None and self.concerns(ledger.playbook):
            return self.make(ledger)
        return made

    def make(self, ledger: Ledger) -> Keychain:
        """That of the execution, made if there is none."""
        known = self._made.get(ledger.execution_id)
        if known is None:
            known = self._made[ledger.execution_id] = Keychain(ledger, self._resolver, self.memory)
        return known

    def take_unsealed(self, execution_id: str, origins: set[SecretOrigin]) -> dict[int, Any]:
        """What is known here alone of these, by number, as far as it is of this execution.

        Whoever asks has it kept elsewhere. What is too large for that stays known here alone.
        """
        return {
            origin.number: value
            for origin in origins
            if origin.execution == execution_id
            and (value := self.memory.take_unsealed(origin, LARGEST_SEALED)) is not None
        }

    async def preflight(self, playbook: Playbook, folder: str) -> ErrorInfo | None:
        """Why an execution of the playbook cannot begin: a credential that it uses cannot be had."""
        if not self.concerns(playbook):
            return None
        return await self._resolver.preflight(playbook, playbook.workflow, folder)

    def forget(self, execution_id: str) -> None:
        """The execution is over."""
        self._made.pop(execution_id, None)

    def concerns(self, playbook: Playbook) -> bool:
        """Whether anything in it has to do with secrets."""
        concerned = self._concerned.get(playbook.hash)
        if concerned is None:
            if len(self._concerned) >= KNOWN:
                self._concerned.clear()
            concerned = self._concerned[playbook.hash] = uses_secrets(playbook)
        return concerned
