"""Stored values of what a worker has claimed: `GET` and `PUT /api/results/EXECUTION/KEY`, in pieces too."""

import asyncio
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from noetl.model.errors import ResultError
from noetl.ports.results import ResultMissing, ResultStore
from noetl.server.plane.plane_problem import plane_problem
from noetl.server.plane.sessions import WorkerSession
from noetl.server.result_body import RangeWrong, digest_header, result_response
from noetl.stores.results.result_key import is_result_key, key_in_store

_UPLOAD_NAME = re.compile(r"[0-9a-f]{32}")
_PIECE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class WorkerResults:
    """Reads and writes for sessions, only under keys of executions of which they own a run."""

    def __init__(
        self, results: Callable[[], ResultStore], session_of: Callable[[Request], WorkerSession | None]
    ) -> None:
        self._results = results
        self._session_of = session_of

    async def get(self, request: Request) -> Response:
        """The bytes under a key, or a range of them."""
        if (refusal := self._refuse(request)) is not None:
            return refusal
        try:
            return await result_response(self._results(), _key_of(request), request.headers.get("range", ""))
        except RangeWrong as error:
            return plane_problem(416, "invalid_request", str(error), error.headers)
        except ResultMissing as error:
            return plane_problem(404, "not_found", str(error))
        except ResultError as error:
            return plane_problem(503, "store_unavailable", str(error))

    async def put(self, request: Request) -> Response:
        """Keeps the bytes of the request under their key; durable when it is answered with 204.

        With `Content-Range` they are a piece: 202 until the last one. A piece may come again, from where it
        began before.
        """
        if (refusal := self._refuse(request)) is not None:
            return refusal
        try:
            return await self._take(request)
        except OSError as error:  # a full disk, for one: whoever sends it tries again
            text = f"the bytes cannot be kept: {error.strerror or error}"
            return plane_problem(503, "store_unavailable", text)

    async def _take(self, request: Request) -> Response:
        text = request.headers.get("content-range", "")
        piece = _PIECE.fullmatch(text)
        if text and piece is None:
            return plane_problem(422, "invalid_request", f"`Content-Range: {text}` is no piece of a body")
        name = request.query_params.get("upload", "") if piece else uuid4().hex
        if not _UPLOAD_NAME.fullmatch(name):
            return plane_problem(422, "invalid_request", "`upload` names what pieces belong to: 32 digits")
        upload = self._upload_file(request, name)
        start, total = (int(piece[1]), int(piece[3])) if piece else (0, -1)
        if start > _size_of(upload):
            return plane_problem(409, "conflict", f"{_size_of(upload)} bytes are here, not {start}")
        try:
            digest, size = await _receive(request, upload, start)
        except BaseException:
            if piece is None:
                upload.unlink(missing_ok=True)
            raise
        expected = request.headers.get("content-digest", "")
        if expected and digest_header(digest) != expected:
            await asyncio.to_thread(_truncate, upload, start)
            return plane_problem(422, "invalid_request", "the bytes are not those of `Content-Digest`")
        if size < total:
            return Response(status_code=202)
        try:
            return await self._keep(request, upload)
        finally:
            upload.unlink(missing_ok=True)

    async def _keep(self, request: Request, upload: Path) -> Response:
        key = _key_of(request)
        if await asyncio.to_thread(_hash_of, upload) != request.path_params["key"]:
            return plane_problem(422, "invalid_request", f"`{key}` is not the key of these bytes")
        try:
            await self._results().put_file(key, upload, request.query_params.get("compression", "none"))
        except ValueError as error:
            return plane_problem(422, "invalid_request", str(error))
        except ResultError as error:
            return plane_problem(503, "store_unavailable", str(error))
        return Response(status_code=204)

    def _upload_file(self, request: Request, name: str) -> Path:
        """Where pieces gather: nobody's are mixed with those of another session."""
        session = self._session_of(request)
        assert session is not None  # noqa: S101 - `_refuse` has looked
        folder = self._results().scratch(request.path_params["execution_id"])
        return folder / f".upload-{session.id}-{name}"

    def _refuse(self, request: Request) -> Response | None:
        session = self._session_of(request)
        if session is None:
            return plane_problem(404, "lost", "this session is over: register again")
        execution_id, digest = request.path_params["execution_id"], request.path_params["key"]
        if not session.owns_run_of(execution_id):
            return plane_problem(403, "forbidden", f"this worker has claimed nothing of {execution_id}")
        if not is_result_key(f"{execution_id}/{digest}"):
            return plane_problem(404, "not_found", f"`{execution_id}/{digest}` is not the key of a result")
        return None


def _key_of(request: Request) -> str:
    parts = request.path_params
    return key_in_store(request.query_params.get("store", ""), f"{parts['execution_id']}/{parts['key']}")


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _receive(request: Request, path: Path, start: int) -> tuple[str, int]:
    """The SHA-256 of what came, and how long the file is with it."""
    digest = hashlib.sha256()
    with path.open("r+b" if path.exists() else "xb") as file:
        file.seek(start)
        async for piece in request.stream():
            digest.update(piece)
            await asyncio.to_thread(file.write, piece)
        file.truncate()
        return digest.hexdigest(), file.tell()
