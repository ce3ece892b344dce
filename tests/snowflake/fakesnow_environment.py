"""A fakesnow for each process of a session of tests, in an environment of its own.

It is made for the driver before version 5, and the tests use today's, as everybody does.
"""

import fcntl
import json
import site
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

PASSWORD = "winter"  # that of fakesnow_server.py
REQUIREMENTS = ["fakesnow[server]>=0.12,<0.13", "snowflake-connector-python>=4.8,<5"]
_SERVER = Path(__file__).with_name("fakesnow_server.py")
_numbers = count(1)


class Fakesnow(NamedTuple):
    port: int

    def auth(self, **fields: Any) -> dict[str, Any]:
        """A credential with a database that no other has."""
        return {
            "account": "fakesnow",
            "user": "ada",
            "password": PASSWORD,
            "host": "127.0.0.1",
            "port": self.port,
            "protocol": "http",
            "database": f"test_{next(_numbers)}",
            "schema": "public",
            **fields,
        }

    def seen(self) -> dict[str, Any]:
        """How many statements run, and the requests so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/seen") as answer:
            state: dict[str, Any] = json.load(answer)
            return state

    def forget_sessions(self) -> None:
        """As when they have expired."""
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}/forget").close()


def prepared_python() -> Path:
    """The interpreter of the environment, which is made when it is first asked for."""
    folder = Path(sys.prefix) / "fakesnow"
    python, marker = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join([sys.version, *REQUIREMENTS])
    with (Path(sys.prefix) / "fakesnow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists() or marker.read_text("utf-8") != wanted:
            venv.create(folder, clear=True, with_pip=True)
            # What both need, DuckDB and Arrow above all, it takes from here; what it has itself comes first.
            packages = next(folder.glob("lib/python*/site-packages"))
            (packages / "shared.pth").write_text("\n".join(site.getsitepackages()), "utf-8")
            install = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
            subprocess.run(install, check=True, capture_output=True, timeout=280)
            marker.write_text(wanted, "utf-8")
    return python


@contextmanager
def fakesnow_server() -> Iterator[Fakesnow]:
    """It ends with this process."""
    command = [str(prepared_python()), "-W", "ignore", str(_SERVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        try:
            yield Fakesnow(int(process.stdout.readline()))
        finally:
            process.stdin.close()
