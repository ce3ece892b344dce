"""Results in an object store of NATS JetStream: `nats://HOST:PORT/BUCKET`."""

import asyncio
import base64
import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from noetl.ports.results import ResultError, StoredBody
from noetl.stores.nats_connection import (
    ANSWER_SECONDS,
    CHECK_ACCESS,
    NatsUrlWrong,
    connect_nats,
    import_nats,
    read_nats_credentials,
    split_nats_url,
)
from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.file_backend import translate_os_errors
from noetl.stores.results.remote_backend import RemoteBackend
from noetl.stores.results.result_store import BackendResultStore


class NatsResults(BackendResultStore):
    """A result store in one bucket. Raises ResultError."""

    def __init__(self, url: str, scratch: Path | None = None) -> None:
        super().__init__(NatsBackend(url, scratch, os.environ))


class NatsBackend(RemoteBackend):
    """Belongs to the running event loop. A connection that was lost is made anew by the next call."""

    def __init__(self, url: str, scratch: Path | None, environment: Mapping[str, str]) -> None:
        super().__init__(scratch)
        try:
            self._server, self._bucket = split_nats_url(url, "bucket")
        except NatsUrlWrong as error:
            raise ResultError(str(error), error.hint) from None
        self.location = f"{self._server}/{self._bucket}"
        self._stream = f"OBJ_{self._bucket}"
        self._options = read_nats_credentials(environment)
        self._nats = _import_nats()
        self._client: Any = None
        self._connecting = asyncio.Lock()
        self._last_complaint = ""
        """What the server said last; who waits for an answer hears nothing of it."""

    async def write(self, name: str, data: bytes) -> None:
        if not await self._holds(name, len(data), hashlib.sha256(data).digest()):
            with self._translate_errors(name, writing=True):
                await (await self._objects()).put(name, data)

    async def write_file(self, name: str, path: Path) -> None:
        size, digest = await asyncio.to_thread(_size_and_digest, path)
        if not await self._holds(name, size, digest):
            await self._put_file(name, path)

    async def _put_file(self, name: str, path: Path) -> None:
        with self._translate_errors(name, writing=True):
            objects = await self._objects()
            with path.open("rb") as file:
                await objects.put(name, file)

    async def _holds(self, name: str, size: int, digest: bytes) -> bool:
        try:
            info = await self._info(name)
        except BlobMissing:
            return False
        same: bool = (
            info.size == size and info.digest == f"SHA-256={base64.urlsafe_b64encode(digest).decode()}"
        )
        return same

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        return b"".join([piece async for piece in self._pieces(name, start, end)])

    async def size(self, name: str) -> int:
        byte_count: int = (await self._info(name)).size
        return byte_count

    async def read_file(self, name: str, to: Path) -> None:
        with translate_os_errors(to), to.open("wb") as file:
            async for piece in self._pieces(name, 0, None):
                await asyncio.to_thread(file.write, piece)

    async def copy(self, name: str, to: str) -> None:
        path = self.scratch(to.partition("/")[0]) / f".copy-{uuid4().hex}"
        try:
            await self.read_file(name, path)
            await self._put_file(to, path)
        finally:
            path.unlink(missing_ok=True)

    async def names(self, folder: str) -> list[str]:
        return sorted(name for name in await self._all_names() if name.startswith(f"{folder}/"))

    async def folders(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in await self._all_names()})

    async def blobs(self, folder: str) -> list[StoredBody]:
        names = await self.names(folder)
        with self._translate_errors(folder):
            times = [await self._last_written(self._name_subject(name)) for name in names]
        return [
            StoredBody(name, await self.size(name), time) for name, time in zip(names, times, strict=True)
        ]

    async def _all_names(self) -> list[str]:
        subjects = await self._subjects("M")
        return [base64.urlsafe_b64decode(subject.rpartition(".")[2]).decode() for subject in subjects]

    async def remove(self, names: list[str]) -> None:
        for name in names:
            try:
                info = await self._info(name)
            except BlobMissing:
                continue
            with self._translate_errors(name):
                # The chunks first: without what names them nobody would find them again.
                await self._purge(self._chunk_subject(info.nuid))
                await self._purge(self._name_subject(name))

    async def sweep(self, before: float) -> int:
        """Chunks without a name are what was left half-written."""
        removed = await super().sweep(before)
        chunks, names = await self._subjects("C"), await self._subjects("M")
        if len(chunks) <= len(names):  # as good as ever: then they need not be compared one by one
            return removed
        with self._translate_errors(self._bucket):
            named = {self._chunk_subject((await self._meta(subject))["nuid"]) for subject in names}
            for subject in set(chunks) - named:
                if await self._last_written(subject) < before:
                    await self._purge(subject)
                    removed += 1
        return removed

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _pieces(self, name: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to `end`. What is before them comes, too: there is no index."""
        info = await self._info(name)
        end = info.size if end is None else min(end, info.size)
        if start >= end:
            return
        with self._translate_errors(name):
            context = (await self._connected()).jetstream(timeout=ANSWER_SECONDS)
            chunks = await context.subscribe(self._chunk_subject(info.nuid), ordered_consumer=True)
            try:
                position = 0
                while position < end:
                    data = (await chunks.next_msg(timeout=ANSWER_SECONDS)).data
                    yield data[max(start - position, 0) : end - position]
                    position += len(data)
            finally:
                await chunks.unsubscribe()

    async def _info(self, name: str) -> Any:
        """Raises BlobMissing."""
        with self._translate_errors(name):
            return await (await self._objects()).get_info(name)

    async def _meta(self, subject: str) -> dict[str, Any]:
        answer = await self._ask("STREAM.MSG.GET", {"last_by_subj": subject})
        meta: dict[str, Any] = json.loads(base64.b64decode(answer["message"]["data"]))
        return meta

    async def _last_written(self, subject: str) -> float:
        answer = await self._ask("STREAM.MSG.GET", {"last_by_subj": subject})
        # Nanoseconds are more than Python reads.
        moment = re.sub(r"(\.\d{6})\d+", r"\1", answer["message"]["time"])
        return datetime.fromisoformat(moment).timestamp()

    async def _subjects(self, part: str) -> list[str]:
        """All subjects of names (`M`) or chunks (`C`) in the bucket."""
        subjects: list[str] = []
        with self._translate_errors(self._bucket):
            while True:
                question = {"subjects_filter": f"$O.{self._bucket}.{part}.>", "offset": len(subjects)}
                answer = await self._ask("STREAM.INFO", question)
                page = answer["state"].get("subjects") or {}
                subjects += page
                if not page or len(subjects) >= answer.get("total", 0):
                    return subjects

    async def _purge(self, subject: str) -> None:
        await self._ask("STREAM.PURGE", {"filter": subject})

    async def _ask(self, question: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """An answer of JetStream's own interface, of which the client has not all."""
        client = await self._connected()
        subject = f"$JS.API.{question}.{self._stream}"
        message = await client.request(subject, json.dumps(body).encode(), timeout=ANSWER_SECONDS)
        answer: dict[str, Any] = json.loads(message.data)
        if error := answer.get("error"):
            raise self._nats.js.errors.APIError.from_error(error)
        return answer

    def _chunk_subject(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    def _name_subject(self, name: str) -> str:
        return f"$O.{self._bucket}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"

    async def _objects(self) -> Any:
        from nats.js.object_store import ObjectStore  # noqa: PLC0415 - only who has such a bucket needs it

        # Not by the client's own `object_store`, which asks each time whether there is such a bucket.
        context = (await self._connected()).jetstream(timeout=ANSWER_SECONDS)
        return ObjectStore(name=self._bucket, stream=self._stream, js=context)

    async def _connected(self) -> Any:
        """Without attempts of its own at coming back: who wants something else waits or asks again."""
        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                await self.close()
                self._client = await connect_nats(self._server, self._options, self._hear_complaint)
            return self._client

    def _hear_complaint(self, message: str) -> None:
        self._last_complaint = message

    @contextmanager
    def _translate_errors(self, name: str, *, writing: bool = False) -> Iterator[None]:
        errors = self._nats.js.errors
        self._last_complaint = ""
        try:
            yield
        except errors.NoStreamResponseError:
            raise self._no_bucket() from None
        except errors.NotFoundError as error:
            if writing or getattr(error, "err_code", None) == _NO_SUCH_STREAM:
                raise self._no_bucket() from None
            raise BlobMissing(name) from None
        except (self._nats.errors.Error, OSError, TimeoutError) as error:
            reason = self._last_complaint or str(error).removeprefix("nats: ") or "it does not answer"
            raise ResultError(f"{self.location}: {reason}", CHECK_ACCESS) from None

    def _no_bucket(self) -> ResultError:
        message = f"{self.location}: there is no object store `{self._bucket}`"
        return ResultError(message, f"`nats object add {self._bucket}` makes it")


_NO_SUCH_STREAM = 10059


def _import_nats() -> Any:
    try:
        return import_nats()
    except ImportError:
        missing = ResultError("results in nats:// need nats-py", "pip install 'noetl[nats]'")
        missing.kind = "tool"
        raise missing from None


def _size_and_digest(path: Path) -> tuple[int, bytes]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.digest()
