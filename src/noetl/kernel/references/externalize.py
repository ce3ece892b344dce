"""An event without its large values: each is stored by itself, and a reference stands for it.

From an event that is too large though no value in it is, more of them leave, the largest first.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import structs

from noetl.events import bodies as of
from noetl.events.bodies import EventBody, Patch
from noetl.events.codec import encode
from noetl.kernel.plan import Plan, StepPlan
from noetl.kernel.references.reference_builder import Member, ReferenceBuilder, Room
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.server_reads import ENTIRE, NOTHING, Need
from noetl.kernel.state.execution_state import Blob
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import MARKER, encode_value, part_reference

T = TypeVar("T")

EVENT_MAX_BYTES = 262_144
"""What an event takes at most (000 §9.1), whatever is in it."""

_ALONE = 4_096
"""Values of so many bytes are stored each by itself, so that one can be had without the others."""
_PART = 256
"""Values of fewer bytes stay where they are: what stands for a part of something takes as many."""
_REFERENCE_COST = 640
"""About what a reference takes here."""
_PREVIEW = 128

_Manner: TypeAlias = Literal["alone", "small", "all", "entire"]
"""How values leave: one `alone`; the `small` ones of a mapping or list, or `all` of them, stored as one; or
the `entire` mapping with its names. In this order it is tried."""

_Slot: TypeAlias = tuple[int, int]
"""Of a value: the number of the mapping or list that holds it, in the order of the body, and its position."""
_Leaving: TypeAlias = frozenset[tuple[_Manner, _Slot]]

_MANNERS: tuple[_Manner, ...] = ("alone", "small", "all", "entire")


class _Departure(NamedTuple):
    """Values that can leave an event."""

    manner: _Manner
    slot: _Slot
    saving: int


class _FittingBuilder(ReferenceBuilder):
    """A builder for an event that is too large. `leaving` leaves it, `departures` is what else can.

    Its references are short: little is shown, and kept at hand, of what they stand for.
    """

    room = 2_048

    def __init__(self, execution_id: str, everything: Need, leaving: _Leaving) -> None:
        super().__init__(execution_id, everything)
        self.departures: list[_Departure] = []
        self._leaving = leaving
        self._holders = 0

    def externalize_value(self, value: Any, rules: ResultRules, need: Need = NOTHING) -> Any:
        return self._externalize_at((self._next_holder(), 0), value, rules, need)

    def externalize_members(self, members: Sequence[Member], rules: ResultRules) -> list[Any] | None:
        holder = self._next_holder()
        parts = self._parts_to_leave(holder, [_size(member.value) for member in members], rules)
        key = ""
        if parts:
            stored = {str(members[position].key): members[position].value for position in parts}
            key = self.store_bytes(encode_value(stored), rules)
        room = Room(self.room)
        inline = []
        for position, (name, value, need) in enumerate(members):
            if position in parts:
                path = (str(name),)
                extracted, absent = self.extract_parts(value, key, path, need, room)
                reference = part_reference(key, path, value, extracted=extracted, absent=absent)
                inline.append({**reference, **rules.reference_fields})
            else:
                inline.append(self._externalize_at((holder, position), value, rules, need))
        return inline

    def externalize_arguments(self, values: dict[str, Any], rules: ResultRules) -> dict[str, Any]:
        slot = (self._next_holder(), 0)
        if ("entire", slot) in self._leaving:
            return self.build_reference(values, encode_value(values), _shortened(rules), NOTHING)
        self.departures.append(_Departure("entire", slot, len(encode_value(values)) - _REFERENCE_COST))
        return super().externalize_arguments(values, rules)

    def _next_holder(self) -> int:
        self._holders += 1
        return self._holders

    def _parts_to_leave(self, holder: int, sizes: Sequence[int], rules: ResultRules) -> set[int]:
        """Which members leave together. What else could is noted."""
        slot = (holder, 0)
        every = {position for position, size in enumerate(sizes) if size > _PART}
        small = {position for position in every if sizes[position] < _ALONE}
        if ("all", slot) in self._leaving:
            return every

        def note(manner: _Manner, positions: set[int]) -> None:
            inline = (sizes[position] for position in positions)
            costs = (_REFERENCE_COST if size > rules.limit else size for size in inline)
            self.departures.append(_Departure(manner, slot, sum(costs) - _PART * len(positions)))

        note("all", every)
        if ("small", slot) in self._leaving:
            return small
        note("small", small)
        return set()

    def _externalize_at(self, slot: _Slot, value: Any, rules: ResultRules, need: Need) -> Any:
        if type(value) is dict and "tail" in value and MARKER in value:
            return self.shorten_tail(value, rules)
        size = _size(value)
        if ("alone", slot) in self._leaving or size > max(rules.limit, _PART):
            return self.build_reference(value, encode_value(value), _shortened(rules), need)
        if size >= _ALONE:
            self.departures.append(_Departure("alone", slot, size - _REFERENCE_COST))
        return value


def _fit_event(build: Callable[[_Leaving], tuple[T, int, list[_Departure]]]) -> T:
    """What `build` makes with as little leaving as brings it below the limit, or with all that can.

    It is given what leaves, and gives what it made, the size of that and what else could leave.
    """
    leaving: _Leaving = frozenset()
    while True:
        built, size, departures = build(leaving)
        # Of each manner the largest first; the next manner only when all of this one have left.
        candidates = sorted(
            (departure for departure in departures if departure.saving > 0),
            key=lambda departure: (_MANNERS.index(departure.manner), -departure.saving),
        )
        if size <= EVENT_MAX_BYTES or not candidates:
            return built
        _, first = next(groupby(candidates, attrgetter("manner")))
        excess = size - EVENT_MAX_BYTES
        for departure in first:
            leaving |= {(departure.manner, departure.slot)}
            excess -= departure.saving
            if excess <= 0:
                break


def _size(value: Any) -> int:
    """The bytes that a value takes; 0 if it cannot leave."""
    if not isinstance(value, str | dict | list) or (type(value) is dict and MARKER in value):
        return 0
    return len(encode_value(value))


def _shortened(rules: ResultRules) -> ResultRules:
    return rules._replace(preview=min(rules.preview, _PREVIEW))


def externalize(
    plan: Plan, step: StepPlan | None, body: EventBody, execution_id: str
) -> tuple[EventBody, list[Blob]]:
    """The body with references in place of large values, and what they stand for.

    `step` is that of the run which the body is about. A body without large values comes back itself.
    """
    externalizer = _EXTERNALIZERS.get(type(body))
    if externalizer is None:
        return body, []

    def build(builder: ReferenceBuilder) -> EventBody:
        fields = externalizer(_Externalization(plan, step, builder), body)
        changed = {name: value for name, value in fields.items() if value is not getattr(body, name)}
        return structs.replace(body, **changed) if changed else body

    def build_shorter(leaving: _Leaving) -> tuple[tuple[EventBody, ReferenceBuilder], int, list[_Departure]]:
        shorter = _FittingBuilder(execution_id, plan.needs.everything, leaving)
        built = build(shorter)
        return (built, shorter), len(encode(built)), shorter.departures

    builder = ReferenceBuilder(execution_id, plan.needs.everything)
    externalized = build(builder)
    if len(encode(externalized)) > EVENT_MAX_BYTES:
        externalized, builder = _fit_event(build_shorter)
    return externalized, list(builder.blobs.values())


class _Externalization:
    """What is known while the large values of one body are externalized."""

    def __init__(self, plan: Plan, step: StepPlan | None, builder: ReferenceBuilder) -> None:
        self.needs = plan.needs
        self.step = step
        self.rules = step.rules if step is not None else plan.rules
        self.value = builder.externalize_value
        self.entries = builder.externalize_entries
        self.arguments = builder.externalize_arguments
        self.members = builder.externalize_members
        self.items = builder.externalize_list

    def rules_of_task(self, label: str) -> ResultRules:
        return self.step.task_rules.get(label, self.rules) if self.step is not None else self.rules

    def patches(self, patches: tuple[Patch, ...], rules: ResultRules) -> tuple[Patch, ...]:
        members = [
            Member(position, patch.value, self._need_of_patch(patch))
            for position, patch in enumerate(patches)
        ]
        values = self.members(members, rules)
        if values is None:
            return patches
        return tuple(
            patch if value is patch.value else structs.replace(patch, value=value)
            for patch, value in zip(patches, values, strict=True)
        )

    def _need_of_patch(self, patch: Patch) -> Need:
        if patch.scope == "iter":
            return ENTIRE
        return (self.needs.ctx if patch.scope == "ctx" else self.needs.run).at(patch.path)

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
    externalized, own = context.entries(other_inputs, rules), context.arguments(args, rules)
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


def _loop_done_fields(context: _Externalization, body: of.LoopDone) -> dict[str, Any]:
    members = [Member(position, failure, NOTHING) for position, failure in enumerate(body.failures)]
    failures = context.members(members, context.rules)
    fields = _run_end_fields(context, body)
    return fields if failures is None else {**fields, "failures": tuple(failures)}


def _lease_fields(context: _Externalization, body: of.LeaseExpired) -> dict[str, Any]:
    return {"error": context.error(body.error, context.rules)}


def _forked_fields(context: _Externalization, body: of.ExecutionForked) -> dict[str, Any]:
    if body.workload is None:
        return {}
    return {"workload": context.entries(body.workload, context.rules, context.needs.workload)}


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
    of.LeaseExpired: _lease_fields,
    of.StepDone: _run_end_fields,
    of.StepFailed: _run_end_fields,
    of.StepCompletedByHand: _run_end_fields,
    of.StepSkipped: _patched_fields,
    of.LoopDone: _loop_done_fields,
    of.NextEvaluated: _patched_fields,
    of.CtxPatched: _patched_fields,
    of.ExecutionForked: _forked_fields,
    of.SignalReceived: _signal_fields,
}
