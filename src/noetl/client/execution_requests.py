"""The executions of a server: started, looked at, steered."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from noetl.client.server_requests import (
    ANSWER_SECONDS,
    ServerUnreachable,
    sse_data,
)
from noetl.client.view_requests import ViewRequests, execution_path
from noetl.ports.execution_views import ForkPreview, ReopenPreview, ResultRows
from noetl.ports.http_api import (
    BulkAnswer,
    EventPage,
    ExecutionDetail,
    ExecutionItems,
    FailureChain,
    LogPage,
    OperationAnswer,
    StartedBatch,
    StartedExecution,
    StartExecution,
    StartExecutions,
)
from noetl.ports.page_api import PlanAnswer

LONGEST_WAIT = 60.0
"""Seconds of one request that waits for the end of an execution; it is repeated as often as necessary."""
_RECONNECT_SECONDS = 1.0
_ENDED = ("completed", "failed", "cancelled")

T = TypeVar("T")

InlineDocument: TypeAlias = str | dict[str, Any]


class ExecutionRequests(ViewRequests):
    async def start(self, request: StartExecution) -> StartedExecution:
        """Starts an execution. With an idempotency key it is safe to ask again."""
        return await self._ask("POST", "/api/executions", StartedExecution, json=request)

    async def plan(self, request: StartExecution) -> PlanAnswer:
        """What a start would do, and what is wrong with it; nothing is recorded."""
        return await self._ask("POST", "/api/executions", PlanAnswer, {"dry_run": 1}, json=request)

    async def run(self, request: StartExecution, *, timeout: float | None = None) -> ExecutionDetail:
        """`start` and `wait`: an execution at its end, or as it is after so many seconds.

        One that is over within a minute takes one request.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        # Without any the answer would say less.
        wait = LONGEST_WAIT if timeout is None else max(0.001, min(timeout, LONGEST_WAIT))
        detail = await self._ask(
            "POST",
            "/api/executions",
            ExecutionDetail,
            {"wait": wait},
            json=request,
            seconds=ANSWER_SECONDS + wait,
        )
        if detail.status in _ENDED:
            return detail
        left = None if timeout is None else max(0.0, timeout - (loop.time() - began))
        return await self.wait(detail.execution_id, timeout=left)

    async def start_many(self, requests: list[StartExecution]) -> StartedBatch:
        """Up to 1,000 at once; a verdict for each, in their order."""
        return await self._ask(
            "POST", "/api/executions", StartedBatch, json=StartExecutions(executions=requests)
        )

    async def list(
        self,
        *,
        prefix: str = "",
        status: tuple[str, ...] = (),
        path: str = "",
        labels: Mapping[str, str] | None = None,
        since: str = "",
        until: str = "",
        version: int | None = None,
        error_kind: str = "",
        q: str = "",
        parent: str = "",
        roots: bool = False,
        cursor: str = "",
        limit: int = 100,
    ) -> ExecutionItems:
        """Executions, the newest first; `prefix` begins their id, `since` and `until` are ISO 8601.

        `version` is one of the whole `path`; `q` stands in id, path, labels or the message of the error.
        """
        query: dict[str, Any] = {
            "id": prefix,
            "status": status,
            "path": path,
            "since": since,
            "until": until,
            "version": version or "",
            "error_kind": error_kind,
            "q": q,
            "parent": parent,
            "cursor": cursor,
        }
        query["label"] = tuple(f"{name}={value}" for name, value in (labels or {}).items())
        query |= {"roots": "true" if roots else "", "cursor": cursor, "limit": limit}
        return await self._ask("GET", "/api/executions", ExecutionItems, query)

    async def show(self, execution_id: str, *, wait: float = 0.0) -> ExecutionDetail:
        """An execution as it is, or within `wait` seconds at its end."""
        path, query = execution_path(execution_id), {"wait": wait or ""}
        return await self._ask("GET", path, ExecutionDetail, query, seconds=ANSWER_SECONDS + wait)

    async def wait(self, execution_id: str, *, timeout: float | None = None) -> ExecutionDetail:
        """An execution at its end, or as it is after so many seconds."""
        deadline = asyncio.get_running_loop().time() + timeout if timeout is not None else None
        while True:
            left = LONGEST_WAIT
            if deadline is not None:
                left = min(left, deadline - asyncio.get_running_loop().time())
            detail = await self.show(execution_id, wait=max(0.0, left))
            if detail.status in _ENDED or left < LONGEST_WAIT:
                return detail

    async def events(
        self,
        execution_id: str,
        *,
        after: int = 0,
        before: int | None = None,
        fields: tuple[str, ...] = (),
        limit: int = 1_000,
    ) -> EventPage:
        """Those above `after`, or those below `before`, the newest first; of each only the fields, if any."""
        query: dict[str, Any] = {"after": after or "", "before": "" if before is None else before}
        query |= {"fields": ",".join(fields), "limit": limit}
        return await self._ask("GET", f"{execution_path(execution_id)}/events", EventPage, query)

    async def stream(self, execution_id: str, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Envelopes as they come, each once, to the end of the execution.

        Where the connection breaks it is made again, and goes on after the last event.
        """
        path = f"{execution_path(execution_id)}/stream"
        failures = 0
        while True:
            try:
                async with self._request("GET", path, headers={"Last-Event-ID": str(after)}) as answer:
                    if answer.status == 204:
                        return
                    async for data in sse_data(answer):
                        envelope = msgspec.json.decode(data)
                        after, failures = envelope["seq"], 0
                        yield envelope
            except ServerUnreachable:
                failures += 1
                if failures > 3:
                    raise
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def failures(self, execution_id: str) -> FailureChain:
        """How it failed, then the children that failed it, down to the lowest."""
        return await self._ask("GET", f"{execution_path(execution_id)}/failures", FailureChain)

    async def logs(
        self, execution_id: str, *, step: str = "", task: str = "", after: str = "", limit: int = 10_000
    ) -> LogPage:
        """What tasks wrote so far, behind the cursor `after`."""
        path = f"{execution_path(execution_id)}/logs"
        query = {"step": step, "task": task, "after": after, "limit": limit}
        return await self._ask("GET", path, LogPage, query)

    async def follow_logs(
        self, execution_id: str, *, step: str = "", task: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        """What tasks write, as they do, to the end of the execution."""
        path, query = f"{execution_path(execution_id)}/logs", {"step": step, "task": task}
        async with self._request("GET", path, query, headers={"Accept": "text/event-stream"}) as answer:
            async for data in sse_data(answer):
                yield msgspec.json.decode(data)

    async def result(self, reference: Mapping[str, Any], *, start: int = 0, end: int | None = None) -> bytes:
        """The bytes that a reference stands for, or those from `start` up to `end`."""
        path, store = _result_path(reference)
        headers = {}
        if start or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        async with self._request("GET", path, {"store": store}, headers=headers) as answer:
            return await answer.read()

    async def result_rows(
        self, reference: Mapping[str, Any], *, path: tuple[str, ...] = (), offset: int = 0, limit: int = 100
    ) -> ResultRows:
        """Some rows of what a reference stands for, or of what lies at a path in it."""
        address, store = _result_path(reference)
        query = {"store": store, "rows": offset, "limit": limit, "path": path}
        return await self._ask("GET", address, ResultRows, query)

    async def cancel(self, execution_id: str, reason: str = "") -> OperationAnswer:
        return await self._operate(execution_id, "cancel", {"reason": reason})

    async def pause(self, execution_id: str) -> OperationAnswer:
        return await self._operate(execution_id, "pause", {})

    async def resume(self, execution_id: str) -> OperationAnswer:
        return await self._operate(execution_id, "resume", {})

    async def signal(
        self,
        execution_id: str,
        name: str,
        payload: Any = True,  # noqa: FBT002 - a value like others
        *,
        wait: str = "",
    ) -> OperationAnswer:
        """Sends a signal; `wait` names the task run that gets it (see `waits`)."""
        return await self._operate(execution_id, "signal", {"name": name, "payload": payload, "wait": wait})

    async def complete(self, execution_id: str, step: str, result: Any = None) -> OperationAnswer:
        """Ends what is stuck at a step, or failed there, as done with this result."""
        return await self._operate(execution_id, "complete", {"step": step, "result": result})

    async def skip(self, execution_id: str, step: str) -> OperationAnswer:
        """Ends what is stuck at a step, or failed there, without a result."""
        return await self._operate(execution_id, "skip", {"step": step})

    async def retry(
        self,
        execution_id: str,
        *,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> OperationAnswer:
        """Goes on with a failed execution; with a repaired document, or another version of its playbook."""
        body = {"playbook": playbook, "version": version, "dialect": dialect}
        return await self._operate(execution_id, "retry", body)

    async def redrive(
        self,
        execution_id: str,
        step: str = "",
        *,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> OperationAnswer:
        """Runs the failed iterations of ended loops again, of those at `step` if one is named."""
        body = {"step": step, "playbook": playbook, "version": version, "dialect": dialect}
        return await self._operate(execution_id, "redrive", body)

    async def fork(
        self,
        execution_id: str,
        at: int,
        *,
        workload: Mapping[str, Any] | None = None,
        ctx: Mapping[str, Any] | None = None,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> OperationAnswer:
        """A new execution with the history of another one up to event `at`."""
        body: dict[str, Any] = {"at": at, "workload": workload, "ctx": ctx}
        body |= {"playbook": playbook, "version": version, "dialect": dialect}
        return await self._operate(execution_id, "fork", body)

    async def preview_fork(
        self,
        execution_id: str,
        at: int,
        *,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> ForkPreview:
        """What a fork at event `at` would keep, and what would run again."""
        body = {"at": at, "playbook": playbook, "version": version, "dialect": dialect}
        return await self._preview(execution_id, "fork", ForkPreview, body)

    async def preview_retry(
        self,
        execution_id: str,
        *,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> ReopenPreview:
        """What a retry would open again."""
        body = {"playbook": playbook, "version": version, "dialect": dialect}
        return await self._preview(execution_id, "retry", ReopenPreview, body)

    async def preview_redrive(
        self,
        execution_id: str,
        step: str = "",
        *,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> ReopenPreview:
        """What a redrive would open again."""
        body = {"step": step, "playbook": playbook, "version": version, "dialect": dialect}
        return await self._preview(execution_id, "redrive", ReopenPreview, body)

    async def _preview(
        self, execution_id: str, verb: str, answer_type: type[T], body: Mapping[str, Any]
    ) -> T:
        values = {name: value for name, value in body.items() if value is not None}
        path = f"{execution_path(execution_id)}/{verb}"
        return await self._ask("POST", path, answer_type, {"dry_run": "true"}, json=values)

    async def bulk(
        self,
        do: str,
        where: Mapping[str, Any],
        *,
        everything: bool = False,
        dry_run: bool = False,
        reason: str = "",
        signal: str = "",
        payload: Any = True,
    ) -> BulkAnswer:
        """Cancels, retries or signals all that match, up to 1,000; `everything` is for an empty `where`."""
        details = {"reason": reason, "signal": signal, "payload": payload}
        body = {"do": do, "where": where, "all": everything, "dry_run": dry_run, **details}
        return await self._ask("POST", "/api/executions/bulk", BulkAnswer, json=body)

    async def _operate(self, execution_id: str, verb: str, body: Mapping[str, Any]) -> OperationAnswer:
        values = {name: value for name, value in body.items() if value is not None}
        return await self._ask("POST", f"{execution_path(execution_id)}/{verb}", OperationAnswer, json=values)


def _result_path(reference: Mapping[str, Any]) -> tuple[str, str]:
    """Where the bytes are had, and the name of their store."""
    store, _, key = str(reference["key"]).rpartition(":")
    execution_id, _, name = key.partition("/")
    return f"/api/results/{quote(execution_id, safe='')}/{quote(name.partition('#')[0], safe='')}", store
