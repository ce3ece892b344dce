"""State from events, and snapshots of it as plain values."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.plan import Plan, StepPlan
from noetl.kernel.state.agenda import Agenda, OrderedSet, item_named
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, PendingEffects, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.run_state import ExecutionInputs, RunState, Shard
from noetl.kernel.state.shards import cut_out_shard
from noetl.kernel.state.variables import Variables

T = TypeVar("T")


def replay(plan: Plan, execution_id: str, events: Iterable[Event]) -> ExecutionState:
    """The state after these events, which begin with the first. Raises WrongSequence."""
    state = new_state(plan, execution_id)
    for event in events:
        evolve(state, event)
    return state


def dump_state(state: ExecutionState) -> dict[str, Any]:
    """The state as values that JSON knows; the playbook is named by its hash alone."""
    mappings = _Mappings()
    return {
        "format": STATE_FORMAT,
        "hash": state.plan.playbook.hash,
        "execution_id": state.execution_id,
        "workload": state.inputs.workload,
        "trace_id": state.inputs.trace_id,
        "state": _plain_state(state, mappings),
        "mappings": mappings.table,
    }


def _plain_state(state: ExecutionState, mappings: "_Mappings") -> dict[str, Any]:
    # The agenda is kept by the names of its items, in a form that is older than their types.
    bare = structs.replace(state, agenda=Agenda())
    plain: dict[str, Any] = msgspec.to_builtins(bare, str_keys=True, enc_hook=mappings.plain)
    plain["agenda"] = dict.fromkeys(state.agenda.names)
    return plain


def load_state(plan: Plan, data: dict[str, Any]) -> ExecutionState:
    """The state that was dumped. Raises WrongSequence for another format or playbook: replay instead."""
    if data["format"] != STATE_FORMAT or data["hash"] != plan.playbook.hash:
        raise WrongSequence("the snapshot is of another format or playbook")
    inputs = ExecutionInputs(data["execution_id"], data["workload"], data["trace_id"])
    state = _load(data, ExecutionState, plan, inputs)
    inputs.decider = state.decider
    return state


def encode_run(run: RunState, shard: Shard | None = None, keys: frozenset[str] | None = None) -> bytes:
    """A run as JSON, without playbook and workload: what a worker needs to go on.

    With `keys`, null stands for the values of other keys of `ctx`, which may be large. The keys stay, because
    how many ctx may have is limited, and so does its size.
    """
    mappings = _Mappings() if keys is None else _Mappings(run.ctx.values, keys)
    state = msgspec.json.encode(run_at_worker(run, shard), enc_hook=mappings.plain)  # it fills the table
    table = msgspec.json.encode(mappings.table)
    return b'{"state":%b,"mappings":%b,"decider":%d}' % (state, table, run.inputs.decider)


def encode_for_worker(run: RunState, shard: Shard | None = None) -> bytes:
    """The same, with those values of `ctx` that the step reads or writes."""
    return encode_run(run, shard, run.step.worker_ctx)


def run_at_worker(run: RunState, shard: Shard | None = None) -> RunState:
    """A run as its worker sees it: without what iterations gave, and for a shard without the others."""
    if shard is not None:
        return cut_out_shard(run, shard)
    if run.loop is None:
        return run
    loop = run.loop
    kept_frames = {index: loop.kept_frames[index] for index in loop.redriven}
    bare = structs.replace(
        loop, results=[], base=0, chunks=[], contributions={}, redone={}, kept_frames=kept_frames
    )
    return structs.replace(run, loop=bare)


def load_run(plan: Plan, inputs: ExecutionInputs, data: dict[str, Any]) -> RunState:
    """The run that was encoded, from the values that JSON gives."""
    inputs.decider = data["decider"]
    return _load(data, RunState, plan, inputs)


class _Mappings:
    """What runs have pinned is mostly one and the same ctx: it is written once."""

    def __init__(self, shortened: dict[str, Any] | None = None, keys: frozenset[str] = frozenset()) -> None:
        self.table: list[dict[str, Any]] = []
        self._shortened = shortened
        self._keys = keys
        self._known: dict[int, int] = {}  # by id: the state holds them all while it is dumped

    def plain(self, value: Any) -> Any:
        match value:
            case Variables():
                return [self._number(value.values), value.shared, value.size]
            case StepPlan():
                return value.name
            case Plan() | ExecutionInputs() | PendingEffects():
                return None
            case _:
                raise TypeError(f"a snapshot cannot hold {type(value).__name__}")

    def _number(self, values: dict[str, Any]) -> int:
        number = self._known.setdefault(id(values), len(self.table))
        if number == len(self.table):
            self.table.append(
                {key: value if key in self._keys else None for key, value in values.items()}
                if values is self._shortened
                else dict(values)
            )
        return number


def _load(data: dict[str, Any], kind: type[T], plan: Plan, inputs: ExecutionInputs) -> T:
    def restore(wanted: type, value: Any) -> Any:
        if wanted is Variables:
            number, shared, size = value
            return Variables(data["mappings"][number], shared=shared, size=size)
        if wanted == OrderedSet[str]:
            return OrderedSet.of(value)
        if wanted is Agenda:
            return Agenda.of(map(item_named, value))
        if wanted is StepPlan:
            return plan.by_name[value]
        if wanted is Plan:
            return plan
        if wanted is ExecutionInputs:
            return inputs
        if wanted is PendingEffects:
            return PendingEffects()
        raise TypeError(f"a snapshot cannot restore {wanted.__name__}")

    return msgspec.convert(data["state"], kind, str_keys=True, dec_hook=restore)
