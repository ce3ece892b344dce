"""Restate: its server and one process with the handlers, both on loopback, the log in `data`.

The server is the registry's binary as shipped, less counting its users. Granian serves the handlers,
over HTTP/2 with uvloop: with Hypercorn, which the documentation shows, W3 took twice as long and W4 was
slower; W1 and W2 showed no clear difference.
"""

import json
import platform
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import (
    Unavailable,
    Worker,
    call,
    environment,
    free_port,
    install_python,
    python,
    python_versions,
    run_server,
)

NAME = "restate"
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


@contextmanager
def serve(folder: Path, data: Path) -> Iterator[Worker]:
    ingress, admin, node, handlers = (free_port() for _ in range(4))
    settings = environment(
        RESTATE_INGRESS__BIND_ADDRESS=f"127.0.0.1:{ingress}",
        RESTATE_ADMIN__BIND_ADDRESS=f"127.0.0.1:{admin}",
        RESTATE_BIND_ADDRESS=f"127.0.0.1:{node}",
        RESTATE_LISTEN_MODE="tcp",
        RESTATE_DISABLE_TELEMETRY="true",
        RESTATE_LOG_FILTER="error",
    )
    serve = [python(folder), "-m", "granian", "--interface", "asgi", "--http", "2", "--loop", "uvloop"]
    serve += [
        "--no-ws",
        "--host",
        "127.0.0.1",
        "--port",
        str(handlers),
        "bench.peers.scripts.restate_service:app",
    ]
    start = [str(_binary(folder)), "--no-logo", "--base-dir", str(data / "restate")]
    with (
        run_server(start, settings, data / "server.log") as server,
        run_server(serve, settings, data / "handlers.log"),
    ):
        server.wait_for(f"http://127.0.0.1:{admin}/health")
        body = json.dumps({"uri": f"http://127.0.0.1:{handlers}"}).encode()
        server.wait_for(f"http://127.0.0.1:{admin}/deployments", body)
        command = [python(folder), "-m", "bench.peers.scripts.restate_worker", f"http://127.0.0.1:{ingress}"]
        yield Worker(command, {**settings, "DURABILITY": _durability(folder, settings)})


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
