"""Bodies that a worker reads and writes where they are kept, with short-lived URLs that its server signs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
import msgspec
from yarl import URL

from noetl.ports.control import FetchedValue, FetchGrant
from noetl.ports.results import AccessGrant, GrantMethod
from noetl.process_log import LogEvent, log_event
from noetl.stores.results.body_format import pack_body
from noetl.stores.results.result_key import parse_result_key, split_store_key
from noetl.stores.results.result_store import open_body, packed_body
from noetl.worker.server_link import FetchRefused, ServerLink, ServerUnavailable, fetch

LEAST_GRANTED = 1 << 20
"""Bytes from which on a URL is asked for: less is sooner through the server."""
_CHUNK = 1 << 20


class GrantedResults:
    """What can be done without the server is done; False or None says that it has to go through it."""

    def __init__(self, http: aiohttp.ClientSession, link: ServerLink) -> None:
        self._http = http
        self._link = link
        self._ungranted: set[str] = set()
        """The names of stores to which there is no such way."""

    async def put(self, key: str, data: bytes, compression: str) -> bool:
        grant = await self._grant(key, "PUT")
        return grant is not None and await self._send(
            key, grant, await asyncio.to_thread(pack_body, data, compression)
        )

    async def put_file(self, key: str, path: Path, folder: Path, compression: str) -> bool:
        """Where it gives False, the file is still there. `folder` is for what is written meanwhile."""
        if (grant := await self._grant(key, "PUT")) is None:
            return False
        async with packed_body(path, folder, compression) as packed:
            with packed.open("rb") as file:
                sent = await self._send(key, grant, file)
        if sent:
            path.unlink(missing_ok=True)
        return sent

    @asynccontextmanager
    async def local(self, key: str, folder: Path) -> AsyncIterator[Path | None]:
        """As `ResultStore.local`. Raises ResultExpired, ResultDamaged."""
        grant = await self._grant(key, "GET")
        raw, unpacked = folder / f".raw-{uuid4().hex}", folder / f".unpacked-{uuid4().hex}"
        try:
            if grant is None or not await self._receive(key, grant, raw):
                yield None
                return
            location = urlsplit(grant.url).hostname or "its store"
            yield await asyncio.to_thread(open_body, split_store_key(key)[1], raw, unpacked, location)
        finally:
            raw.unlink(missing_ok=True)
            unpacked.unlink(missing_ok=True)

    async def _grant(self, key: str, method: GrantMethod) -> AccessGrant | None:
        store, bare_key = split_store_key(key)
        if store in self._ungranted:
            return None
        execution_id = parse_result_key(bare_key).execution_id
        try:
            answer = await fetch(self._link, FetchGrant(execution=execution_id, key=key, method=method))
        except (FetchRefused, ServerUnavailable):
            return None  # an older server, or one that will say the same of the body itself
        if not isinstance(answer, FetchedValue) or answer.value is None:
            self._ungranted.add(store)
            return None
        return msgspec.convert(answer.value, AccessGrant)

    async def _send(self, key: str, grant: AccessGrant, data: Any) -> bool:
        try:
            # What is signed is the URL as it is spelled.
            url = URL(grant.url, encoded=True)
            async with self._http.put(url, data=data, headers=grant.headers) as response:
                return response.status in (200, 201)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._give_up(key, error)
            return False

    async def _receive(self, key: str, grant: AccessGrant, to: Path) -> bool:
        try:
            url = URL(grant.url, encoded=True)
            async with self._http.get(url, headers=grant.headers) as response:
                if response.status != 200:
                    return False
                with to.open("wb") as file:
                    async for piece in response.content.iter_chunked(_CHUNK):
                        await asyncio.to_thread(file.write, piece)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._give_up(key, error)
            return False
        return True

    def _give_up(self, key: str, error: Exception) -> None:
        """There may be no way from here to there: the server has one."""
        store = split_store_key(key)[0]
        self._ungranted.add(store)
        reason = str(error) or type(error).__name__
        log_event(LogEvent.RESULTS_THROUGH_SERVER, store=store or "auto", reason=reason)
