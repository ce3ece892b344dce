"""What holds after every event. Each function lists what is wrong, in words; nothing is right."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import assert_never

from noetl.events.event import Event
from noetl.kernel.state.agenda import AdmitToken, DeliverSignal, FireJoin, RouteRun
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_state import RunState
from noetl.kernel.state.shards import unbegun


def violations(state: ExecutionState) -> list[str]:
    """Everything that is wrong with a state."""
    return [
        *tokens_are_counted(state),
        *agenda_is_answerable(state),
        *runs_are_owned_once(state),
        *loops_are_in_order(state),
        *failed_runs_hold_back(state),
        *finished_means_still(state),
    ]


def tokens_are_counted(state: ExecutionState) -> Iterator[str]:
    """No count is negative, and the counts are those of the tokens and runs that there are."""
    pending: Counter[int] = Counter()
    joined: Counter[int] = Counter()
    for token in state.tokens.values():
        (joined if token.stage == "joined" else pending)[token.step] += 1
    runs = Counter(run.step.number for run in state.runs.values())
    for number in {*pending, *joined, *runs, *state.occupancy}:
        occupancy = state.occupancy.get(number)
        counts = (occupancy.pending, occupancy.joined, occupancy.runs) if occupancy else (0, 0, 0)
        if min(counts) < 0 or counts != (pending[number], joined[number], runs[number]):
            yield f"step {number} counts {counts}"
        if bool(state.occupied >> number & 1) != any(counts):
            yield f"the bit of step {number} is wrong"
    if state.waiting != sum(token.stage == "waiting" for token in state.tokens.values()):
        yield "waiting tokens are miscounted"
    for number, join in state.joins.items():
        if joined[number] != len(join.arrivals):
            yield f"the join of step {number} has {len(join.arrivals)} of {joined[number]} tokens"


def agenda_is_answerable(state: ExecutionState) -> Iterator[str]:
    """What must be decided exists."""
    for item in state.agenda:
        match item:
            case AdmitToken(token):
                answerable = token in state.tokens
            case RouteRun(run):
                answerable = run in state.runs
            case FireJoin(step):
                answerable = step in state.joins
            case DeliverSignal(signal):
                answerable = signal in state.listeners and signal in state.signals
            case _:
                assert_never(item)
        if not answerable:
            yield f"the agenda names {item.name}, which is not there"


def runs_are_owned_once(state: ExecutionState) -> Iterator[str]:
    """A run is ready, owned under one fence, suspended or over; and open ones are counted."""
    for run in state.runs.values():
        if (run.phase == "claimed") != (run.fence > 0) and not run.sharded:
            yield f"{run.id} is {run.phase} under fence {run.fence}"
        if run.claimable != (run.id in state.ready) and not run.step.routes_only:
            yield f"{run.id} is {run.phase} and stands in the wrong queue"
        if run.suspended != sum(frame.suspension is not None for frame in run.frames.values()):
            yield f"{run.id} miscounts what is suspended"
    if state.open_runs != sum(run.phase != "ended" for run in state.runs.values()):
        yield "open runs are miscounted"


def loops_are_in_order(state: ExecutionState) -> Iterator[str]:
    """Every iteration that began has ended or is open, and none began too early."""
    for run in state.runs.values():
        loop = run.loop
        if loop is None:
            continue
        begun = loop.succeeded + loop.failed + len(run.frames) + len(loop.redriven)
        if begun != loop.next - len(unbegun(run)) or loop.next > loop.total:
            yield f"{run.id} has lost an iteration"
        if max(len(run.frames), len(run.shards)) > loop.max_in_flight:
            yield f"{run.id} has more than {loop.max_in_flight} iterations in flight"
        yield from _shards_are_owned_once(run)


def _shards_are_owned_once(run: RunState) -> Iterator[str]:
    """Shards do not overlap, each iteration that is open is in one, and each owner has one."""
    if not run.sharded:
        return
    parts = sorted(run.shards.values(), key=lambda shard: shard.start)
    if any(before.end > after.start for before, after in pairwise(parts)):
        yield f"shards of {run.id} overlap"
    if sorted(index for shard in parts for index in shard.open) != sorted(run.frames):
        yield f"an open iteration of {run.id} is in no shard"
    for shard in parts:
        if not shard.start <= shard.next <= shard.end:
            yield f"shard {shard.start} of {run.id} is at {shard.next}"
        if (shard.phase == "claimed") != (run.leased_shards.get(shard.fence, -1) == shard.start):
            yield f"shard {shard.start} of {run.id} is {shard.phase} under fence {shard.fence}"
        if (shard.phase == "ready") != (str(shard.start) in run.ready_shards):
            yield f"shard {shard.start} of {run.id} is {shard.phase} and stands in the wrong queue"
    if run.phase != "ended" and (run.phase == "claimed") != bool(run.leased_shards):
        yield f"{run.id} is {run.phase} with {len(run.leased_shards)} owners"


def failed_runs_hold_back(state: ExecutionState) -> Iterator[str]:
    """The steps that count as live because a retry could open a run there are those of the failed runs."""
    bits = 0
    for run in state.failed_runs.values():
        bits |= run.step.bit
    if state.failing != (bits if state.holds_back else 0):
        yield "what failed holds back something else"


def finished_means_still(state: ExecutionState) -> Iterator[str]:
    """After the end nothing can run. Tokens stay for a retry alone, and after a limit what they demand."""
    if not state.over:
        return
    waits = state.tokens and not (state.status == "failed" and (state.failing or state.cut_short))
    if state.runs or state.ready or waits or (state.agenda and not state.cut_short):
        yield "the execution is over and something could still run"


def sequence_gaps(events: Iterable[Event]) -> Iterator[str]:
    """A history counts from 1 and leaves nothing out. That a run has one owner at a time, its fold says."""
    for expected, event in enumerate(events, 1):
        if event.seq != expected:
            yield f"event {event.seq} stands where {expected} belongs"
