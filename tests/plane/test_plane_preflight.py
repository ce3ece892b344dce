"""Before the first run of an execution a worker of its pool proves that credentials and modules can be had."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from noetl.engine.history.history_views import verify_history
from noetl.engine.history.read import read_history
from noetl.kernel.net.commands import Cancel, Signal
from noetl.model.outcome import ErrorInfo
from noetl.ports.control import (
    PROTOCOL,
    CheckNeeds,
    ClaimCredit,
    FetchCredential,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FetchPlaybook,
    Message,
    NeedsChecked,
    Register,
    Registered,
    Work,
)
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.results.result_store_urls import open_result_stores
from tests.plane.plane_processes import Plane
from tests.plane.raw_worker import KINDS, RawPool, RawWorker, post

USES_ENTRY = """\
keychain: [{name: api, kind: env, env: PLANE_SECRET}]
workflow:
- step: start
  tool: {kind: python, args: {token: "{{ keychain.api.value }}"}, code: "def main(token):\\n    return len(token)"}
"""
USES_MISSING = USES_ENTRY.replace("PLANE_SECRET", "ABSENT_VARIABLE")
MISSING = (
    "the credential `api` cannot be had: the environment variable ABSENT_VARIABLE is not set "
    "(set it where the worker runs)"
)
CHILD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: child, path: tests/needy}\n" + USES_MISSING
PARENT = "workflow:\n- step: start\n  tool: {kind: playbook, path: tests/needy}\n"


def new_playbook() -> str:
    """One that nobody was asked about."""
    return f"""\
keychain: [{{name: api, kind: env, env: V_{uuid4().hex}}}]
workflow:
- step: start
  tool: {{kind: noop, args: {{a: "{{{{ keychain.api.value }}}}"}}}}
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with Plane(tmp_path_factory.mktemp("asked"), ttl=300.0) as plane:
        yield plane


@pytest.fixture
def pool(bare: Plane) -> RawPool:
    return RawPool(bare, f"pool_{uuid4().hex}")


def names(plane: Plane, execution_id: str) -> list[str]:
    return [event["name"] for event in plane.events(execution_id)]


# With the workers that users start.


def test_a_worker_finds_what_only_its_own_environment_has(plane: Plane) -> None:
    ended = plane.run(USES_ENTRY)
    assert (ended["error"], ended["result"]) == (None, len("open sesame 42"))


def test_an_entry_that_the_worker_cannot_have_fails_the_execution_before_its_first_step(plane: Plane) -> None:
    execution_id = plane.start(USES_MISSING)
    ended = plane.end(execution_id)
    assert (ended["status"], ended["error"]["kind"], ended["error"]["message"]) == (
        "failed",
        "credential",
        MISSING,
    )
    assert "TokenClaimed" not in names(plane, execution_id)
    assert differences_of(plane, execution_id) == []


def test_a_child_is_asked_about_when_it_is_started(plane: Plane) -> None:
    (plane.playbooks / "needy.yaml").write_text(CHILD, "utf-8")
    error = plane.run(PARENT)["error"]
    assert error["kind"] == "child_failed"
    assert MISSING in error["message"]


def test_stored_credentials_are_looked_up_for_who_is_asked(plane: Plane) -> None:
    workflow = """\
workflow:
- step: start
  tool:
    kind: secrets
    name: asked_before
    provider: store
"""
    error = plane.run(workflow)["error"]
    assert "the credential `asked_before` cannot be had" in error["message"]
    plane.set_credential("asked_before", value="a value of it")
    assert plane.run(workflow)["error"] is None, "that it was missing is not remembered"


def test_a_worker_looks_for_what_the_steps_of_its_own_pool_use(plane: Plane) -> None:
    pool = RawPool(plane, f"pool_{uuid4().hex}")
    entries = (
        "keychain: [{name: api, kind: env, env: PLANE_SECRET}, {name: far, kind: env, env: ABSENT_VARIABLE}]"
    )
    workflow = f"""\
{entries}
workflow:
- step: start
  tool: {{kind: noop, args: {{a: "{{{{ keychain.api.value }}}}"}}}}
  next: {{arcs: [{{step: more}}]}}
- step: more
  spec: {{pool: {pool.name}}}
  tool: {{kind: noop, args: {{a: "{{{{ keychain.far.value }}}}"}}}}
"""
    with pool.worker() as worker:
        execution_id = plane.start(workflow)
        worker.answer(worker.question())
        worker.end(worker.command())
        assert plane.end(execution_id)["status"] == "completed"


