"""A MariaDB in a temporary folder, which ends with the process that started it."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import quote

import trustme

from bench.postgres_server import GUARDED, unprivileged

PASSWORD = "grün & blau"  # nothing is behind it
SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": "16M",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-log-file-size": "4M",
    "innodb-lock-wait-timeout": "1",
    "lc-messages-dir": "/usr/share/mysql",
    "max-allowed-packet": "2M",
    "max-connections": "60",
    "skip-name-resolve": "1",
    "sync-binlog": "0",
}
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
)
_SHARED = Path("/usr/share/mysql")
_FIRST_USERS = f"""\
use mysql;
flush privileges;
alter user root@localhost identified by '{PASSWORD}';
create user tester@'127.0.0.1' identified by '{PASSWORD}';
grant all on *.* to tester@'127.0.0.1' with grant option;
"""


class MariadbServer(NamedTuple):
    """A server that listens on a socket and a port, where it speaks TLS with a certificate of `ca`."""

    folder: Path
    port: int

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def dsn(self, database: str = "", **options: str) -> str:
        """The address of its socket, for the superuser."""
        words = {"unix_socket": str(self.folder / "socket"), **options}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in words.items())
        return f"mysql://root:{quote(PASSWORD, safe='')}@localhost/{database}?{query}"

    def auth(self, **fields: Any) -> dict[str, Any]:
        """A credential for its port."""
        return {"host": "127.0.0.1", "port": self.port, "user": "tester", "password": PASSWORD, **fields}


def why_mariadb_is_not_there() -> str | None:
    """None if there is a server to start."""
    program = shutil.which("mariadbd", path=_PATH)
    if program is None or not (_SHARED / _SYSTEM_TABLES[0]).exists():
        return "no MariaDB is installed: 'apt-get install mariadb-server-core' installs one"
    return None


_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


@contextmanager
def mariadb_server() -> Iterator[MariadbServer]:
    reason = why_mariadb_is_not_there()
    assert reason is None, reason
    folder = Path(tempfile.mkdtemp(prefix="noetl-my-"))
    try:
        whom = unprivileged()
        if whom:
            os.chown(folder, whom["user"], whom["group"])
        server = MariadbServer(folder, _free_port())
        _write_certificates(folder, whom)
        program = [str(shutil.which("mariadbd", path=_PATH)), "--no-defaults", f"--datadir={folder / 'data'}"]
        (folder / "data").mkdir()
        if whom:
            os.chown(folder / "data", whom["user"], whom["group"])
        # Its own folder: the one for temporary files may belong to the user of the tests alone.
        settings = [f"--{name}={value}" for name, value in {**SETTINGS, "tmpdir": folder}.items()]
        system_tables = "".join((_SHARED / name).read_text("utf-8") for name in _SYSTEM_TABLES)
        done = subprocess.run(
            [*program, *settings, "--bootstrap", "--skip-networking"],
            input=f"create database mysql;\nuse mysql;\nset @auth_root_socket = NULL;\n{system_tables}",
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            **whom,
        )
        assert done.returncode == 0, done.stderr
        command = [
            *program,
            *settings,
            "--autocommit=0",  # the tool does not count on what a server begins with
            f"--socket={folder / 'socket'}",
            f"--port={server.port}",
            f"--ssl-ca={server.ca}",
            f"--ssl-cert={folder / 'cert.pem'}",
            f"--ssl-key={folder / 'key.pem'}",
        ]
        with _started(command, folder, whom):
            yield server
    finally:
        shutil.rmtree(folder)


@contextmanager
def _started(command: list[str], folder: Path, whom: dict[str, Any]) -> Iterator[None]:
    (folder / "first.sql").write_text("\n".join(_FIRST_USERS.splitlines()) + "\n", "utf-8")
    with subprocess.Popen(
        ["sh", "-c", GUARDED, "sh", *command, f"--init-file={folder / 'first.sql'}"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        **whom,
    ) as shell:
        assert shell.stdin
        assert shell.stderr
        log_lines: list[str] = []
        for line in shell.stderr:
            log_lines.append(line)
            if "ready for connections" in line:
                break
        else:
            raise AssertionError("".join(log_lines))
        rest = Thread(target=shell.stderr.read)
        rest.start()
        try:
            yield
        finally:
            shell.stdin.close()
            rest.join()


def _write_certificates(folder: Path, whom: dict[str, Any]) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    if whom:
        os.chown(folder / "key.pem", whom["user"], whom["group"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
