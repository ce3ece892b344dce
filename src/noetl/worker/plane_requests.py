"""What a worker asks of its server beside the stream: documents, stored values, credentials."""

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import msgspec

from noetl.model.errors import NoetlError
from noetl.ports.control import (
    SESSION_HEADER,
    FetchAnswer,
    FetchCredential,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FetchRequest,
    MessageMalformed,
    decode_from_server,
    encode_message,
)
from noetl.ports.credentials import CredentialError, StoredCredential
from noetl.ports.results import ResultDamaged, ResultError, ResultMissing
from noetl.stores.results.result_key import parse_result_key, split_store_key

CHUNK = 1 << 20
TRIES = 5
"""How often something is asked for while the server does not answer; each wait is twice as long."""
FIRST_WAIT = 0.2


class ServerUnavailable(NoetlError):
    """The server did not answer, or could not for now: try again."""


class FetchRefused(NoetlError):
    """The server will not give this."""


class ServerAccess:
    """Requests in the name of one session, which may move from one server to another."""

    def __init__(self, http: aiohttp.ClientSession, headers: Mapping[str, str]) -> None:
        self.http = http
        self.url = ""
        self.headers = dict(headers)

    def join(self, url: str, session: str) -> None:
        """From here on it is this server and session."""
        self.url = url
        self.headers[SESSION_HEADER] = session

    async def fetch(self, message: FetchRequest) -> FetchedPlaybook | FetchedValue:
        """Raises ServerUnavailable and FetchRefused."""
        answer = await self._retried(message)
        if isinstance(answer, FetchFailed):
            kind = ServerUnavailable if answer.code == "unavailable" else FetchRefused
            raise kind(answer.message)
        return answer

    async def _retried(self, message: FetchRequest) -> FetchAnswer:
        wait = FIRST_WAIT
        for _ in range(TRIES - 1):
            try:
                return await self._ask(message)
            except ServerUnavailable:
                await asyncio.sleep(wait)
                wait *= 2
        return await self._ask(message)

    async def _ask(self, message: FetchRequest) -> FetchAnswer:
        data = encode_message(message)
        try:
            async with self.http.post(
                f"{self.url}/api/worker/fetch", data=data, headers=self.headers
            ) as response:
                body = await response.read()
                if response.status != 200:
                    raise _http_error(response.status, body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerUnavailable(f"the server does not answer: {error}") from error
        try:
            (raw,) = msgspec.json.decode(body, type=tuple[msgspec.Raw])
            answer = decode_from_server(bytes(raw))
        except (msgspec.DecodeError, MessageMalformed) as error:
            raise FetchRefused(f"the server's answer is none: {error}") from error
        if not isinstance(answer, FetchAnswer):
            raise FetchRefused(f"the server answers with `{type(answer).__name__}`")
        return answer


def _http_error(status: int, body: bytes) -> NoetlError:
    try:
        detail = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("detail", msgspec.Raw(b'""'))
        text = msgspec.json.decode(detail, type=str)
    except msgspec.DecodeError:
        text = body[:200].decode("utf-8", "replace")
    # 404 is of a session that ended: another one may be registered soon.
    kind = ServerUnavailable if status >= 500 or status == 404 else FetchRefused
    return kind(f"the server answers {status}: {text}")


class ServerCredentials:
    """The server's credential store. See `noetl.ports.credentials.CredentialStore`."""

    def __init__(self, access: ServerAccess) -> None:
        self._access = access

    async def find(self, name: str) -> StoredCredential | None:
        try:
            answer = await self._access.fetch(FetchCredential(name=name))
        except ServerUnavailable as error:
            raise CredentialError(str(error), retryable=True) from None
        except FetchRefused as error:
            raise CredentialError(str(error)) from None
        value = answer.value if isinstance(answer, FetchedValue) else None
        return msgspec.convert(value, StoredCredential) if value is not None else None


class ServerResults:
    """The server's result store, over HTTP. See `noetl.ports.results.ResultStore`.

    Only of what the session has claimed; what belongs to no execution, artifacts, the server does not offer.
    """

    def __init__(self, access: ServerAccess) -> None:
        self._access = access
        self._folder = Path(tempfile.mkdtemp(prefix="noetl-worker-"))

    async def put(self, key: str, data: bytes, compression: str = "none") -> None:
        if hashlib.sha256(data).hexdigest() != parse_result_key(split_store_key(key)[1]).hash:
            raise ValueError(f"`{key}` is not the key of these bytes")
        wait = FIRST_WAIT
        for _ in range(TRIES - 1):
            try:
                await self._put(key, data, compression)
            except ServerUnavailable:
                await asyncio.sleep(wait)
                wait *= 2
            else:
                return
        try:
            await self._put(key, data, compression)
        except ServerUnavailable as error:
            raise ResultError(str(error)) from None

    async def _put(self, key: str, body: bytes | AsyncIterator[bytes], compression: str) -> None:
        access = self._access
        try:
            async with access.http.put(
                self._url(key), params={"compression": compression}, data=body, headers=access.headers
            ) as response:
                if response.status != 204:
                    _raise_result_error(response.status, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerUnavailable(f"the server does not take a result: {error}") from error

    async def get(self, key: str) -> bytes:
        async with self.local(key) as path:
            return await asyncio.to_thread(path.read_bytes)

    async def read(self, key: str, start: int, end: int | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        headers = {"range": f"bytes={start}-{'' if end is None else end - 1}"}
        access = self._access
        try:
            async with access.http.get(self._url(key), headers={**access.headers, **headers}) as response:
                body = await response.read()
                if response.status != 206:
                    _raise_result_error(response.status, body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ResultError(f"the server does not give `{key}`: {error}") from error
        except ServerUnavailable as error:
            raise ResultError(str(error)) from None
        return body

    def scratch(self, execution_id: str) -> Path:
        path = self._folder / execution_id
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    async def put_file(self, key: str, path: Path, compression: str = "none") -> None:
        async def pieces() -> AsyncIterator[bytes]:
            with path.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, CHUNK):
                    yield piece

        try:
            await self._put(key, pieces(), compression)
        except ServerUnavailable as error:
            raise ResultError(str(error)) from None
        path.unlink(missing_ok=True)

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        bare_key = parse_result_key(split_store_key(key)[1])
        path = self.scratch(bare_key.execution_id) / f".fetched-{uuid4().hex}"
        try:
            await self._download(key, path)
            if await asyncio.to_thread(_hash_of, path) != bare_key.hash:
                raise ResultDamaged(f"`{key}` did not come from the server as it is stored", "try again")
            yield path
        finally:
            path.unlink(missing_ok=True)

    async def _download(self, key: str, path: Path) -> None:
        access = self._access
        try:
            async with access.http.get(self._url(key), headers=access.headers) as response:
                if response.status != 200:
                    _raise_result_error(response.status, await response.read())
                with path.open("wb") as file:
                    async for piece in response.content.iter_chunked(CHUNK):
                        await asyncio.to_thread(file.write, piece)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ResultError(f"the server does not give `{key}`: {error}") from error
        except ServerUnavailable as error:
            raise ResultError(str(error)) from None

    def _url(self, key: str) -> str:
        return f"{self._access.url}/api/worker/results/{quote(key, safe='/:')}"

    async def copy(self, key: str, to: str) -> None:
        async with self.local(key) as path:
            await self.put_file(to, path)

    async def keys(self, execution_id: str) -> list[str]:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def expire(self, key: str, since: str) -> int:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def delete(self, execution_id: str) -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def put_entry(self, name: str, entry: bytes, store: str = "") -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def entry(self, name: str, store: str = "") -> bytes | None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def entries(self, prefix: str = "", store: str = "") -> list[str]:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def delete_entry(self, name: str, store: str = "") -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def sweep(self, before: float) -> int:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def close(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


def _raise_result_error(status: int, body: bytes) -> None:
    error = _http_error(status, body)
    if status == 404 and b'"not_found"' in body:
        raise ResultMissing(str(error))
    if isinstance(error, ServerUnavailable):
        raise error
    raise ResultError(str(error))


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _not_offered() -> ResultError:
    return ResultError("a worker of a server has no artifacts", "run the playbook with `noetl run`")
