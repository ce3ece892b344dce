"""Shards of a distributed loop: ranges of iterations that are claimed by themselves (semantics §8).

Which there are follows from the events of the run, so that opening one is no event: ranges in order, as many
as may be in flight, none beyond the loop's window.
"""

from msgspec.structs import replace

from noetl.kernel.errors import WrongSequence
from noetl.kernel.state.agenda import OrderedSet
from noetl.kernel.state.run_state import LoopState, Phase, RunState, Shard


def shard_at(run: RunState, index: int) -> Shard:
    """The shard that an iteration belongs to. Raises WrongSequence."""
    loop = require_loop(run)
    try:
        return run.shards[index - index % loop.shard_size]
    except KeyError as missing:
        raise WrongSequence(f"iteration {index} of {run.id} is in no open shard") from missing


def require_loop(run: RunState) -> LoopState:
    if run.loop is None:
        raise WrongSequence(f"{run.id} has no loop that has started")
    return run.loop


def can_begin(run: RunState, shard: Shard) -> bool:
    """Whether the next iteration of a shard may begin: not before the last has ended, nor after a failure."""
    loop = require_loop(run)
    return not shard.open and shard.next < shard.end and loop.broken < 0


def open_shards(run: RunState) -> None:
    """As many as may be open; each waits for a worker."""
    loop, policy = require_loop(run), run.step.step.loop
    window = policy.window if policy is not None else 1
    while loop.broken < 0 and loop.next < loop.total and len(run.shards) < loop.max_in_flight:
        end = min(loop.next + loop.shard_size, loop.total)
        if run.shards and end > loop.low + window:
            break
        run.shards[loop.next] = Shard(loop.next, end, loop.next)
        run.ready_shards.add(str(loop.next))
        loop.next = end
    _settle_phase(run)


def claim_shard(run: RunState, shard: Shard, fence: int) -> None:
    shard.reported = 0
    _move(run, shard, "claimed", fence)


def free_shard(run: RunState, shard: Shard) -> None:
    """Nobody owns it any more, or what it waited for has come."""
    _move(run, shard, "ready")
    settle_shard(run, shard)


def settle_shard(run: RunState, shard: Shard) -> None:
    """After something happened in it: nobody owns it while its iteration waits; after its last it ends."""
    if _waits(run, shard):
        _move(run, shard, "suspended")
    elif require_loop(run).broken >= 0:
        _end_idle_shards(run)
    elif not shard.open and shard.next >= shard.end:
        _move(run, shard, "ended")
        del run.shards[shard.start]
        open_shards(run)


def _end_idle_shards(run: RunState) -> None:
    """The loop has failed: what has begun goes on, nothing else does. What is left is kept for a retry."""
    for shard in run.shards.values():
        if not shard.open:
            _move(run, shard, "ended")


def end_shards(run: RunState) -> None:
    """The run is over, whatever was under way in it."""
    for shard in run.shards.values():
        _move(run, shard, "ended")
    run.phase = "ended"


def reopen_shards(run: RunState) -> None:
    """The run goes on, at what is open in it and what never began."""
    for shard in list(run.shards.values()):
        shard.open = [index for index in range(shard.start, shard.next) if index in run.frames]
        shard.losses = 0
        _move(run, shard, "ready")
        settle_shard(run, shard)
    open_shards(run)


def cut_out_shard(run: RunState, shard: Shard) -> RunState:
    """The run as the owner of a shard sees it: there is no other, and none will be opened."""
    loop = require_loop(run)
    frames = {index: run.frames[index] for index in shard.open}
    return replace(
        run,
        frames=frames,
        busy=OrderedSet.of(str(index) for index in frames if str(index) in run.busy),
        suspended=0,
        shards={shard.start: shard},
        ready_shards=OrderedSet(),
        leased_shards={shard.fence: shard.start},
        loop=LoopState(loop.items, loop.total, loop.max_in_flight, loop.total, shard_size=loop.shard_size),
    )


def unbegun(run: RunState) -> set[int]:
    """Iterations of shards that have not begun."""
    return {index for shard in run.shards.values() for index in range(shard.next, shard.end)}


def is_through(run: RunState) -> bool:
    """Whether all that shards had to do is done, so that the server ends the loop."""
    loop = run.loop
    if loop is None or not loop.shard_size or run.phase == "ended" or run.frames:
        return False
    return loop.broken >= 0 or (not run.shards and loop.next >= loop.total)


def _waits(run: RunState, shard: Shard) -> bool:
    return bool(shard.open) and run.frames[shard.open[0]].suspension is not None


def _move(run: RunState, shard: Shard, phase: Phase, fence: int = 0) -> None:
    if shard.fence:
        del run.leased_shards[shard.fence]
    if phase == "ready":
        run.ready_shards.add(str(shard.start))
    else:
        run.ready_shards.discard(str(shard.start))
    if fence:
        run.leased_shards[fence] = shard.start
    shard.phase, shard.fence = phase, fence
    _settle_phase(run)


def _settle_phase(run: RunState) -> None:
    """What the run is as a whole, for whoever does not ask for its shards."""
    run.phase = "claimed" if run.leased_shards else "ready" if run.ready_shards else "suspended"