NAMES_MODULE = """\
workflow:
- step: start
  tool: {kind: noop, args: {a: 1}}
  next: {arcs: [{step: work}]}
- step: work
  tool: {name: clean, kind: python, libs: {m: MODULE}, code: "result = m.__name__"}
"""


def test_a_module_that_the_worker_does_not_have_fails_the_execution_before_its_first_step(
    plane: Plane,
) -> None:
    execution_id = plane.start(NAMES_MODULE.replace("MODULE", "no_such_module"))
    ended = plane.end(execution_id)
    message = (
        "task `clean` of step `work`: `libs` names the module `no_such_module`, which is not installed; "
    )
    assert (ended["status"], ended["error"]["kind"]) == ("failed", "not_found")
    assert ended["error"]["message"].startswith(f"{message}install the package that brings it: `")
    assert "TokenClaimed" not in names(plane, execution_id)
    assert differences_of(plane, execution_id) == []
    assert plane.run(NAMES_MODULE.replace("MODULE", "json"))["result"] == "json"


def test_modules_are_looked_for_where_the_worker_is(plane: Plane) -> None:
    # The server could not import it.
    (plane.playbooks / "modules").mkdir()
    (plane.playbooks / "modules" / "of_one_worker.py").touch()
    pool = f"pool_{uuid4().hex}"
    plane.worker("--pool", pool, PYTHONPATH=str(plane.playbooks / "modules"))
    playbook = NAMES_MODULE.replace("MODULE", "of_one_worker")
    in_pool = playbook.replace("- step: work\n", f"- step: work\n  spec: {{pool: {pool}}}\n")
    assert plane.run(in_pool)["result"] == "of_one_worker"
    assert plane.run(playbook)["error"]["kind"] == "not_found"


# With workers that say what the test wants.


def test_one_worker_is_asked_and_its_answer_counts_for_all_that_wait_and_for_later_ones(
    bare: Plane, pool: RawPool
) -> None:
    playbook = new_playbook()
    with pool.worker(slots=9) as first, pool.worker(slots=9) as second:
        executions = {pool.start(playbook) for _ in range(3)}
        answering, question = next_question(first, second)
        assert question.pool == pool.name
        answering.answer(question)
        executions.add(pool.start(playbook))
        handed: set[str] = set()
        while handed != executions:
            for worker in (first, second):
                if worker.has_command():
                    command = worker.command()
                    handed.add(command.execution)
                    worker.end(command)
        assert {pool.end(execution_id) for execution_id in executions} == {"completed"}
        assert not first.has_question()
        assert not second.has_question()


def test_a_refusal_fails_all_that_wait_and_a_retry_asks_again(bare: Plane, pool: RawPool) -> None:
    playbook = new_playbook()
    with pool.worker(slots=9) as worker:
        executions = [pool.start(playbook) for _ in range(2)]
        question = worker.question()
        error = ErrorInfo(kind="credential", message="`api` is nowhere")
        worker.answer(question, error)
        for execution_id in executions:
            ended = bare.end(execution_id)
            assert (ended["status"], ended["error"]["message"]) == ("failed", "`api` is nowhere")
        bare.retry(executions[0])
        worker.answer(worker.question())
        worker.end(worker.command())
        assert pool.end(executions[0]) == "completed"
        assert differences_of(bare, executions[0]) == []


def test_only_the_worker_that_is_asked_may_look_and_answer(bare: Plane, pool: RawPool) -> None:
    playbook = (
        new_playbook() + "  # and a stored one\n- step: more\n  tool: {kind: secrets, name: kept_one}\n"
    )
    bare.set_credential("kept_one", value="a value of it")
    with pool.worker(kinds=(*KINDS, "secrets")) as answering, RawPool(bare, "others").worker() as other:
        execution_id = pool.start(playbook)
        question = answering.question()
        for fetch, expected in (
            (FetchPlaybook(hash=question.playbook), FetchedPlaybook),
            (FetchCredential(name="kept_one"), FetchedValue),
        ):
            (answered,) = post(bare, "fetch", fetch, answering.session)
            assert isinstance(answered, expected)
            (refused,) = post(bare, "fetch", fetch, other.session)
            assert isinstance(refused, FetchFailed)
            assert refused.code == "forbidden"
        other.answer(question, ErrorInfo(kind="credential", message="not for it to say"))
        answering.answer(question)
        assert answering.command().execution == execution_id
        answering.answer(question, ErrorInfo(kind="credential", message="too late"))
        answering.send(b"no message")  # so that it is over with this one's runs
    bare.submit(execution_id, Cancel())
    assert bare.end(execution_id)["status"] == "cancelled"


