"""For whoever runs the server: whether it lives, whether it can serve, and its metrics."""

from collections.abc import Iterable, Mapping
from shutil import disk_usage
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from starlette.responses import Response

from noetl.model.timestamp import iso_time, now_micros, optional_time
from noetl.ports.admin_api import FeedStatus, HealthAnswer, PoolStatus, ReadStoreStatus, ServerStatus
from noetl.ports.store import StoreError
from noetl.server.http.access import METRICS_PATH
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.problems import ApiProblem
from noetl.server.http.resources import ServerResources
from noetl.server.measures import METRICS, Histogram, Metric
from noetl.settings import installed_release

_FAMILIES: Mapping[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}
Samples = Mapping[tuple[str, ...], float | Histogram]
"""The values of one metric, by its labels."""


async def _is_alive(_call: ApiCall) -> Answer:
    return Answer(HealthAnswer())


async def _is_ready(call: ApiCall) -> Answer:
    problem = await _problem_of_server(call.resources)
    if problem is not None:
        raise problem
    return Answer(HealthAnswer())


async def _problem_of_server(resources: ServerResources) -> ApiProblem | None:
    """Why it cannot serve. A store that answers is of the current schema: others are not opened."""
    if resources.bell.closed:
        return ApiProblem("overloaded", "the server is about to end")
    if (failure := resources.engine.write_failure) is not None:
        return ApiProblem("store_unavailable", f"nothing can be written: {failure}")
    try:
        await resources.store.feed(limit=1)
        free = disk_usage(resources.home.folder).free
    except (StoreError, OSError) as error:
        return ApiProblem("store_unavailable", f"the store does not answer: {error}")
    if (failure := resources.engine.write_failure) is not None:
        return ApiProblem("store_unavailable", f"nothing can be written: {failure}", hint=failure.hint)
    if free < resources.limits.free_bytes:
        return ApiProblem(
            "store_unavailable",
            f"the disk of the store is full: {free >> 20} MiB are free",
            hint=f"{resources.limits.free_bytes >> 20} MiB needed; `noetl store prune` deletes what is old",
        )
    return None


async def _read_status(call: ApiCall) -> Answer:
    resources = call.resources
    observer, sessions = resources.observer, resources.sessions.workers
    problem = await _problem_of_server(resources)
    status = ServerStatus(
        release=installed_release(),
        started_at=iso_time(resources.started_at),
        uptime=(now_micros() - resources.started_at) / 1e6,
        store=resources.store_url,
        ready=problem is None,
        problem=str(problem) if problem is not None else None,
        executions=resources.engine.live_executions,
        workers=len(sessions),
        slots=sum(session.slots for session in sessions),
        claimed=sum(len(session.leases) for session in sessions),
        pools=[PoolStatus(pool=pool, depth=depth, age=age) for pool, depth, age in observer.queues()],
        stuck=_stuck_executions(resources),
        last_commit_at=optional_time(observer.measures.last_commit),
        feed=_feed_status(resources),
        read_store=await _read_store_status(resources),
    )
    return Answer(status)


def _feed_status(resources: ServerResources) -> FeedStatus | None:
    feed = resources.feed
    return FeedStatus(stream=feed.location, lag=feed.lag, problem=feed.problem or None) if feed else None


async def _read_store_status(resources: ServerResources) -> ReadStoreStatus | None:
    if (replica := resources.read_store) is None:
        return None
    try:
        return ReadStoreStatus(store=replica.label, lag=await replica.lag(), problem=None)
    except StoreError as error:
        return ReadStoreStatus(store=replica.label, lag=None, problem=str(error))


def _stuck_executions(resources: ServerResources) -> int:
    return len(resources.observer.stuck_executions(resources.sessions))


