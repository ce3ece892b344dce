"""Whether a report can follow, tried on a copy of its run."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from noetl.events import bodies as of
from noetl.kernel.errors import WrongSequence
from noetl.kernel.state.agenda import OrderedSet
from noetl.kernel.state.run_fold import RUN_FOLDS, evolve_run, iteration_of
from noetl.kernel.state.run_state import Frame, RunState
from noetl.kernel.state.variables import Variables


def require_foldable(run: RunState, bodies: Iterable[of.EventBody]) -> None:
    """Raises WrongSequence unless these can happen in the run, one after the other. It is not changed."""
    trial = _trial_copy(run, {iteration_of(body) for body in bodies})
    for body in bodies:
        if trial.phase != "claimed":
            raise WrongSequence(f"{run.id} is {trial.phase}, so nothing can happen in it")
        if type(body) in RUN_FOLDS:
            try:
                evolve_run(trial, body)
            except (IndexError, KeyError, TypeError, ValueError) as fault:
                raise WrongSequence(f"{type(body).__name__} cannot happen in {run.id}: {fault!r}") from fault


def _trial_copy(run: RunState, iterations: Collection[int]) -> RunState:
    """A run that can be folded into without a trace in this one, as far as these iterations go."""
    frames = _frames_apart(run.frames, iterations)
    loop = run.loop
    if loop is not None:
        loop = replace(
            loop,
            ended=set(loop.ended),
            failures=list(loop.failures),
            results=list(loop.results),
            chunks=list(loop.chunks),
            contributions=dict(loop.contributions),
            failed_frames=dict(loop.failed_frames),
            kept_frames=_frames_apart(loop.kept_frames, iterations),
            redriven=list(loop.redriven),
            redone=dict(loop.redone),
        )
    return replace(
        run,
        frames=frames,
        loop=loop,
        busy=OrderedSet.of(run.busy),
        # Not only that of these iterations: where one fails, others end.
        shards={start: replace(shard, open=list(shard.open)) for start, shard in run.shards.items()},
        ready_shards=OrderedSet.of(run.ready_shards),
        leased_shards=dict(run.leased_shards),
        ctx=_written_apart(run.ctx),
        variables=_written_apart(run.variables),
    )


def _frames_apart(frames: dict[int, Frame], iterations: Collection[int]) -> dict[int, Frame]:
    """The same frames, but those of these iterations as copies."""
    apart = dict(frames)
    for index in iterations:
        if (frame := apart.get(index)) is not None:
            apart[index] = replace(
                frame, visits=dict(frame.visits), results=dict(frame.results), iter=_written_apart(frame.iter)
            )
    return apart


def _written_apart(variables: Variables) -> Variables:
    """The same, copied by its own first write; the original does not know of it."""
    return Variables(variables.values, shared=True, size=variables.size)
