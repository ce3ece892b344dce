"""What tasks mark secret is sealed by the server: the next step may run elsewhere, and nothing shows it."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from noetl.engine.history.retention import delete_execution
from noetl.kernel.net.commands import Signal
from noetl.ports.control import FetchedValue, FetchFailed, FetchSealed, SealValues
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.results.result_store_urls import open_result_stores
from tests.plane.plane_processes import Plane
from tests.plane.raw_worker import RawPool, post

WORD = "xyzzy plugh 12345"
"""What the first step makes and nobody is to see; the playbook has it in pieces."""
MAKES_SECRET = """\
workflow:
- step: start
  spec: {pool: first}
  tool:
  - make:
      kind: python
      spec: {secret: [token, inner.deep]}
      code: |
        def main():
            word = " ".join(["xyzzy", "plugh", "12345"])
            return {"token": word, "inner": {"deep": [word, 7]}, "open": "seen"}
  - note:
      kind: noop
      args: {line: "token={{ _prev.token }}", token: "{{ _prev.token }}", deep: "{{ _prev.inner.deep }}"}
  next: {arcs: [{step: gate, args: {deep: "{{ start.deep }}"}}]}
- step: gate
  spec: {pool: first}
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: use, args: {deep: "{{ args.deep }}"}}]}
- step: use
  spec: {pool: second}
  tool:
    kind: python
    args: {token: "{{ start.token }}", line: "{{ start.line }}", deep: "{{ args.deep }}"}
    code: |
      def main(token, line, deep):
          print("got", token)
          return {"same": [line == "token=" + token, deep == [token, 7]], "length": len(token)}
"""


NOTHING = "workflow:\n- step: start\n  tool: {kind: noop}\n"


CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: secretive, path: tests/secretive}
workflow:
- step: start
  tool: {kind: python, spec: {secret: [token]}, code: "def main():\\n    return {'token': 'qwertz' * 3}"}
"""
PARENT = """\
workflow:
- step: start
  tool: {kind: playbook, path: tests/secretive}
  next: {arcs: [{step: use}]}
- step: use
  spec: {pool: elsewhere}
  tool: {kind: python, args: {token: "{{ start.token }}"}, code: "def main(token):\\n    return len(token)"}
"""
GATED_PARENT = PARENT.replace(
    "  next: {arcs: [{step: use}]}\n",
    """\
  next: {arcs: [{step: gate}]}
- step: gate
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: use}]}
""",
)


def stored_bytes(plane: Plane) -> bytes:
    return b"".join(path.read_bytes() for path in plane.home.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with Plane(tmp_path_factory.mktemp("sealed"), ttl=300.0) as plane:
        yield plane


def sealed_names(plane: Plane) -> list[str]:
    async def read() -> list[str]:
        store = open_store(f"sqlite:///{Home(plane.home).store}")
        try:
            return await store.blobs("sealed/")
        finally:
            await store.close()

    return asyncio.run(read())


def test_a_secret_of_a_worker_that_was_killed_is_used_by_another(tmp_path: Path) -> None:
    with Plane(tmp_path) as plane:
        (plane.playbooks / "secretive.yaml").write_text(CHILD, "utf-8")
        first = plane.worker("--pool", "first", "--pool", "default")
        execution_id, parent = plane.start(MAKES_SECRET), plane.start(GATED_PARENT)
        plane.wait_for(execution_id, "RunSuspended")
        plane.wait_for(parent, "RunSuspended", 2)  # for its child, and for the signal
        assert sealed_names(plane)
        first.stop(signal.SIGKILL)
        plane.kill_server()
        plane.start_server()
        for pool in ("second", "elsewhere"):
            plane.worker("--pool", pool, "--pool", "first", "--pool", "default")
        for waiting in (execution_id, parent):
            plane.submit(waiting, Signal("go"))
        assert plane.end(parent)["result"] == 18, "what its child sealed outlived the child and the restart"
        ended = plane.end(execution_id)
        assert (ended["status"], ended["error"]) == ("completed", None)
        assert ended["result"] == {"same": [True, True], "length": len(WORD)}
        assert WORD.encode() not in stored_bytes(plane)
        log = (plane.home / "logs" / f"{execution_id}.jsonl").read_text("utf-8")
        assert "got ***" in log
        assert plane.executions.show(execution_id).status == "completed"
        plane.run("executor: {spec: {pool: first}}\n" + NOTHING)  # the server has had its turn
        assert not [name for name in sealed_names(plane) if execution_id in name]


FAILS_LATER = """\
workflow:
- step: start
  tool:
  - make: {kind: python, spec: {secret: [token]}, code: "def main():\\n    return {'token': 'abc' * 5}"}
  - fail: {kind: python, code: "def main():\\n    raise ValueError('on purpose')"}
"""


def test_what_a_failed_execution_sealed_is_kept_until_it_is_deleted(plane: Plane) -> None:
    execution_id = plane.start(FAILS_LATER)
    assert plane.end(execution_id)["status"] == "failed"
    assert [name for name in sealed_names(plane) if execution_id in name]

    async def delete() -> bool:
        home = Home(plane.home)
        store = open_store(f"sqlite:///{home.store}")
        try:
            record = await store.execution(execution_id)
            assert record is not None
            return await delete_execution(home, store, open_result_stores(home, store), record)
        finally:
            await store.close()

    assert asyncio.run(delete())
    assert not [name for name in sealed_names(plane) if execution_id in name]


def test_a_secret_of_a_child_is_there_for_its_parent_after_the_child_has_ended(plane: Plane) -> None:
    (plane.playbooks / "secretive.yaml").write_text(CHILD, "utf-8")
    plane.worker("--pool", "elsewhere")
    ended = plane.run(PARENT)
    assert (ended["error"], ended["result"]) == (None, 18)


ONE = 'workflow:\n- step: start\n  tool: {kind: noop, args: {word: "{{ workload.word }}"}}\n'


def test_a_sealed_value_is_for_who_has_claimed_a_run_that_names_it(bare: Plane) -> None:
    pool, other_pool = (RawPool(bare, f"pool_{uuid4().hex}") for _ in range(2))
    first = pool.start(ONE)
    with pool.worker() as owner, other_pool.worker() as other:
        owner.command()
        values = {5: {"deep": WORD}, 6: "another"}
        (sealed,) = post(bare, "fetch", SealValues(execution=first, values=values), owner.session)
        assert sealed == FetchedValue()
        (refused,) = post(bare, "fetch", SealValues(execution=first, values=values), other.session)
        assert isinstance(refused, FetchFailed)
        ask = FetchSealed(execution=first, number=5)
        for session in (owner.session, other.session):
            (answer,) = post(bare, "fetch", ask, session)
            assert isinstance(answer, FetchFailed), "no run of theirs has it in its values"
            assert answer.code == "forbidden"
    assert WORD.encode() not in stored_bytes(bare)
