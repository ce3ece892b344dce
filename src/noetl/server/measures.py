"""What a server counts of itself: plain numbers, made into metrics when somebody asks."""

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Literal, NamedTuple

FAST_BUCKETS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    10.0,
)
TASK_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0)
"""Seconds."""


class Metric(NamedTuple):
    """What is exposed under a name; the page about metrics is made of this."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    meaning: str


METRICS = (
    Metric("noetl_build_info", "gauge", ("release",), "Always 1; the release that runs."),
    Metric("noetl_live_executions", "gauge", (), "Executions that have not ended and are in memory."),
    Metric("noetl_executions_started", "counter", (), "Executions that began, children too."),
    Metric("noetl_executions_ended", "counter", ("status",), "Executions that ended, by how."),
    Metric(
        "noetl_stuck_executions",
        "gauge",
        (),
        "Executions with a run that is ready for a minute and that no worker can take.",
    ),
    Metric("noetl_queue_depth", "gauge", ("pool",), "Runs that are ready and that nobody has claimed."),
    Metric(
        "noetl_queue_age_seconds",
        "gauge",
        ("pool",),
        "How long the oldest of them is ready, at most since the start of the server.",
    ),
    Metric(
        "noetl_worker_sessions", "gauge", (), "Worker processes that are connected, or were within their ttl."
    ),
    Metric("noetl_worker_slots", "gauge", ("state",), "Runs that these workers can hold: `busy` and `free`."),
    Metric(
        "noetl_leases_expired",
        "counter",
        ("reason",),
        "Leases that ended before their run: only `expired` is a loss.",
    ),
    Metric("noetl_decide_seconds", "histogram", (), "Time to decide a command, fold included."),
    Metric(
        "noetl_commit_seconds",
        "histogram",
        (),
        "Time of a commit of the store, the flush of the disk included.",
    ),
    Metric(
        "noetl_commits_repeated",
        "counter",
        (),
        "Commits that PostgreSQL took back because of others, such as a deadlock, and that were made again.",
    ),
    Metric("noetl_events_appended", "counter", (), "Events that became durable."),
    Metric(
        "noetl_feed_lag_seconds",
        "gauge",
        (),
        "How long the oldest event waits to be published; only of a server with a feed.",
    ),
    Metric(
        "noetl_read_store_lag_seconds",
        "gauge",
        (),
        "How long the oldest event waits that the replica lacks; only of a server with one that answers.",
    ),
    Metric(
        "noetl_task_seconds",
        "histogram",
        ("kind", "status"),
        "Time of attempts of tasks, as their workers report it.",
    ),
    Metric("noetl_task_retries", "counter", ("kind",), "Attempts that are to be repeated."),
    Metric(
        "noetl_stream_clients", "gauge", (), "Requests that wait for events of an execution: streams, mostly."
    ),
    Metric(
        "noetl_http_requests", "counter", ("method", "route", "status"), "Requests that an endpoint answered."
    ),
)
"""In the order of the page. The names of counters are exposed with `_total` at their end."""


class Histogram:
    """How often a value fell into which bucket, and the sum of all."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Measures:
    """The numbers. Whoever counts adds to them in the thread of the event loop; nothing is locked."""

    def __init__(self) -> None:
        self.started = 0
        self.ended: Counter[str] = Counter()
        self.leases_expired: Counter[str] = Counter()
        self.decide = Histogram(FAST_BUCKETS)
        self.commit = Histogram(FAST_BUCKETS)
        self.events = 0
        self.tasks: defaultdict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(TASK_BUCKETS))
        self.retries: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.last_commit = 0
        """When the last commit was durable, in microseconds since 1970; 0 for none."""

    def count_request(self, method: str, route: str, status: int) -> None:
        self.requests[method, route, status] += 1


class PoolQueue(NamedTuple):
    """The runs of a pool that wait: how many, and for how many seconds the oldest one."""

    pool: str
    depth: int
    age: float
