"""Azurite's blob service, Microsoft's own stand-in for Azure: one for each process of a session of tests."""

import base64
import fcntl
import hmac
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from noetl.tools.process.orphan_killer import OrphanKiller

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Not a secret: Azurite's documentation has it."""
_ROOT = Path(__file__).parent.parent
_LISTENING = re.compile(rb"listen\w+ (?:at|on) (http://[\d.]+:\d+)")


class AzureServer(NamedTuple):
    url: str
    container: str

    @property
    def endpoint(self) -> str:
        return f"{self.url}/{ACCOUNT}"

    @property
    def environment(self) -> dict[str, str]:
        return {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}

    def location(self, folder: str, container: str = "") -> str:
        return f"az://{container or self.container}/{folder}?endpoint={self.endpoint}"


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    """In a temporary folder, on a port that the system chooses. It ends with this process."""
    script = str(_ROOT / "scripts" / "azurite")
    with (_ROOT / "tests" / "azurite" / "package.json").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # other processes of these tests want it, too
        subprocess.run([script, "--install"], check=True, stdin=subprocess.DEVNULL)
    folder = Path(tempfile.mkdtemp(prefix="noetl-azurite-"))
    flags = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--location", str(folder)]
    killer = OrphanKiller()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [script, *flags, "--disableTelemetry", "--skipApiVersionCheck"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        killer.watch(process.pid)
        server = AzureServer(_url_in(folder / "log", process), f"noetl-{uuid4().hex[:8]}")
        _create_container(server)
        yield server
    finally:
        killer.forget(process.pid)
        process.kill()
        process.wait()
        killer.close()
        shutil.rmtree(folder, ignore_errors=True)


def _url_in(log: Path, process: "subprocess.Popen[bytes]") -> str:
    """What it says when it listens."""
    while process.poll() is None:
        if match := _LISTENING.search(log.read_bytes()):
            return match[1].decode()
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def _create_container(server: AzureServer) -> None:
    """obstore makes none, so the request is signed here, as Azure's documents say for a shared key."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed_headers = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{server.container}\nrestype:container"
    text = "PUT" + "\n" * 12 + signed_headers + resource
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), "sha256")).decode()
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{server.endpoint}/{server.container}?restype=container",
        method="PUT",
        headers={**headers, "Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"},
    )
    urllib.request.urlopen(request).close()  # noqa: S310 - our own server


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    """The server of this process."""
    with azure_server() as server:
        yield server
