"""A worker touches only what it has claimed: credentials, documents, workloads, stored values, artifacts."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from noetl.ports.control import (
    PROTOCOL,
    ArtifactRequest,
    FetchCredential,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FetchGrant,
    FetchPlaybook,
    FetchWorkload,
    Heartbeat,
    Message,
    Register,
    Registered,
    Rejected,
)
from tests.plane.plane_processes import Plane
from tests.plane.plane_server import OTHER_TOKEN
from tests.plane.raw_worker import RawPool, RawWorker, Transfer, post, transfer
from tests.server.test_full_disk import UNLIMITED, limit_files

ONE = """\
workflow:
- step: start
  tool: {kind: noop}
"""
READS_NAME = """\
workflow:
- step: start
  tool: {kind: noop, args: {name: "{{ workload.name }}"}}
"""
USES_DOOR = """\
keychain:
- {name: door, kind: static}
- {name: spare, kind: static}
- {name: from_environment, kind: env, env: DOOR}
workflow:
- step: start
  tool: {kind: noop, args: {word: "{{ keychain.door.value }}", other: "{{ keychain.from_environment.value }}"}}
  next: {arcs: [{step: knock}]}
- step: knock
  tool: {kind: http, url: "http://127.0.0.1/", auth: gate}
"""
COMPUTES = """\
workflow:
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: look}]}
- step: look
  tool: [{look: {kind: secrets, name: "{{ workload.name }}"}}]
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server without workers, with some credentials; leases are long."""
    with Plane(tmp_path_factory.mktemp("claims"), ttl=300.0) as plane:
        for name in ("door", "spare", "gate", "vault", "from_environment"):
            plane.set_credential(name, value=f"the value of {name}")
        yield plane


@pytest.fixture
def pool(bare: Plane) -> RawPool:
    return RawPool(bare, f"pool_{uuid4().hex}")


def fetch(worker: RawWorker, plane: Plane, message: Message) -> Any:
    """What the server gives; what it says instead, if it does not."""
    (answer,) = post(plane, "fetch", message, worker.session)
    return answer.code if isinstance(answer, FetchFailed) else answer


def credentials_of(worker: RawWorker, plane: Plane) -> set[str]:
    """Those that it gets."""
    names = ("door", "spare", "gate", "vault", "from_environment")
    return {name for name in names if fetch(worker, plane, FetchCredential(name=name)) != "forbidden"}


def test_a_worker_has_the_credentials_that_the_playbook_of_its_run_uses_and_no_others(pool: RawPool) -> None:
    pool.start(USES_DOOR)
    with pool.worker(kinds=("noop", "http")) as worker, pool.worker(slots=0) as other:
        assert credentials_of(other, pool.plane) == set()
        command = worker.command()
        assert credentials_of(worker, pool.plane) == {"door", "gate"}
        answer = fetch(worker, pool.plane, FetchCredential(name="door"))
        assert answer.value["fields"] == {"value": "the value of door"}
        assert credentials_of(other, pool.plane) == set()
        worker.end(command)
        worker.end(worker.command())
        assert credentials_of(worker, pool.plane) == set(), "it owns nothing any more"


def test_the_credentials_that_steps_of_another_pool_use_are_for_its_workers(
    bare: Plane, pool: RawPool
) -> None:
    apart = RawPool(bare, f"pool_{uuid4().hex}")
    steps = USES_DOOR.replace("- step: knock\n", f"- step: knock\n  spec: {{pool: {apart.name}}}\n")
    with pool.worker(kinds=("noop", "http")) as worker, apart.worker(kinds=("noop", "http")) as other:
        pool.start(steps)
        questions = worker.question(), other.question()
        assert credentials_of(worker, bare) == {"door"}, "of those it is asked about"
        assert credentials_of(other, bare) == {"gate"}
        worker.answer(questions[0])
        other.answer(questions[1])
        command = worker.command()
        assert credentials_of(worker, bare) == {"door"}
        assert credentials_of(other, bare) == set()
        worker.end(command)
        other.command()
        assert credentials_of(worker, bare) == set()
        assert credentials_of(other, bare) == {"gate"}


def test_any_credential_is_had_while_a_step_that_computes_a_name_is_claimed(pool: RawPool) -> None:
    pool.start(COMPUTES, name="vault")
    with pool.worker(kinds=("noop", "secrets")) as worker:
        first = worker.command()
        assert credentials_of(worker, pool.plane) == set(), "another step computes it"
        worker.end(first)
        worker.command()
        assert "vault" in credentials_of(worker, pool.plane)


CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: handed, path: tests/handed}
workload: {word: ""}
executor: {kind: distributed, spec: {pool: POOL}}
workflow:
- step: start
  tool: {kind: python, args: {word: "{{ workload.word }}"}, code: "def main(word):\\n    return word"}
"""
PARENT = """\
keychain:
- {name: door, kind: static}
workflow:
- step: start
  tool: {kind: playbook, path: tests/handed, args: {word: "{{ keychain.door.value }}"}}
"""


