"""What a server shows of one execution: its state, its events as columns, its runs in time, and why."""

from typing import Any
from urllib.parse import quote

from noetl.client.server_requests import ServerRequests
from noetl.kernel.explain.explanation_parts import Explanation, StepExplanation
from noetl.ports.execution_views import (
    EvaluatedExpression,
    EvaluateRequest,
    ExecutionDiff,
    ExecutionExport,
    HistoryIndex,
    RunDetail,
    RunPage,
    VerificationAnswer,
)


class ViewRequests(ServerRequests):
    """`at` is the number of an event: the execution is seen as it was after it; 0 is the last one."""

    async def state(self, execution_id: str, *, at: int = 0) -> dict[str, Any]:
        """Status, ctx, tokens and runs."""
        return await self._ask("GET", f"{execution_path(execution_id)}/state", dict[str, Any], {"at": at})

    async def explanation(self, execution_id: str, *, at: int = 0) -> Explanation:
        """Why it stands where it does."""
        return await self._ask("GET", f"{execution_path(execution_id)}/explanation", Explanation, {"at": at})

    async def step_explanation(self, execution_id: str, step: str, *, at: int = 0) -> StepExplanation:
        """Why a step ran, runs, waits, or was not reached."""
        path, query = f"{execution_path(execution_id)}/explanation", {"step": step, "at": at}
        return await self._ask("GET", path, StepExplanation, query)

    async def index(self, execution_id: str, *, after: int = 0) -> HistoryIndex:
        """The events above `after` as columns. To follow an execution, ask with `last`."""
        path = f"{execution_path(execution_id)}/index"
        return await self._ask("GET", path, HistoryIndex, {"after": after})

    async def runs(self, execution_id: str, *, at: int = 0, cursor: str = "", limit: int = 1_000) -> RunPage:
        """The runs in time, in the order in which they began."""
        query = {"at": at, "cursor": cursor, "limit": limit}
        return await self._ask("GET", f"{execution_path(execution_id)}/runs", RunPage, query)

    async def run_detail(
        self, execution_id: str, run: str, *, at: int = 0, cursor: str = "", limit: int = 100
    ) -> RunDetail:
        """One run with a page of its iterations, and their attempts."""
        path = f"{execution_path(execution_id)}/runs/{quote(run, safe='')}"
        return await self._ask("GET", path, RunDetail, {"at": at, "cursor": cursor, "limit": limit})

    async def evaluate(
        self, execution_id: str, expr: str, *, at: int = 0, step: str = "", iteration: int | None = None
    ) -> EvaluatedExpression:
        """The value of an expression; with `step`, as its last run sees it."""
        body = EvaluateRequest(expr=expr, at=at, step=step, iteration=iteration)
        return await self._ask(
            "POST", f"{execution_path(execution_id)}/evaluate", EvaluatedExpression, json=body
        )

    async def diff(self, execution_id: str, other: str) -> ExecutionDiff:
        """Where two executions part, and what came out differently."""
        path = f"{execution_path(execution_id)}/diff/{quote(other, safe='')}"
        return await self._ask("GET", path, ExecutionDiff)

    async def export(self, execution_id: str) -> ExecutionExport:
        """All that there is to see of it, in one document."""
        return await self._ask("GET", f"{execution_path(execution_id)}/export", ExecutionExport)

    async def verify(self, execution_id: str) -> VerificationAnswer:
        """What deciding all of it again shows."""
        return await self._ask("GET", f"{execution_path(execution_id)}/verify", VerificationAnswer)


def execution_path(execution_id: str) -> str:
    return f"/api/executions/{quote(execution_id, safe='')}"
