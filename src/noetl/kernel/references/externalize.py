"""An event without its large values: each is stored by itself, and a reference stands for it."""

from collections.abc import Callable
from operator import is_not
from typing import Any

from msgspec import structs

from noetl.events import bodies as of
from noetl.events.bodies import EventBody, Patch
from noetl.kernel.plan import Plan, StepPlan
from noetl.kernel.references.reference_builder import ReferenceBuilder
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.server_reads import ENTIRE
from noetl.kernel.state.blobs import Blob
from noetl.model.outcome import ErrorInfo, Outcome


def externalize(
    plan: Plan, step: StepPlan | None, body: EventBody, execution_id: str
) -> tuple[EventBody, list[Blob]]:
    """The body with references in place of large values, and what they stand for.

    `step` is that of the run which the body is about. A body without large values comes back itself.
    """
    externalizer = _EXTERNALIZERS.get(type(body))
    if externalizer is None:
        return body, []
    context = _Externalization(plan, step, execution_id)
    fields = externalizer(context, body)
    changed = {name: value for name, value in fields.items() if value is not getattr(body, name)}
    if not changed:
        return body, []
    return structs.replace(body, **changed), list(context.builder.blobs.values())


class _Externalization:
    """What is known while the large values of one body are externalized."""

    def __init__(self, plan: Plan, step: StepPlan | None, execution_id: str) -> None:
        self.needs = plan.needs
        self.step = step
        self.rules = step.rules if step is not None else plan.rules
        self.builder = ReferenceBuilder(execution_id, plan.needs.everything)
        self.value = self.builder.externalize_value
        self.entries = self.builder.externalize_entries
        self.items = self.builder.externalize_list

    def rules_of_task(self, label: str) -> ResultRules:
        return self.step.task_rules.get(label, self.rules) if self.step is not None else self.rules

    def patches(self, patches: tuple[Patch, ...], rules: ResultRules) -> tuple[Patch, ...]:
        externalized = tuple(self._patch(patch, rules) for patch in patches)
        return externalized if any(map(is_not, externalized, patches)) else patches

    def _patch(self, patch: Patch, rules: ResultRules) -> Patch:
        need = ENTIRE
        if patch.scope != "iter":
            need = (self.needs.ctx if patch.scope == "ctx" else self.needs.run).at(patch.path)
        value = self.value(patch.value, rules, need)
        return patch if value is patch.value else structs.replace(patch, value=value)

    def outcome(self, outcome: Outcome, rules: ResultRules) -> Outcome:
        result = self.value(outcome.result, rules, self.needs.result)
        error = self.error(outcome.error, rules)
        helpers = self.entries(outcome.helpers, rules)
        if result is outcome.result and error is outcome.error and helpers is outcome.helpers:
            return outcome
        return structs.replace(outcome, result=result, error=error, helpers=helpers)

    def error(self, error: ErrorInfo | None, rules: ResultRules) -> ErrorInfo | None:
        if error is None:
            return None
        details = self.entries(error.details, rules, ENTIRE)
        return error if details is error.details else structs.replace(error, details=details)


def _start_fields(context: _Externalization, body: Any) -> dict[str, Any]:
    return {
        "workload": context.entries(body.workload, context.rules, context.needs.workload),
        "ctx": context.entries(body.ctx, context.rules, context.needs.ctx),
    }


def _args_fields(context: _Externalization, body: Any) -> dict[str, Any]:
    return {"args": context.entries(body.args, context.rules, context.needs.args)}


def _task_started_fields(context: _Externalization, body: of.TaskStarted) -> dict[str, Any]:
    rules = context.rules_of_task(body.task)
    if not isinstance(body.input, dict):
        return {"input": context.value(body.input, rules)}
    args = body.input.get("args")
    if not isinstance(args, dict):
        return {"input": context.entries(body.input, rules)}
    other_inputs = {key: value for key, value in body.input.items() if key != "args"}
    externalized, own = context.entries(other_inputs, rules), context.entries(args, rules)
    unchanged = externalized is other_inputs and own is args
    return {"input": body.input if unchanged else {**externalized, "args": own}}


def _task_processed_fields(context: _Externalization, body: of.TaskProcessed) -> dict[str, Any]:
    rules = context.rules_of_task(body.task)
    return {
        "outcome": context.outcome(body.outcome, rules),
        "patches": context.patches(body.patches, rules),
        "prev": context.value(body.prev, rules),
        "error": context.error(body.error, rules),
    }


def _loop_started_fields(context: _Externalization, body: of.LoopStarted) -> dict[str, Any]:
    items = body.items
    return {"items": context.items(items, context.rules) if isinstance(items, list) else items}


def _iteration_completed_fields(context: _Externalization, body: of.LoopIterationCompleted) -> dict[str, Any]:
    return {
        "result": context.value(body.result, context.rules, context.needs.result),
        "error": context.error(body.error, context.rules),
        "contributions": context.patches(body.contributions, context.rules),
    }


def _resumed_fields(context: _Externalization, body: of.RunResumed) -> dict[str, Any]:
    payload = body.payload
    if body.reason == "child" and isinstance(payload, dict):
        # Which child ended and how is read without fetching anything, however small the limit is.
        heavy = {key: value for key, value in payload.items() if key not in ("execution_id", "status")}
        externalized = context.entries(heavy, context.rules, ENTIRE)
        return {"payload": payload if externalized is heavy else {**payload, **externalized}}
    return {"payload": context.value(payload, context.rules, ENTIRE)}


def _signal_fields(context: _Externalization, body: of.SignalReceived) -> dict[str, Any]:
    return {"payload": context.value(body.payload, context.rules, ENTIRE)}


def _run_end_fields(context: _Externalization, body: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"patches": context.patches(body.patches, context.rules)}
    if isinstance(body, of.StepFailed):
        fields["error"] = context.error(body.error, context.rules)
    else:
        fields["result"] = context.value(body.result, context.rules, context.needs.result)
    return fields


def _patched_fields(context: _Externalization, body: Any) -> dict[str, Any]:
    return {"patches": context.patches(body.patches, context.rules)}


def _execution_end_fields(context: _Externalization, body: of.PlaybookProcessed) -> dict[str, Any]:
    return {
        "result": context.value(body.result, context.rules),
        "error": context.error(body.error, context.rules),
    }


_EXTERNALIZERS: dict[type, Callable[[_Externalization, Any], dict[str, Any]]] = {
    of.PlaybookExecutionRequested: _start_fields,
    of.WorkflowStarted: _start_fields,
    of.PlaybookProcessed: _execution_end_fields,
    of.TokenEnqueued: _args_fields,
    of.StepScheduled: _args_fields,
    of.TaskStarted: _task_started_fields,
    of.TaskProcessed: _task_processed_fields,
    of.LoopStarted: _loop_started_fields,
    of.LoopIterationCompleted: _iteration_completed_fields,
    of.RunResumed: _resumed_fields,
    of.StepDone: _run_end_fields,
    of.StepFailed: _run_end_fields,
    of.LoopDone: _run_end_fields,
    of.NextEvaluated: _patched_fields,
    of.CtxPatched: _patched_fields,
    of.SignalReceived: _signal_fields,
}
