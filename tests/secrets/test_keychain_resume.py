"""What a later process knows of the secrets of an execution."""

import asyncio
from typing import Any

import msgspec
import pytest

from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.model.secret import SecretOrigin
from noetl.stores.sqlite.store import SqliteStore
from noetl.worker.keychain.keychain_views import SecretMemory
from tests.local.local_engine import Bench, source
from tests.secrets.keychain_runs import KEYCHAIN, LENGTH, TOKEN, error_of, run, start


def leave_behind(bench: Bench, tasks: str, keychain: str = KEYCHAIN) -> str:
    """An execution that a process left behind before its last task, which waits for a signal."""

    async def run_until_suspended() -> str:
        store = SqliteStore.at(bench.home.store)
        waiting = asyncio.Event()

        def watch(_: str, events: Any, state: ExecutionState) -> None:
            if any(run.phase == "suspended" for run in state.runs.values()):
                waiting.set()

        async with Local(store, watch=watch) as local:
            started = await local.start(source(start(tasks, keychain)))
            await waiting.wait()
        await store.close()
        return started

    return asyncio.run(run_until_suspended())


WAIT = "    - wait: {kind: wait, seconds: 0.2}\n"


def test_a_later_process_looks_secrets_up_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    say = "    - say: {kind: python, args: {t: '{{ keychain.token.value }}'}, code: \"result = f'<{t}>'\"}\n"
    left = leave_behind(bench, say + WAIT + LENGTH % "say")
    monkeypatch.setenv("TOKEN", "another one")
    assert run(bench, "", resume=left).result == len("<another one>")


def test_a_later_process_computes_entries_again(bench: Bench) -> None:
    computed = "  - {name: own, kind: bearer, token: '{{ keychain.token.value }}-{{ workload.n }}'}\n"
    keep = "    - keep: {kind: python, args: {t: '{{ keychain.own.token }}'}, code: 'result = [t]'}\n"
    count = "    - count: {kind: python, args: {t: '{{ keep }}'}, code: 'result = t[0][-3:]'}\n"
    left = leave_behind(bench, keep + WAIT + count, f"workload: {{n: 55}}\n{KEYCHAIN}{computed}")
    assert run(bench, "", resume=left).result == f"{TOKEN}-55"[-3:]


def test_what_it_cannot_look_up_fails_with_the_reason(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave_behind(bench, WAIT + LENGTH % "keychain.token.value")
    monkeypatch.delenv("TOKEN")
    error = error_of(run(bench, "", resume=left))
    assert error.kind == "credential"
    assert "the credential `token` cannot be had: the environment variable TOKEN is not set" in error.message


def test_what_only_the_last_process_knew_fails_and_never_goes_on_masked(bench: Bench) -> None:
    login = "    - login: {kind: python, spec: {secret: ['$.token']}, code: \"result = {'token': 'x' * 20, 'user': 'ada'}\"}\n"
    assert run(bench, start(login + LENGTH % "login.token", "")).result == 20
    left = leave_behind(bench, login + WAIT + LENGTH % "login.user")
    assert run(bench, "", resume=left).result == 3
    left = leave_behind(bench, login + WAIT + LENGTH % "login.token")
    error = error_of(run(bench, "", resume=left))
    assert error.kind == "credential"
    assert "`login` was masked, and is known only to the process that masked it" in error.message


def test_memory_has_an_end() -> None:
    memory = SecretMemory(room=100)
    first = memory.keep("x" * 48, SecretOrigin("a", execution="e"))
    second = memory.keep({"deep": ["y" * 30]}, SecretOrigin("b", execution="e"))
    assert memory[first.key] == "x" * 48
    third = memory.keep("z" * 48, SecretOrigin("c", execution="e"))
    assert [origin.key in memory for origin in (first, second, third)] == [False, True, True]
    assert memory[msgspec.structs.replace(second, path=("deep", 0)).key] == "y" * 30
    assert set(memory) == {second.key, third.key}
