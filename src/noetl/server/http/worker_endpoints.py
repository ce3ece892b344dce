"""The workers of a server, the pools that they serve, and what waits there."""

from collections.abc import Iterable

from noetl.ports.admin_api import DrainAnswer, PoolItem, PoolList, WorkerItem, WorkerList, WorkerRun
from noetl.ports.http_api import EmptyRequest
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.problems import ApiProblem
from noetl.server.measures import PoolQueue
from noetl.server.plane.sessions import Lease, WorkerSession


async def _list_workers(call: ApiCall) -> Answer:
    sessions = call.resources.sessions
    workers = [_item(session, sessions.age_of(session)) for session in sessions.workers]
    return Answer(WorkerList(workers=sorted(workers, key=lambda worker: (worker.worker, worker.session))))


def _item(session: WorkerSession, age: float) -> WorkerItem:
    return WorkerItem(
        session=session.id,
        worker=session.worker,
        release=session.release,
        token=session.token,
        pools=sorted(session.pools),
        kinds=sorted(session.kinds),
        slots=session.slots,
        heartbeat_age=age,
        runs=[_run(lease) for lease in session.leases.values()],
    )


def _run(lease: Lease) -> WorkerRun:
    # Of one that is not in memory, as after a restart, only the lease is known.
    run = lease.live.state.runs.get(lease.run) if lease.live.loaded else None
    step = run.step.name if run is not None else None
    return WorkerRun(execution_id=lease.live.execution_id, run=lease.run, step=step)


async def _list_pools(call: ApiCall) -> Answer:
    return Answer(PoolList(pools=read_pools(call)))


def read_pools(call: ApiCall) -> list[PoolItem]:
    """The pools that have workers, or runs that wait."""
    sessions = call.resources.sessions.workers
    queues = {queue.pool: queue for queue in call.resources.observer.queues()}
    unproven = call.resources.plane.needs_checks.unserved_pools()
    names = sorted({*queues, *unproven, *(pool for session in sessions for pool in session.pools)})
    return [_pool(call, name, sessions, queues.get(name)) for name in names]


def _pool(call: ApiCall, name: str, sessions: Iterable[WorkerSession], queue: PoolQueue | None) -> PoolItem:
    members = [session for session in sessions if name in session.pools]
    return PoolItem(
        pool=name,
        depth=queue.depth if queue is not None else 0,
        age=queue.age if queue is not None else 0.0,
        workers=len(members),
        slots=sum(session.slots for session in members),
        claimed=sum(len(session.leases) for session in members),
        kinds=sorted(frozenset().union(*(session.kinds for session in members))),
        problem=call.resources.observer.problem_of_pool(name, members) or _unproven(call, name),
    )


def _unproven(call: ApiCall, pool: str) -> str | None:
    """Executions wait for a worker of the pool though none of their runs is ready there."""
    if pool not in call.resources.plane.needs_checks.unserved_pools():
        return None
    return f"no worker serves the pool `{pool}`, and executions wait to hear whether what they need is there"


async def _drain_worker(call: ApiCall) -> Answer:
    name = call.part("worker")
    workers = call.resources.sessions.workers
    sessions = [session for session in workers if name in (session.worker, session.id)]
    if not sessions:
        raise ApiProblem("not_found", f"there is no worker `{name}`", hint="`noetl worker list` names all")
    for session in sessions:
        session.drain()
    return Answer(DrainAnswer(draining=len(sessions)))


WORKER_ENDPOINTS = (
    Endpoint(
        name="list_workers",
        method="GET",
        path="/api/workers",
        role="viewer",
        summary="The workers of the server, and what they run.",
        handler=_list_workers,
        answers=(WorkerList,),
    ),
    Endpoint(
        name="drain_worker",
        method="POST",
        path="/api/workers/{worker}/drain",
        role="operator",
        summary="Tells a worker, by its name or session, to end what it runs, take nothing more, and leave.",
        handler=_drain_worker,
        answers=(DrainAnswer,),
        body=EmptyRequest,
        codes=("not_found", "invalid_request"),
    ),
    Endpoint(
        name="list_pools",
        method="GET",
        path="/api/pools",
        role="viewer",
        summary="By pool: workers, their kinds and slots, how many runs wait, for how long, and why.",
        handler=_list_pools,
        answers=(PoolList,),
    ),
)
