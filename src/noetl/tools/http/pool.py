"""The connections of all `http` tasks of a worker: one pool, cookies for each run, certificates."""

import contextlib
import resource
import ssl
from collections import OrderedDict
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

import aiohttp

from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.http.kind import Certificate, HttpSpec

_KEEPALIVE_SECONDS = 4.0
"""Seconds that an idle connection is kept: less than servers do, so that none is used as it closes."""
_MAX_JARS = 4_096
"""Runs whose cookies are kept: those that used theirs last."""
_MAX_CONTEXTS = 256
"""Sets of certificates that are kept read."""
_MAX_OPEN_FILES = 65_536
"""Open files, sockets included, that are asked of the system: often it gives 1,024 unless asked."""
_RESERVED_FILES = 256
"""Of these, what is left to stores, processes and other tools: without any they fail."""

TlsOption: TypeAlias = ssl.SSLContext | bool
"""What the certificate of a server is checked against, and what the client shows of its own."""


class HttpConnections:
    """Keeps connections alive between calls, to any number of hosts. Belongs to the running loop."""

    def __init__(self) -> None:
        self._connector: aiohttp.TCPConnector | None = None
        self._jars: OrderedDict[tuple[str, str], aiohttp.CookieJar] = OrderedDict()
        self._contexts: dict[tuple[object, ...], ssl.SSLContext] = {}
        self._headers = {"User-Agent": f"noetl/{_version()}"}
        self.closed = False

    @contextlib.contextmanager
    def session(self, call: Call) -> Iterator[aiohttp.ClientSession]:
        """For one call. It sends the cookies that servers gave to the run that the call belongs to."""
        if self.closed:
            raise ToolError("cancelled", "the worker is ending")
        if self._connector is None:
            self._connector = aiohttp.TCPConnector(
                limit=_connection_limit(), keepalive_timeout=_KEEPALIVE_SECONDS
            )
        session = aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            cookie_jar=self._jar(call),
            headers=self._headers,
            max_line_size=65_536,  # the default of 8 KiB is less than some servers put into a header
            max_field_size=65_536,
        )
        # aiohttp sends idempotent requests again if a kept connection broke. Whether to try again is for the
        # policy to say, and it would not be recorded. There is no public option for it.
        session._retry_connection = False
        try:
            yield session
        finally:
            session.detach()  # as `close`, which is a coroutine: the connections are not its own

    async def close(self) -> None:
        self.closed = True
        self._jars.clear()
        if self._connector is not None:
            await self._connector.close()

    def tls_option(self, spec: HttpSpec, folder: Path) -> TlsOption:
        """As `verify` and `cert` say. One context for each set of files: connections are kept by it."""
        if spec.cert is None and not isinstance(spec.verify, str):
            return spec.verify is not False
        authorities = folder / spec.verify if isinstance(spec.verify, str) else None
        client = Certificate(cert=spec.cert) if isinstance(spec.cert, str) else spec.cert
        files = [client.cert, client.key or client.cert] if client is not None else []
        # With the times of change, so that renewed certificates are read; by the files and not by the task,
        # because aiohttp reuses a connection only for the same context.
        key = (
            spec.verify,
            *_file_versions("spec.verify", authorities),
            *_file_versions("spec.cert", *(folder / name for name in files)),
        )
        if (context := self._contexts.get(key)) is None:
            context = _server_context(authorities)
            if spec.verify is False:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if client is not None:
                _load_client_certificate(context, *(folder / name for name in files))
            if len(self._contexts) >= _MAX_CONTEXTS:  # files that change, or paths that are made anew
                self._contexts.clear()
            self._contexts[key] = context
        return context

    def _jar(self, call: Call) -> aiohttp.CookieJar:
        run = (call.execution_id, call.run_id)
        if (jar := self._jars.get(run)) is None:
            # Servers that are known by their number may set cookies, too.
            jar = self._jars[run] = aiohttp.CookieJar(unsafe=True)
            if len(self._jars) > _MAX_JARS:
                self._jars.popitem(last=False)
        else:
            self._jars.move_to_end(run)
        return jar


def _file_versions(input_name: str, *files: Path | None) -> list[tuple[Path, int]]:
    """The files and when they changed."""
    try:
        return [(file, file.stat().st_mtime_ns) for file in files if file is not None]
    except FileNotFoundError as error:
        raise ToolError("not_found", f"`{input_name}`: there is no {error.filename}") from None
    except OSError as error:
        raise ToolError(
            "input", f"`{input_name}`: {error.filename} cannot be read: {error.strerror}"
        ) from None


def _server_context(authorities: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise ToolError("input", f"`spec.verify`: {authorities} holds no certificates: {error}") from None


def _load_client_certificate(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """Lets the client show its certificate."""

    def refuse_password() -> str:
        # Without this the library would ask for the password on the terminal, and wait.
        raise ToolError(
            "credential", f"`spec.cert`: the key in {key} is encrypted: use one without a password"
        )

    try:
        context.load_cert_chain(cert, key, refuse_password)
    except OSError as error:
        raise ToolError(
            "input", f"`spec.cert`: no certificate with its key in {cert} and {key}: {error}"
        ) from None


def _connection_limit() -> int:
    """Connections at once: what the system lets this process open, for each may have a file that it fills."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    if soft == resource.RLIM_INFINITY:
        soft = limit
    elif soft < limit:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    return max((soft - _RESERVED_FILES) // 2, 1)


def _version() -> str:
    try:
        return version("noetl")
    except PackageNotFoundError:
        return "0"