def test_a_secret_that_a_parent_hands_on_is_had_for_the_run_of_its_child(bare: Plane) -> None:
    pool = RawPool(bare, f"pool_{uuid4().hex}")
    (bare.playbooks / "handed.yaml").write_text(CHILD.replace("POOL", pool.name), "utf-8")
    bare.start(PARENT)
    parents = bare.worker()  # of the default pool
    with pool.worker() as worker:
        command = worker.command()
        assert b"the value of door" not in bytes(command.run)
        assert credentials_of(worker, bare) == {"door"}
        assert isinstance(fetch(worker, bare, FetchPlaybook(hash=command.playbook)), FetchedPlaybook)
    assert parents.stop() == 0


LARGE_CHILD = CHILD.replace('{word: ""}', "{all: null}").replace("workload.word", "workload.all.word")
LARGE_PARENT = PARENT.replace(
    'args: {word: "{{ keychain.door.value }}"}',
    """args: {all: {word: "{{ keychain.door.value }}", filler: "{{ 'x' * 200000 }}"}}""",
)


def test_so_is_one_that_stands_in_a_stored_value(bare: Plane) -> None:
    pool = RawPool(bare, f"pool_{uuid4().hex}")
    (bare.playbooks / "handed.yaml").write_text(LARGE_CHILD.replace("POOL", pool.name), "utf-8")
    bare.start(LARGE_PARENT)
    parents = bare.worker()
    with pool.worker() as worker:
        command = worker.command()
        assert b'"secret"' not in bytes(command.workload) + bytes(command.run), "it is in what is referred to"
        assert credentials_of(worker, bare) == {"door"}
    assert parents.stop() == 0


def test_documents_and_workloads_are_those_of_claimed_runs(pool: RawPool) -> None:
    execution_id = pool.start(READS_NAME, name="x" * 20_000)
    with pool.worker() as owner, pool.worker(slots=0) as other:
        command = owner.command()
        assert bytes(command.workload) == b"null", "it is large"
        for message in (FetchWorkload(execution=execution_id), FetchPlaybook(hash=command.playbook)):
            assert fetch(other, pool.plane, message) == "forbidden"
        workload = fetch(owner, pool.plane, FetchWorkload(execution=execution_id))
        assert workload == FetchedValue(value={"name": "x" * 20_000})
        assert fetch(owner, pool.plane, FetchPlaybook(hash="0" * 64)) == "forbidden"
        owner.end(command)
        assert fetch(owner, pool.plane, FetchWorkload(execution=execution_id)) == "forbidden"


def test_a_session_answers_only_to_the_token_it_was_opened_with(pool: RawPool) -> None:
    execution_id = pool.start(ONE, name="x" * 20_000)
    plane = pool.plane
    with pool.worker() as owner:
        command = owner.command()
        key = f"{execution_id}/{'0' * 64}"
        for name, message in (("heartbeat", Heartbeat()), ("fetch", FetchWorkload(execution=execution_id))):
            with pytest.raises(OSError, match="404"):
                post(plane, name, message, owner.session, token=OTHER_TOKEN)
        assert transfer(plane, key, owner.session, b"", token=OTHER_TOKEN).status == 404
        with pytest.raises(OSError, match="409"):
            post(plane, "register", Register(protocol=PROTOCOL, session=owner.session), token=OTHER_TOKEN)
        with RawWorker(plane, token=OTHER_TOKEN, session=owner.session) as thief:
            assert isinstance(thief.welcome, Rejected)
            assert thief.welcome.code == "forbidden"
        (welcome,) = post(plane, "register", Register(protocol=PROTOCOL), token=OTHER_TOKEN)
        assert isinstance(welcome, Registered)
        assert owner.end(command) == "durable"


