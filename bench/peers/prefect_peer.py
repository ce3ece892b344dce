"""Prefect: its server on loopback with SQLite in `data`, or on a PostgreSQL, flows in the worker's process.

The server runs without its page, and without the services that flows started by hand do not need:
scheduling, triggers, the log of events. What records task runs stays on.
FastAPI is held back, because its newest releases no longer take arguments that Prefect passes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import environment, free_port, install_python, python, python_versions, run_server
from bench.resumption import Resumption
from bench.side import Unavailable, Worker, Wrap

NAME = "prefect"
DURABLE = False

IDLE_SERVICES = (
    "CANCELLATION_CLEANUP",
    "CLEANUP_RECONCILER",
    "EVENT_PERSISTER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER",
    "TRIGGERS",
)


def install(folder: Path) -> None:
    install_python(folder, ["prefect==3.8.8", "fastapi==0.148.0"])


def versions(folder: Path) -> dict[str, str]:
    return python_versions(folder, ["prefect", "fastapi", "sqlalchemy"])


@contextmanager
def serve(folder: Path, data: Path, wrap: Wrap, database: str = "") -> Iterator[Worker]:
    port = free_port()
    settings = environment(
        PREFECT_HOME=str(data),
        PREFECT_API_URL=f"http://127.0.0.1:{port}/api",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY="false",
        PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS="false",
        PREFECT_SERVER_UI_ENABLED="false",
        PREFECT_LOGGING_LEVEL="ERROR",
        PREFECT_LOGGING_TO_API_ENABLED="false",
        PREFECT_TASKS_DEFAULT_NO_CACHE="true",
        **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in IDLE_SERVICES},
    )
    if database:
        settings["PREFECT_API_DATABASE_CONNECTION_URL"] = database.replace(
            "postgresql:", "postgresql+asyncpg:", 1
        )
    command = [python(folder), "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with run_server(wrap([*command, "--no-ui"]), settings, data / "server.log") as server:
        server.wait_for(f"http://127.0.0.1:{port}/api/health")
        worker = wrap([python(folder), "-m", "bench.peers.scripts.prefect_worker"])
        yield Worker(worker, settings, servers=[server.process.pid])


def resume(folder: Path, data: Path, steps: int) -> Resumption:  # noqa: ARG001 - as `Side` says
    raise Unavailable("a flow whose process was killed does not go on by itself")
