"""What workers fetch from their server: playbooks, workloads and secrets of what they have claimed."""

from typing import Any, assert_never

import msgspec
from msgspec import structs

from noetl.credentials.resolver import computes_names, stored_names
from noetl.engine.catalog.playbook_record import decode_source
from noetl.engine.service import Service
from noetl.kernel.plan import pool_of_step
from noetl.kernel.state.replay import encode_for_worker
from noetl.model.reference import SECRET_MARKER_BYTES, StoredReference, references_in, stored_keys
from noetl.model.secret import SecretOrigin, origins_in
from noetl.ports.control import (
    ArtifactRequest,
    FetchAnswer,
    FetchCredential,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FetchGrant,
    FetchPlaybook,
    FetchRequest,
    FetchSealed,
    FetchWorkload,
    NeedsChecked,
    SealValues,
)
from noetl.ports.credentials import CredentialError, CredentialStore
from noetl.ports.results import ResultError, ResultMissing, ResultStore
from noetl.ports.store import StoreError
from noetl.server.plane.dispatcher import workload_for_workers
from noetl.server.plane.needs_checks import NeedsChecks
from noetl.server.plane.sessions import Lease, WorkerSession
from noetl.stores.credentials.sealed_values import SealedValues
from noetl.stores.results.result_key import is_result_key, parse_result_key, split_store_key

GRANT_SECONDS = 900.0
"""For which a worker may begin to read or write a body by itself."""


class Fetches:
    """Answers what sessions ask for. What a session has not claimed, it does not get.

    Unless it was asked about the credentials of a playbook: then it may look for these.
    """

    def __init__(
        self,
        service: Service,
        checks: NeedsChecks,
        credentials: CredentialStore | None,
        sealed: SealedValues | None,
    ) -> None:
        self._service = service
        self._checks = checks
        self._credentials = credentials
        self._sealed = sealed

    async def answer(self, session: WorkerSession, message: FetchRequest) -> FetchAnswer:
        try:
            match message:
                case FetchPlaybook(hash=playbook_hash):
                    return await self._playbook(session, playbook_hash)
                case FetchWorkload(execution=execution_id):
                    live = self._service.registry.get(execution_id)
                    if live is None or not session.owns_run_of(execution_id):
                        return _not_claimed(execution_id)
                    return FetchedValue(value=workload_for_workers(live))
                case FetchCredential(name=name):
                    return await self._credential(session, name)
                case SealValues():
                    return await self._seal(session, message)
                case FetchSealed():
                    return await self._unseal(session, message)
                case FetchGrant():
                    return await self._grant(session, message)
                case ArtifactRequest():
                    return await self._artifact(session, message)
                case NeedsChecked():
                    self._checks.answered(session, message)
                    return FetchedValue()
                case _:
                    assert_never(message)
        except CredentialError as error:
            return FetchFailed(code="unavailable" if error.retryable else "not_found", message=str(error))
        except StoreError as error:
            return FetchFailed(code="unavailable", message=str(error))
        except ResultError as error:
            code = "not_found" if isinstance(error, ResultMissing) else "failed"
            return FetchFailed(code=code, message=str(error))

    async def _playbook(self, session: WorkerSession, playbook_hash: str) -> FetchAnswer:
        if (
            not session.owns_run_with(playbook_hash)
            and not self._checks.lets_read(session, playbook_hash)
            and not any(origin.playbook == playbook_hash for origin in await self._origins(session))
        ):
            return _not_claimed(f"the playbook {playbook_hash}")
        data = await self._service.store.playbook(playbook_hash)
        if data is None:
            return FetchFailed(code="not_found", message=f"there is no playbook {playbook_hash}")
        source = decode_source(data)
        return FetchedPlaybook(text=source.text, name=source.name, dialect=source.dialect)

    async def _credential(self, session: WorkerSession, name: str) -> FetchAnswer:
        if (
            not any(_may_look_up(lease, name) for lease in session.leases.values())
            and not self._checks.lets_look_up(session, name)
            and not any(
                origin.name == name and not origin.execution for origin in await self._origins(session)
            )
        ):
            text = f"this worker has claimed nothing that uses the credential `{name}`"
            return FetchFailed(code="forbidden", message=text)
        stored = await self._credentials.find(name) if self._credentials is not None else None
        return FetchedValue(value=structs.asdict(stored) if stored is not None else None)

    async def _seal(self, session: WorkerSession, message: SealValues) -> FetchAnswer:
        if self._sealed is None or not session.owns_run_of(message.execution):
            return _not_claimed(message.execution)
        for number, value in message.values.items():
            await self._sealed.keep(message.execution, number, value)
        return FetchedValue()

    async def _unseal(self, session: WorkerSession, message: FetchSealed) -> FetchAnswer:
        wanted = (message.execution, message.number)
        if self._sealed is None or not any(
            (origin.execution, origin.number) == wanted for origin in await self._origins(session)
        ):
            return _not_claimed(f"{message.execution} that reads this secret")
        return FetchedValue(value=await self._sealed.find(*wanted))

    async def _grant(self, session: WorkerSession, message: FetchGrant) -> FetchAnswer:
        bare_key = split_store_key(message.key)[1]
        if not session.owns_run_of(message.execution) or not is_result_key(bare_key):
            return _not_claimed(message.execution)
        if parse_result_key(bare_key).execution_id != message.execution:
            return _not_claimed(parse_result_key(bare_key).execution_id)
        grant = await self._service.results.grant(message.key, message.method, GRANT_SECONDS)
        return FetchedValue(value=structs.asdict(grant) if grant is not None else None)

    async def _artifact(self, session: WorkerSession, message: ArtifactRequest) -> FetchAnswer:
        lease = session.lease_of_run(message.execution, message.run)
        run = lease.live.state.runs.get(message.run) if lease is not None else None
        tasks = run.step.step.tasks if run is not None else ()
        if (
            lease is None
            or run is None
            or ("artifact", message.task) not in [(task.kind, task.label) for task in tasks]
        ):
            return _not_claimed(f"{message.execution} that has to do with artifacts")
        objects = lease.live.objects(run, message.task)
        value: Any
        try:
            match message.action:
                case "publish":
                    reference = StoredReference(message.reference or {})
                    async with objects.local(reference):  # it is one of this execution
                        pass
                    value = await objects.publish(message.name, reference, message.store)
                case "published":
                    value = await objects.published(message.name, message.store)
                case "list":
                    value = await objects.artifacts(message.name, message.store)
                case "withdraw":
                    value = await objects.withdraw(message.name, message.store)
        except ValueError as error:
            return FetchFailed(code="invalid", message=str(error))
        return FetchedValue(value=value)

    async def _origins(self, session: WorkerSession) -> set[SecretOrigin]:
        """Asked only when what the playbooks themselves say is not enough: it reads what runs read."""
        origins: set[SecretOrigin] = set()
        for lease in list(session.leases.values()):
            origins |= await _secret_origins(lease, self._service.results)
        return origins


