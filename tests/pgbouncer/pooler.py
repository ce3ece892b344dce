"""A PgBouncer in front of a PostgreSQL, where Debian's package is installed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.postgres_server import PASSWORD, PostgresServer

_PORT = 6432
_CONFIGURATION = """
[databases]
postgres = host={server} dbname=postgres user=postgres password='{password}'
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = {port}
auth_type = plain
auth_file = {folder}/users
pool_mode = {mode}
"""


def why_pgbouncer_is_not_used() -> str | None:
    """None if it is."""
    return None if shutil.which("pgbouncer") else "is not installed"


@contextmanager
def pooler(server: PostgresServer, folder: Path, mode: str) -> Iterator[PostgresServer]:
    """It runs as nobody if this is root, and listens on a socket in `folder`."""
    folder.chmod(0o777)
    (folder / "users").write_text(f'"postgres" "{PASSWORD}"\n')
    values = {"server": server.folder, "folder": folder, "mode": mode, "port": _PORT, "password": PASSWORD}
    (folder / "pgbouncer.ini").write_text(_CONFIGURATION.format(**values))
    whom = ["-u", "nobody"] if os.geteuid() == 0 else []
    with subprocess.Popen(
        ["pgbouncer", *whom, str(folder / "pgbouncer.ini")], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "process up" in line:
                    break
            else:
                raise AssertionError("PgBouncer has ended")
            yield PostgresServer(folder)
        finally:
            process.kill()
