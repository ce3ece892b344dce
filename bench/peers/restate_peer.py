"""Restate: its server and one process with the handlers, both on loopback, the log in `data`.

The server is the registry's binary as shipped, less counting its users. Granian serves the handlers,
over HTTP/2 with uvloop: with Hypercorn, which the documentation shows, W3 took twice as long and W4 was
slower; W1 and W2 showed no clear difference.
"""

import json
import platform
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.peers.peer import (
    Server,
    call,
    environment,
    free_port,
    install_python,
    python,
    python_versions,
    run_server,
)
from bench.resumption import STEPS, TRACE, Resumption, times_after, wait_for_middle
from bench.side import Unavailable, Worker, Wrap

NAME = "restate"
DURABLE = True
SERVER = "1.7.12"


def install(folder: Path) -> None:
    install_python(folder, ["restate-sdk==1.2.0", "granian==2.8.7", "uvloop==0.23.0", "aiohttp==3.14.5"])
    if not _binary(folder).exists():
        package = f"@restatedev/{_binary(folder).parts[-3]}@{SERVER}"
        call(
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", ".", package],
            folder,
        )


def versions(folder: Path) -> dict[str, str]:
    package = json.loads((_binary(folder).parents[1] / "package.json").read_text("utf-8"))
    return {"restate-server": package["version"], **python_versions(folder, ["restate-sdk", "granian"])}


class Addresses(NamedTuple):
    """Ports on loopback; a server that is started again has the same."""

    ingress: int
    admin: int
    node: int
    handlers: int

    @classmethod
    def free(cls) -> "Addresses":
        return cls(*(free_port() for _ in cls._fields))

    def settings(self) -> dict[str, str]:
        return environment(
            RESTATE_INGRESS__BIND_ADDRESS=f"127.0.0.1:{self.ingress}",
            RESTATE_ADMIN__BIND_ADDRESS=f"127.0.0.1:{self.admin}",
            RESTATE_BIND_ADDRESS=f"127.0.0.1:{self.node}",
            RESTATE_LISTEN_MODE="tcp",
            RESTATE_DISABLE_TELEMETRY="true",
            RESTATE_LOG_FILTER="error",
            INGRESS=self.url(self.ingress),
        )

    @staticmethod
    def url(port: int) -> str:
        return f"http://127.0.0.1:{port}"


@contextmanager
def serve(folder: Path, data: Path, wrap: Wrap) -> Iterator[Worker]:
    addresses = Addresses.free()
    settings = addresses.settings()
    with run_both(folder, data, addresses, settings, wrap) as (server, handlers):
        register(server, addresses)
        worker = wrap([python(folder), "-m", "bench.peers.scripts.restate_worker"])
        yield Worker(
            worker,
            {**settings, "DURABILITY": _durability(folder, settings)},
            servers=[server.process.pid, handlers.process.pid],
            is_client=True,
        )


def resume(folder: Path, data: Path, steps: int) -> Resumption:
    """Server and handlers are killed and started again. The same request, by its key, waits for the end."""
    addresses = Addresses.free()
    trace = data / "steps.txt"
    settings = {**addresses.settings(), TRACE: str(trace), STEPS: str(steps)}
    url = f"{addresses.url(addresses.ingress)}/Workloads/chain"
    body = json.dumps(steps).encode()
    with run_both(folder, data, addresses, settings, list) as (server, handlers):
        register(server, addresses)
        server.wait_for(f"{url}/send", body, idempotency_key="bench")
        wait_for_middle(trace, steps, server.process, server.log)
        handlers.end(signal.SIGKILL)
        server.end(signal.SIGKILL)
    started = time.monotonic()
    with run_both(folder, data, addresses, settings, list) as (server, _):
        server.wait_for(url, body, idempotency_key="bench")
        return times_after(trace, steps, started, time.monotonic())


@contextmanager
def run_both(
    folder: Path, data: Path, addresses: Addresses, settings: Mapping[str, str], wrap: Wrap
) -> Iterator[tuple[Server, Server]]:
    """The server, and the process with the handlers."""
    serve = [python(folder), "-m", "granian", "--interface", "asgi", "--http", "2", "--loop", "uvloop"]
    serve += ["--no-ws", "--host", "127.0.0.1", "--port", str(addresses.handlers)]
    serve += ["bench.peers.scripts.restate_service:app"]
    start = [str(_binary(folder)), "--no-logo", "--base-dir", str(data / "restate")]
    with (
        run_server(wrap(start), settings, data / "server.log") as server,
        run_server(wrap(serve), settings, data / "handlers.log") as handlers,
    ):
        yield server, handlers


def register(server: Server, addresses: Addresses) -> None:
    """Tells the server where the handlers are, as soon as both listen."""
    admin = addresses.url(addresses.admin)
    server.wait_for(f"{admin}/health")
    server.wait_for(f"{admin}/deployments", json.dumps({"uri": addresses.url(addresses.handlers)}).encode())


def _binary(folder: Path) -> Path:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    if machine is None or system is None:
        raise Unavailable(f"the registry has no server for {platform.system()} on {platform.machine()}")
    package = f"restate-server-{system}-{machine}"
    return folder / "node_modules" / "@restatedev" / package / "bin" / "restate-server"


def _durability(folder: Path, settings: Mapping[str, str]) -> str:
    """What the server's own configuration says of its log."""
    done = subprocess.run(
        [_binary(folder), "--dump-config"], env=settings, capture_output=True, text=True, check=True
    )
    config = tomllib.loads(done.stdout)
    log = config["log-server"]["rocksdb-disable-wal-fsync"]
    return f"replicated log of {config['default-replication']}, RocksDB WAL, fsync {'off' if log else 'on'}"
