"""What is seen of one execution: its state, its events as columns, its runs in time, and why."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from noetl.engine.history.lookup import require_execution
from noetl.kernel.explain.explanation_parts import Explanation, StepExplanation
from noetl.ports.execution_views import (
    EvaluatedExpression,
    EvaluateRequest,
    EventNumber,
    ExecutionDiff,
    ExecutionExport,
    HistoryIndex,
    RunDetail,
    RunPage,
    VerificationAnswer,
)
from noetl.ports.http_api import MOST_AT_ONCE, Sequence
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.execution_endpoints import EXECUTION_PATH


class StateQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """After event `at`; the last one for 0."""

    at: EventNumber = 0


class ExplanationQuery(StateQuery, frozen=True, forbid_unknown_fields=True):
    """Of one `step`, also if nothing came to it; without, of the whole execution."""

    step: str = ""


class IndexQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Events above `after`."""

    after: Sequence = 0


class RunsQuery(StateQuery, frozen=True, forbid_unknown_fields=True):
    cursor: str = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] = MOST_AT_ONCE


class RunQuery(StateQuery, frozen=True, forbid_unknown_fields=True):
    """So many iterations, from that at `cursor` on."""

    cursor: str = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] = 100


async def _read_state(call: ApiCall) -> Answer:
    return Answer(await call.resources.views.state(await _execution_id(call), at=call.query.at))


async def _read_explanation(call: ApiCall) -> Answer:
    views, query = call.resources.views, call.query
    execution_id = await _execution_id(call)
    if query.step:
        return Answer(await views.step_explanation(execution_id, query.step, at=query.at))
    return Answer(await views.explanation(execution_id, at=query.at))


async def _read_index(call: ApiCall) -> Answer:
    return Answer(await call.resources.views.index(await _execution_id(call), after=call.query.after))


async def _read_runs(call: ApiCall) -> Answer:
    query: RunsQuery = call.query
    execution_id = await _execution_id(call)
    page = await call.resources.views.runs(execution_id, at=query.at, cursor=query.cursor, limit=query.limit)
    return Answer(page)


async def _read_run(call: ApiCall) -> Answer:
    query: RunQuery = call.query
    execution_id, run = await _execution_id(call), call.part("run")
    detail = await call.resources.views.run(
        execution_id, run, at=query.at, cursor=query.cursor, limit=query.limit
    )
    return Answer(detail)


async def _evaluate(call: ApiCall) -> Answer:
    body: EvaluateRequest = call.body
    execution_id = await _execution_id(call)
    value = await call.resources.views.evaluate(
        execution_id, body.expr, at=body.at, step=body.step, iteration=body.iteration
    )
    return Answer(value)


async def _diff_executions(call: ApiCall) -> Answer:
    execution_id = await _execution_id(call)
    other = await require_execution(call.resources.store, call.part("other"))
    return Answer(await call.resources.views.diff(execution_id, other.execution_id))


async def _verify(call: ApiCall) -> Answer:
    return Answer(await call.resources.views.verify(await _execution_id(call)))


async def _export(call: ApiCall) -> Answer:
    resources = call.resources
    return Answer(await resources.views.export(await _execution_id(call), resources.logs))


async def _execution_id(call: ApiCall) -> str:
    """That of the path, which is a whole one."""
    return (await call.execution()).execution_id


def _view(name: str, path: str, handler: Any, summary: str, *answers: Any, **more: Any) -> Endpoint:
    fields: dict[str, Any] = {
        "name": name,
        "method": "GET",
        "path": f"{EXECUTION_PATH}/{path}",
        "role": "viewer",
        "summary": summary,
        "handler": handler,
        "answers": answers,
        "codes": ("not_found", "invalid_request", "store_unavailable"),
    }
    return Endpoint(**{**fields, **more})


VIEW_ENDPOINTS = (
    _view(
        "read_state",
        "state",
        _read_state,
        "The state of an execution as it was after an event.",
        dict[str, Any],
        query=StateQuery,
    ),
    _view(
        "read_explanation",
        "explanation",
        _read_explanation,
        "Why an execution stands, or stood, where it does; with `step`, why that ran or did not.",
        Explanation,
        StepExplanation,
        query=ExplanationQuery,
    ),
    _view(
        "read_index",
        "index",
        _read_index,
        "The events of an execution as columns, with what each does to the marking.",
        HistoryIndex,
        query=IndexQuery,
    ),
    _view(
        "read_runs",
        "runs",
        _read_runs,
        "The runs of an execution in time.",
        RunPage,
        query=RunsQuery,
    ),
    _view(
        "read_run",
        "runs/{run}",
        _read_run,
        "A run with a page of its iterations, and their attempts.",
        RunDetail,
        query=RunQuery,
    ),
    _view(
        "evaluate_expression",
        "evaluate",
        _evaluate,
        "The value of an expression after an event, as the last run of a step sees it if one is named.",
        EvaluatedExpression,
        method="POST",
        body=EvaluateRequest,
        codes=("not_found", "invalid_request", "too_large", "store_unavailable"),
    ),
    _view(
        "diff_executions",
        "diff/{other}",
        _diff_executions,
        "Where two executions part, and what came out differently.",
        ExecutionDiff,
    ),
    _view(
        "export_execution",
        "export",
        _export,
        "All that there is to see of an execution, in one document.",
        ExecutionExport,
    ),
    _view(
        "verify_execution",
        "verify",
        _verify,
        "Decide an execution again and compare.",
        VerificationAnswer,
    ),
)
