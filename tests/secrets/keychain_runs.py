"""Runs playbooks with secrets, on a real store."""

import asyncio
from typing import Any

from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.task_log import FileLog
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.model.outcome import ErrorInfo
from noetl.ports.credentials import StoredCredential
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import KeyLocation
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from tests.local.local_engine import Bench, source

TOKEN = "token/with spaces"


def set_credentials(bench: Bench, *credentials: StoredCredential) -> None:
    async def set_all() -> None:
        store = SqliteStore.at(bench.home.store)
        for credential in credentials:
            await EncryptedCredentials(store, KeyLocation("", bench.home.key)).set(credential)
        await store.close()

    asyncio.run(set_all())


def run(bench: Bench, text: str, *, resume: str = "", **request: Any) -> ExecutionState:
    async def run_to_end() -> ExecutionState:
        store = SqliteStore.at(bench.home.store)
        try:
            async with Local(
                store,
                credentials=EncryptedCredentials(store, KeyLocation("", bench.home.key)),
                results=FileResults(bench.home.results),
                logs=FileLog(bench.home.logs),
                playbooks=Playbooks([bench.home.folder.parent]),
            ) as local:
                started = await (local.resume(resume) if resume else local.start(source(text), **request))
                return await local.wait_for_end(started)
        finally:
            await store.close()

    return asyncio.run(run_to_end())


def error_of(state: ExecutionState) -> ErrorInfo:
    assert state.status == "failed"
    assert state.error is not None
    return state.error


KEYCHAIN = "keychain:\n  - {name: token, kind: env, env: TOKEN}\n"


def start(tasks: str, keychain: str = KEYCHAIN) -> str:
    return f"{keychain}workflow:\n- step: start\n  tool:\n{tasks}"


LENGTH = "    - count: {kind: python, args: {t: '{{ %s }}'}, code: 'result = len(t)'}\n"