def _not_claimed(what: str) -> FetchFailed:
    return FetchFailed(code="forbidden", message=f"this worker has claimed nothing of {what}")


def _may_look_up(lease: Lease, name: str) -> bool:
    """Whether steps of the playbook of a claimed run use this credential which run where its worker is.

    Not its own step alone: a worker masks whatever its pools use, wherever that turns up. A step that
    computes the name of one may use any: which, only its worker can tell.
    """
    playbook, pools = lease.live.playbook, lease.session.pools
    steps = [step for step in playbook.workflow if pool_of_step(playbook, step) in pools]
    run = lease.live.state.runs.get(lease.run)
    return name in stored_names(playbook, steps) or (
        run is not None and computes_names(playbook, run.step.step, steps)
    )


async def _secret_origins(lease: Lease, results: ResultStore) -> set[SecretOrigin]:
    """Where the secrets come from that stand in what a claimed run may read, stored values included.

    Those of another playbook came from its parent, from a child, or from what it is a fork of.
    """
    state = lease.live.state
    run = state.runs.get(lease.run)
    if run is None:
        return set()
    readable = [msgspec.json.decode(encode_for_worker(run)), workload_for_workers(lease.live)]
    origins = origins_in(readable)
    for key in {key for reference in references_in(readable) for key in stored_keys(reference)}:
        try:
            data = await results.get(key)
            if SECRET_MARKER_BYTES in data:
                origins |= origins_in(msgspec.json.decode(data))
        except (ResultError, msgspec.DecodeError):
            continue  # what cannot be read, or is a table, brings nobody a secret
    return origins