def test_every_pool_is_asked_about_the_steps_that_run_there(bare: Plane) -> None:
    first, second = (RawPool(bare, f"pool_{uuid4().hex}") for _ in range(2))
    workflow = f"""\
keychain: [{{name: api, kind: env, env: ANY}}]
workflow:
- step: start
  spec: {{pool: {first.name}}}
  tool: {{kind: noop, args: {{a: "{{{{ keychain.api.value }}}}"}}}}
  next: {{arcs: [{{step: plain}}]}}
- step: plain
  spec: {{pool: nobody_is_here}}
  tool: {{kind: noop}}
  next: {{arcs: [{{step: more}}]}}
- step: more
  spec: {{pool: {second.name}}}
  tool: {{kind: noop, args: {{a: "{{{{ keychain.api.value }}}}"}}}}
"""
    with first.worker() as worker:
        execution_id = bare.start(workflow)
        worker.answer(worker.question())
        with second.worker() as other:
            assert not worker.has_command(), "the other pool has not answered"
            question = other.question()
            assert question.pool == second.name
            other.answer(question)
            assert worker.command().execution == execution_id
    bare.submit(execution_id, Cancel())


def test_a_worker_that_comes_back_is_asked_again_and_another_one_if_it_does_not(
    bare: Plane, pool: RawPool
) -> None:
    execution_id = pool.start(new_playbook())
    with pool.worker() as worker:
        question = worker.question()
    with pool.worker(session=worker.session) as again, pool.worker() as other:
        assert again.question() == question
        again.send(b"no message")  # its session ends
        assert other.question() == question
        other.answer(question)
        other.end(other.command())
    assert pool.end(execution_id) == "completed"


def test_a_worker_that_asks_by_requests_is_asked_in_an_answer(bare: Plane, pool: RawPool) -> None:
    execution_id = pool.start(new_playbook())
    register = Register(protocol=PROTOCOL, slots=1, kinds=KINDS, worker="raw", pools=(pool.name,))
    (registered,) = post(bare, "register", register)
    assert isinstance(registered, Registered)

    def poll() -> Message:
        (message,) = post(bare, "claim", ClaimCredit(slots=1), registered.session)
        return message

    question = poll()
    assert isinstance(question, CheckNeeds)
    checked = NeedsChecked(playbook=question.playbook, pool=question.pool)
    post(bare, "fetch", checked, registered.session)
    work = poll()
    assert isinstance(work, Work)
    assert [command.execution for command in work.commands] == [execution_id]
    bare.submit(execution_id, Cancel())


GATED = """\
keychain: [{name: api, kind: env, env: PLANE_SECRET}]
workflow:
- step: start
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: use}]}
- step: use
  tool: {kind: noop, args: {a: "{{ keychain.api.value }}"}}
"""


def test_without_a_worker_it_waits_through_a_restart_and_what_has_begun_is_not_asked_about_again(
    tmp_path: Path,
) -> None:
    with Plane(tmp_path) as plane:
        worker = plane.worker(PLANE_SECRET="open sesame 42")
        begun = plane.start(GATED)
        plane.wait_for(begun, "RunSuspended")
        worker.stop()
        playbooks = (USES_MISSING, USES_ENTRY.replace("PLANE_SECRET", "HOME"), new_playbook())
        missing, there, cancelled = (plane.start(playbook) for playbook in playbooks)
        plane.submit(cancelled, Cancel())
        assert plane.end(cancelled)["status"] == "cancelled"
        plane.kill_server()
        plane.start_server()
        assert {plane.executions.show(name).status for name in (missing, there)} == {"running"}
        plane.submit(begun, Signal("go"))
        plane.worker()  # without the secret
        assert plane.end(missing)["error"]["message"] == MISSING
        assert plane.end(there)["status"] == "completed"
        error = plane.end(begun)["error"]
        assert (error["step"], error["kind"]) == ("use", "credential"), "the task that needs it has failed"


def next_question(*workers: RawWorker) -> tuple[RawWorker, CheckNeeds]:
    """The first, and who was asked it."""
    while True:
        for worker in workers:
            if worker.has_question():
                return worker, worker.question()


def differences_of(plane: Plane, execution_id: str) -> list[Any]:
    """What `noetl executions verify` finds."""

    async def verify() -> list[Any]:
        home = Home(plane.home)
        store = open_store(f"sqlite:///{home.store}")
        try:
            history = await read_history(store, execution_id)
            return list((await verify_history(history, open_result_stores(home, store))).differences)
        finally:
            await store.close()

    return asyncio.run(verify())
