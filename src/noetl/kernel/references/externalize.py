"""An event without its large values: each is stored by itself, and a reference stands for it."""

from collections.abc import Callable
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

    `step` is that of the run which the body is about. A body that is light already comes back itself.
    """
    lightener = _LIGHTENERS.get(type(body))
    if lightener is None:
        return body, []
    light = _Light(plan, step, execution_id)
    fields = lightener(light, body)
    changed = {name: value for name, value in fields.items() if value is not getattr(body, name)}
    if not changed:
        return body, []
    return structs.replace(body, **changed), list(light.keeper.blobs.values())


class _Light:
    """What is known while one body is made light."""

    def __init__(self, plan: Plan, step: StepPlan | None, execution_id: str) -> None:
        self.needs = plan.needs
        self.step = step
        self.rules = step.rules if step is not None else plan.rules
        self.keeper = ReferenceBuilder(execution_id, plan.needs.everything)

    def of_task(self, label: str) -> ResultRules:
        return self.step.task_rules.get(label, self.rules) if self.step is not None else self.rules

    def patches(self, patches: tuple[Patch, ...], rules: ResultRules) -> tuple[Patch, ...]:
        found = tuple(self._patch(patch, rules) for patch in patches)
        return found if any(map(_differ, found, patches)) else patches

    def _patch(self, patch: Patch, rules: ResultRules) -> Patch:
        need = ENTIRE
        if patch.scope != "iter":
            need = (self.needs.ctx if patch.scope == "ctx" else self.needs.run).at(patch.path)
        value = self.keeper.value(patch.value, rules, need)
        return patch if value is patch.value else structs.replace(patch, value=value)

    def outcome(self, outcome: Outcome, rules: ResultRules) -> Outcome:
        result = self.keeper.value(outcome.result, rules, self.needs.result)
        error = self.error(outcome.error, rules)
        helpers = self.keeper.entries(outcome.helpers, rules)
        if result is outcome.result and error is outcome.error and helpers is outcome.helpers:
            return outcome
        return structs.replace(outcome, result=result, error=error, helpers=helpers)

    def error(self, error: ErrorInfo | None, rules: ResultRules) -> ErrorInfo | None:
        if error is None:
            return None
        details = self.keeper.entries(error.details, rules, ENTIRE)
        return error if details is error.details else structs.replace(error, details=details)


def _differ(one: object, other: object) -> bool:
    return one is not other


def _begun(light: _Light, body: Any) -> dict[str, Any]:
    return {
        "workload": light.keeper.entries(body.workload, light.rules, light.needs.workload),
        "ctx": light.keeper.entries(body.ctx, light.rules, light.needs.ctx),
    }


def _args(light: _Light, body: Any) -> dict[str, Any]:
    return {"args": light.keeper.entries(body.args, light.rules, light.needs.args)}


def _task_started(light: _Light, body: of.TaskStarted) -> dict[str, Any]:
    rules = light.of_task(body.task)
    if not isinstance(body.input, dict):
        return {"input": light.keeper.value(body.input, rules)}
    args = body.input.get("args")
    if not isinstance(args, dict):
        return {"input": light.keeper.entries(body.input, rules)}
    rest = {key: value for key, value in body.input.items() if key != "args"}
    lighter, own = light.keeper.entries(rest, rules), light.keeper.entries(args, rules)
    unchanged = lighter is rest and own is args
    return {"input": body.input if unchanged else {**lighter, "args": own}}


def _task_processed(light: _Light, body: of.TaskProcessed) -> dict[str, Any]:
    rules = light.of_task(body.task)
    return {
        "outcome": light.outcome(body.outcome, rules),
        "patches": light.patches(body.patches, rules),
        "prev": light.keeper.value(body.prev, rules),
        "error": light.error(body.error, rules),
    }


def _loop_started(light: _Light, body: of.LoopStarted) -> dict[str, Any]:
    items = body.items
    return {"items": light.keeper.chunked(items, light.rules) if isinstance(items, list) else items}


def _iteration_completed(light: _Light, body: of.LoopIterationCompleted) -> dict[str, Any]:
    return {
        "result": light.keeper.value(body.result, light.rules, light.needs.result),
        "error": light.error(body.error, light.rules),
        "contributions": light.patches(body.contributions, light.rules),
    }


def _resumed(light: _Light, body: of.RunResumed) -> dict[str, Any]:
    payload = body.payload
    if body.reason == "child" and isinstance(payload, dict):
        # Which child ended and how is read without fetching anything, however small the limit is.
        heavy = {key: value for key, value in payload.items() if key not in ("execution_id", "status")}
        lighter = light.keeper.entries(heavy, light.rules, ENTIRE)
        return {"payload": payload if lighter is heavy else {**payload, **lighter}}
    return {"payload": light.keeper.value(payload, light.rules, ENTIRE)}


def _signal(light: _Light, body: of.SignalReceived) -> dict[str, Any]:
    return {"payload": light.keeper.value(body.payload, light.rules, ENTIRE)}


def _ended(light: _Light, body: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"patches": light.patches(body.patches, light.rules)}
    if isinstance(body, of.StepFailed):
        found["error"] = light.error(body.error, light.rules)
    else:
        found["result"] = light.keeper.value(body.result, light.rules, light.needs.result)
    return found


def _patched(light: _Light, body: Any) -> dict[str, Any]:
    return {"patches": light.patches(body.patches, light.rules)}


def _over(light: _Light, body: of.PlaybookProcessed) -> dict[str, Any]:
    return {
        "result": light.keeper.value(body.result, light.rules),
        "error": light.error(body.error, light.rules),
    }


_LIGHTENERS: dict[type, Callable[[_Light, Any], dict[str, Any]]] = {
    of.PlaybookExecutionRequested: _begun,
    of.WorkflowStarted: _begun,
    of.PlaybookProcessed: _over,
    of.TokenEnqueued: _args,
    of.StepScheduled: _args,
    of.TaskStarted: _task_started,
    of.TaskProcessed: _task_processed,
    of.LoopStarted: _loop_started,
    of.LoopIterationCompleted: _iteration_completed,
    of.RunResumed: _resumed,
    of.StepDone: _ended,
    of.StepFailed: _ended,
    of.LoopDone: _ended,
    of.NextEvaluated: _patched,
    of.CtxPatched: _patched,
    of.SignalReceived: _signal,
}
