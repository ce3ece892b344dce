"""What the start of an execution would do: its problems, its values, and what would wait for a worker."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from noetl.credentials.resolver import stored_names
from noetl.dsl.document.problem import Problem
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.catalog.preflight import unread_keys
from noetl.engine.history.execution_detail import document_problems
from noetl.events.bodies import PlaybookRequestEvaluated, WorkflowStarted
from noetl.kernel.plan import StepPlan
from noetl.loader import examine
from noetl.model.normalisation import normalise
from noetl.model.reference import unescape
from noetl.model.run_rows import ReadyRun
from noetl.model.timestamp import now_micros
from noetl.ports.http_api import StartExecution
from noetl.ports.page_api import PlanAnswer, PlannedTask
from noetl.server.engine_observer import problem_of_run
from noetl.server.http.problems import ApiProblem
from noetl.server.http.resources import ServerResources


def refused_plan(request: StartExecution, problem: ApiProblem) -> PlanAnswer:
    """Of a request that names nothing that could run."""
    return PlanAnswer(
        ok=False,
        error=problem.document(),
        path=request.path or "",
        version=request.version,
        hash=request.playbook_id or "",
        entry="",
        workload={},
        ctx={},
        credentials=[],
        waiting=[],
        problems=problem.problems,
    )


async def plan_of_document(
    resources: ServerResources,
    request: StartExecution,
    document: PlaybookDocument,
    version: int | None,
    problem: ApiProblem | None,
) -> PlanAnswer:
    """Of a valid document; `problem` says why it cannot run here, if so."""
    workload: dict[str, Any] = cast("dict[str, Any]", normalise(request.workload))
    ctx: dict[str, Any] = cast("dict[str, Any]", normalise(request.ctx))
    if problem is None:
        bodies = await resources.engine.rehearse(
            document.source, workload=workload, ctx=ctx, timeout=request.timeout, now=now_micros()
        )
        for body in bodies:
            if isinstance(body, PlaybookRequestEvaluated) and body.error is not None:
                problem = ApiProblem("refused", body.error.message, status=422)
            elif isinstance(body, WorkflowStarted):
                workload, ctx = unescape(body.workload), unescape(body.ctx)
    playbook = document.playbook
    problems = [
        *await _warnings(resources, document),
        *unread_keys(playbook, document.source.text, request.workload),
    ]
    return PlanAnswer(
        ok=problem is None,
        error=None if problem is None else problem.document(),
        path=playbook.metadata.path,
        version=version,
        hash=playbook.hash,
        entry=playbook.entry,
        workload=workload,
        ctx=ctx,
        credentials=sorted(stored_names(playbook)),
        waiting=[task for step in document.plan.by_number for task in _waiting(step, resources)],
        problems=[*(problem.problems if problem is not None else ()), *document_problems(problems)],
    )


async def _warnings(resources: ServerResources, document: PlaybookDocument) -> tuple[Problem, ...]:
    source = document.source
    read = partial(
        examine,
        source.text,
        source.name,
        dialect=source.dialect,
        allow_kinds=resources.playbooks.allow_kinds,
    )
    return (await asyncio.to_thread(read)).problems


def _waiting(plan: StepPlan, resources: ServerResources) -> Iterator[PlannedTask]:
    """The tasks of a step that no worker can take, as those stand that are connected."""
    workers = list(resources.plane.sessions)
    if not plan.step.tasks or not problem_of_run(ReadyRun(plan.pool, plan.kinds, 0), workers):
        return
    hint = (
        f"start a worker that serves `{plan.pool}` and has the kind; `noetl worker list` shows who is there"
    )
    for task in plan.step.tasks:
        needs = ReadyRun(plan.pool, (task.kind,), 0)
        if reason := problem_of_run(needs, workers):
            yield PlannedTask(step=plan.step.name, task=task.label, kind=task.kind, reason=reason, hint=hint)
