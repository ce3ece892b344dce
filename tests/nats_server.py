"""A NATS server with JetStream for each process of a session of tests."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from nats.aio.client import Client
from nats.js.api import KeyValueConfig

from noetl.tools.process.orphan_killer import OrphanKiller

_CONFIGURATION = """\
authorization {
  users = [
    { user: "ada", password: "open-sesame" }
    { user: "mute", password: "mute", permissions: { subscribe: { deny: ["_INBOX.>"] } } }
    { user: "guest", password: "guest", permissions: { publish: { deny: ["forbidden.>", "$KV.*.closed"] } } }
  ]
}
"""


class NatsServer(NamedTuple):
    url: str
    process: "subprocess.Popen[bytes]"

    @property
    def environment(self) -> dict[str, str]:
        """As programs of the user `ada` have it."""
        return {"NATS_USER": "ada", "NATS_PASSWORD": "open-sesame"}

    @property
    def auth(self) -> dict[str, str]:
        return {"url": self.url, "user": "ada", "password": "open-sesame"}


@contextmanager
def nats_server(
    data: Path | None = None, url: str = "", jetstream: tuple[str, ...] = ("-js",), configuration: str = ""
) -> Iterator[NatsServer]:
    """On a port that the system chooses, or at the URL of one that is gone. It ends with this process.

    Its streams are in `data`, else in a folder that is gone afterwards.
    """
    folder = Path(tempfile.mkdtemp(prefix="noetl-nats-"))
    (folder / "server.conf").write_text(_CONFIGURATION + configuration)
    program = str(Path(sys.executable).parent / "nats-server")
    port = url.rpartition(":")[2] or "-1"
    flags = ["-a", "127.0.0.1", "-p", port, *jetstream, "--ports_file_dir", str(folder)]
    flags += ["-sd", str(data or folder)] if jetstream else []
    killer = OrphanKiller()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-c", str(folder / "server.conf"), *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        killer.watch(process.pid)
        yield NatsServer(_url_in(folder, process), process)
    finally:
        killer.forget(process.pid)
        process.kill()
        process.wait()
        killer.close()
        shutil.rmtree(folder, ignore_errors=True)


def _url_in(folder: Path, process: "subprocess.Popen[bytes]") -> str:
    """What the server writes to its file of ports when it listens."""
    file = folder / f"nats-server_{process.pid}.ports"
    while process.poll() is None:
        try:
            return str(json.loads(file.read_text())["nats"][0])
        except (OSError, ValueError):
            time.sleep(0.02)
    raise AssertionError((folder / "log").read_text())


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServer]:
    """The server of this process."""
    with nats_server() as server:
        yield server


@asynccontextmanager
async def nats_client(server: NatsServer) -> AsyncIterator[Client]:
    client = Client()
    await client.connect(server.url, user=server.auth["user"], password=server.auth["password"])
    try:
        yield client
    finally:
        await client.close()


async def create_object_store(server: NatsServer, name: str) -> None:
    async with nats_client(server) as client:
        await client.jetstream().create_object_store(name)


async def create_bucket(server: NatsServer, name: str) -> None:
    async with nats_client(server) as client:
        await client.jetstream().create_key_value(KeyValueConfig(bucket=name))
