"""A real server that speaks S3: a new one for each who asks. Needs `noetl[test]`."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import obstore
from obstore.store import S3Store

from noetl.tools.process.orphan_killer import OrphanKiller

BUCKET = "noetl-tests"
KEY = "AKIDTESTS"
SECRET = "not-a-real-secret-key"  # noqa: S105 - nothing is behind it


class S3Server(NamedTuple):
    endpoint: str
    process: "subprocess.Popen[bytes]"
    ports: list[int]
    bucket: str = BUCKET
    access_key_id: str = KEY
    secret_access_key: str = SECRET

    @property
    def auth(self) -> dict[str, Any]:
        """As a credential gives it to a task."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
        }

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.access_key_id, "AWS_SECRET_ACCESS_KEY": self.secret_access_key}


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Seaweed's server in a temporary folder, on ports that nobody else has. It ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-s3-"))
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    names = ("master", "volume", "filer", "s3")
    ports = _free_ports(2 * len(names))
    flags = [f"-{name}.port={port}" for name, port in zip(names, ports[:4], strict=True)]
    flags += [f"-{name}.port.grpc={port}" for name, port in zip(names, ports[4:], strict=True)]
    killer = OrphanKiller()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).parent / "weed"),
                "-logtostderr=true",
                "server",
                f"-dir={folder}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                *flags,
                "-filer",
                "-s3",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
                f"-s3.config={folder / 's3.json'}",
                "-master.volumeSizeLimitMB=256",
                "-master.telemetry=false",
                "-volume.max=20",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = S3Server(f"http://127.0.0.1:{ports[3]}", process, ports)
    try:
        killer.watch(process.pid)
        # It answers after some seconds: until then the client tries again.
        patient = S3Store(
            BUCKET,
            config=server.auth,  # type: ignore[arg-type]  # a mapping of known keys
            client_options={"allow_http": True},
            retry_config={
                "max_retries": 2_000,
                "retry_timeout": timedelta(seconds=240),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(milliseconds=200),
                    "base": 1.1,
                },
            },
        )
        obstore.put(patient, "ready", b"")
        yield server
    finally:
        killer.forget(process.pid)
        process.kill()
        process.wait()
        killer.close()
        shutil.rmtree(folder, ignore_errors=True)
        remove_sockets(ports)


def remove_sockets(ports: Iterable[int]) -> None:
    """What a server that was killed left of its ports."""
    for port in ports:
        for socket_file in _left_by(port):
            socket_file.unlink()


def _free_ports(count: int) -> list[int]:
    ports: list[int] = []
    with ExitStack() as stack:
        while len(ports) < count:
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            if not _left_by(port):
                ports.append(port)
    return ports


def _left_by(port: int) -> list[Path]:
    """The sockets that a killed server leaves; their folder cannot be set, and those of others stop ours."""
    return list(Path("/tmp").glob(f"seaweedfs-*-{port}.sock"))  # noqa: S108 - where that server puts them
