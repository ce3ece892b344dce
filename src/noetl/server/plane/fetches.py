"""What workers fetch from their server: playbooks, workloads, credentials of what they have claimed."""

from typing import assert_never

from msgspec import structs

from noetl.credentials.resolver import uses_secrets
from noetl.engine.catalog.playbook_record import decode_source
from noetl.engine.service import Service
from noetl.ports.control import (
    FetchAnswer,
    FetchCredential,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FetchPlaybook,
    FetchRequest,
    FetchWorkload,
)
from noetl.ports.credentials import CredentialError, CredentialStore
from noetl.ports.store import StoreError
from noetl.server.plane.sessions import WorkerSession


async def answer_fetch(
    service: Service, credentials: CredentialStore | None, session: WorkerSession, message: FetchRequest
) -> FetchAnswer:
    try:
        match message:
            case FetchPlaybook(hash=playbook_hash):
                return await _playbook(service, playbook_hash)
            case FetchWorkload(execution=execution_id):
                live = service.registry.get(execution_id)
                if live is None or not session.owns_run_of(execution_id):
                    return _not_claimed(execution_id)
                return FetchedValue(value=live.state.inputs.workload)
            case FetchCredential(name=name):
                if not any(uses_secrets(lease.live.playbook) for lease in session.leases.values()):
                    return FetchFailed(
                        code="forbidden", message="this worker has claimed nothing that uses secrets"
                    )
                stored = await credentials.find(name) if credentials is not None else None
                return FetchedValue(value=structs.asdict(stored) if stored is not None else None)
            case _:
                assert_never(message)
    except CredentialError as error:
        return FetchFailed(code="unavailable" if error.retryable else "not_found", message=str(error))
    except StoreError as error:
        return FetchFailed(code="unavailable", message=str(error))


async def _playbook(service: Service, playbook_hash: str) -> FetchAnswer:
    data = await service.store.playbook(playbook_hash)
    if data is None:
        return FetchFailed(code="not_found", message=f"there is no playbook {playbook_hash}")
    source = decode_source(data)
    return FetchedPlaybook(text=source.text, name=source.name, dialect=source.dialect)


def _not_claimed(execution_id: str) -> FetchFailed:
    return FetchFailed(code="forbidden", message=f"this worker has claimed nothing of {execution_id}")