def digest_of(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def test_stored_values_are_read_and_written_by_who_has_claimed_their_execution(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    plane, body = pool.plane, b"some bytes"
    key = f"{execution_id}/{hashlib.sha256(body).hexdigest()}"
    with pool.worker() as owner, pool.worker(slots=0) as other:
        owner.command()
        for session in (other.session, "0" * 32):
            assert transfer(plane, key, session, body).status in (403, 404)
            assert transfer(plane, key, session).status in (403, 404)
        assert transfer(plane, key, owner.session).status == 404, "nobody wrote it"
        assert transfer(plane, key, owner.session, b"others").status == 422
        wrong = transfer(plane, key, owner.session, body, Content_Digest=digest_of(b"others"))
        assert wrong.status == 422
        assert transfer(plane, key, owner.session, body, Content_Digest=digest_of(body)).status == 204
        read = transfer(plane, key, owner.session)
        assert (read.status, read.body, read.headers["content-digest"]) == (200, body, digest_of(body))
        part = transfer(plane, key, owner.session, Range="bytes=5-8")
        assert (part.status, part.body, part.headers["content-range"]) == (206, b"byte", "bytes 5-8/10")
        assert transfer(plane, key, owner.session, Range="bytes=10-").status == 416
        assert transfer(plane, f"{execution_id}/no-key", owner.session).status == 404


def test_a_body_comes_in_pieces_of_which_each_may_come_again(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    body = b"0123456789"
    key = f"{execution_id}/{hashlib.sha256(body).hexdigest()}"
    upload = uuid4().hex
    with pool.worker() as owner:
        owner.command()

        def put(start: int, end: int, piece: bytes = b"", name: str = upload) -> Transfer:
            headers = {"Content_Range": f"bytes {start}-{end - 1}/{len(body)}"}
            return transfer(
                pool.plane, key, owner.session, piece or body[start:end], query=f"?upload={name}", **headers
            )

        assert put(0, 4).status == 202
        assert put(6, 10).status == 409, "there is a gap"
        assert put(4, 8, b"wron").status == 202
        assert put(4, 8).status == 202
        assert put(0, 4, name="../../escaped").status == 422
        assert transfer(pool.plane, key, owner.session, body, Content_Range="bytes wrong").status == 422
        assert put(8, 10).status == 204
        assert transfer(pool.plane, key, owner.session).body == body


def test_bytes_that_find_no_room_may_come_again(pool: RawPool) -> None:
    execution_id = pool.start(ONE)
    body, pid = b"x" * 5_000, pool.plane.server_pid
    key = f"{execution_id}/{hashlib.sha256(body).hexdigest()}"
    with pool.worker() as owner:
        owner.command()
        limit_files(pid, 1_000)
        try:
            refused = transfer(pool.plane, key, owner.session, body)
        finally:
            limit_files(pid, UNLIMITED)
        assert (refused.status, int(refused.headers["retry-after"]) > 0) == (503, True)
        assert transfer(pool.plane, key, owner.session, body).status == 204
        assert transfer(pool.plane, key, owner.session).body == body


WITH_ARTIFACT = """\
workflow:
- step: start
  tool: [{other: {kind: noop}}, {keep: {kind: artifact, action: list}}]
"""


def test_artifacts_are_for_tasks_of_that_kind_in_claimed_runs(pool: RawPool) -> None:
    execution_id = pool.start(WITH_ARTIFACT)
    with pool.worker(kinds=("noop", "artifact")) as owner, pool.worker(slots=0) as other:
        run = owner.run_of(owner.command())

        def ask(worker: RawWorker, task: str = "keep", **about: Any) -> Any:
            request = {"execution": execution_id, "run": run, "task": task, "action": "list", **about}
            return fetch(worker, pool.plane, ArtifactRequest(**request))

        assert ask(owner) == FetchedValue(value=[])
        assert ask(other) == "forbidden"
        assert ask(owner, task="other") == "forbidden"
        assert ask(owner, run="r99") == "forbidden"
        foreign = {"key": f"{uuid4()}/{'0' * 64}", "size": 1, "media_type": "text/plain", "hash": "0" * 64}
        assert ask(owner, action="publish", name="stolen", reference=foreign) == "not_found"
        assert ask(owner, action="published", name="") == "invalid"


ARTIFACTS = """\
workload: {text: ""}
workflow:
- step: start
  tool: {kind: artifact, action: put, key: reports/large, content: "{{ workload.text }}", format: text}
  next: {arcs: [{step: read}]}
- step: read
  tool:
  - get: {kind: artifact, action: get, key: reports/large, format: text}
  - list: {kind: artifact, action: list, key: reports/, args: {length: "{{ _prev | length }}"}, set: {ctx.length: "{{ args.length }}"}}
  - delete: {kind: artifact, action: delete, key: reports/large}
  - gone: {kind: artifact, action: get, key: reports/large}
"""


def test_artifacts_work_in_workers_that_cannot_see_the_server_s_home(plane: Plane) -> None:
    ended = plane.run(ARTIFACTS, text="line\n" * 60_000)
    assert ended["ctx"] == {"length": 300_000}
    assert ended["error"]["kind"] == "not_found"
    assert "reports/large" in ended["error"]["message"]


def test_a_grant_is_for_bodies_of_what_was_claimed(pool: RawPool) -> None:
    execution_id, other = pool.start(ONE), pool.start(ONE)
    with pool.worker() as worker:
        command = worker.command()
        mine, theirs = (command.execution, other if command.execution == execution_id else execution_id)
        body = "a" * 64
        for execution, key, answer in (
            (mine, f"{mine}/{body}", FetchedValue()),  # files of a server are nobody's else
            (theirs, f"{theirs}/{body}", "forbidden"),
            (mine, f"{theirs}/{body}", "forbidden"),
            (mine, f"elsewhere:{mine}/{body}", "not_found"),
            (mine, f"{mine}/../{body}", "forbidden"),
        ):
            request = FetchGrant(execution=execution, key=key, method="PUT")
            assert fetch(worker, pool.plane, request) == answer, key
        assert worker.end(command) == "durable"
        assert worker.end(worker.command()) == "durable"
    for name in (execution_id, other):
        assert pool.end(name) == "completed"