async def _read_metrics(call: ApiCall) -> Response:
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    replica = await _read_store_status(call.resources)
    registry.register(_ServerCollector(call.resources, replica.lag if replica is not None else None))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _ServerCollector(Collector):
    def __init__(self, resources: ServerResources, replica_lag: float | None) -> None:
        self._samples: dict[str, Samples] = {
            **_samples(resources),
            "noetl_read_store_lag_seconds": {(): replica_lag} if replica_lag is not None else {},
        }

    def collect(self) -> Iterable[Family]:
        for metric in METRICS:
            yield _family(metric, self._samples[metric.name])


def _family(metric: Metric, samples: Samples) -> Family:
    family = _FAMILIES[metric.kind](metric.name, metric.meaning, labels=metric.labels)
    for labels, value in samples.items():
        if isinstance(value, Histogram):
            family.add_metric(labels, _buckets(value), value.total)
        else:
            family.add_metric(labels, value)
    return family  # type: ignore[no-any-return]  # each of them is one


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """As they are exposed: each counts all that is not above its bound."""
    buckets, count = [], 0
    for bound, here in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        count += here
        buckets.append(("+Inf" if bound == float("inf") else str(bound), float(count)))
    return buckets


def _samples(resources: ServerResources) -> Mapping[str, Samples]:
    """By the name of the metric: every one of the table is here."""
    observer, sessions = resources.observer, resources.sessions.workers
    measures, queues = observer.measures, observer.queues()
    busy = sum(len(session.leases) for session in sessions)
    return {
        "noetl_build_info": {(installed_release(),): 1},
        "noetl_live_executions": {(): resources.engine.live_executions},
        "noetl_executions_started": {(): measures.started},
        "noetl_executions_ended": {(status,): count for status, count in measures.ended.items()},
        "noetl_stuck_executions": {(): _stuck_executions(resources)},
        "noetl_queue_depth": {(queue.pool,): queue.depth for queue in queues},
        "noetl_queue_age_seconds": {(queue.pool,): queue.age for queue in queues},
        "noetl_worker_sessions": {(): len(sessions)},
        "noetl_worker_slots": {
            ("busy",): busy,
            ("free",): max(0, sum(session.slots for session in sessions) - busy),
        },
        "noetl_leases_expired": {(reason,): count for reason, count in measures.leases_expired.items()},
        "noetl_decide_seconds": {(): measures.decide},
        "noetl_commit_seconds": {(): measures.commit},
        # A file has one writer: there is nobody to collide with.
        "noetl_commits_repeated": {(): getattr(resources.store, "repeated_commits", 0)},
        "noetl_events_appended": {(): measures.events},
        "noetl_feed_lag_seconds": {(): resources.feed.lag} if resources.feed else {},
        "noetl_task_seconds": dict(measures.tasks.items()),
        "noetl_task_retries": {(kind,): count for kind, count in measures.retries.items()},
        "noetl_stream_clients": {(): resources.bell.listeners},
        "noetl_http_requests": {
            (method, route.replace(":path}", "}"), str(status)): count
            for (method, route, status), count in measures.requests.items()
        },
    }


MONITORING_ENDPOINTS = (
    Endpoint(
        name="is_alive",
        method="GET",
        path="/healthz",
        role=None,
        summary="Whether the process is there.",
        handler=_is_alive,
        answers=(HealthAnswer,),
    ),
    Endpoint(
        name="is_ready",
        method="GET",
        path="/readyz",
        role=None,
        summary="Whether it can serve: its store answers, its disk has room, and it is not about to end.",
        handler=_is_ready,
        answers=(HealthAnswer,),
        codes=("store_unavailable", "overloaded"),
    ),
    Endpoint(
        name="read_status",
        method="GET",
        path="/api/status",
        role="viewer",
        summary="What the server is, how long it runs, who works for it, and what waits.",
        handler=_read_status,
        answers=(ServerStatus,),
    ),
    Endpoint(
        name="read_metrics",
        method="GET",
        path=METRICS_PATH,
        role="viewer",
        summary="What the server counts of itself, as Prometheus reads it.",
        handler=_read_metrics,
        answer_type="text/plain",
    ),
)
