"""Bugs to plant: each takes a piece of a function's source and writes another in its place."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from textwrap import dedent
from typing import Any, NamedTuple


class Mutation(NamedTuple):
    """`function` is `module:name` or `module:Class.name`; `old` must stand in it exactly once."""

    name: str
    function: str
    old: str
    new: str


K = "noetl.kernel."
S = "noetl.stores.sqlite."

MUTATIONS = [
    Mutation(
        "the fence is not checked", K + "net.operations:decide_report", "run.fence != command.fence", "False"
    ),
    Mutation(
        "a report is applied twice",
        K + "net.operations:decide_report",
        "<= run.reported:\n        return []",
        "<= run.reported:\n        return list(command.bodies)",
    ),
    Mutation(
        "a report with a gap before it is taken",
        K + "net.operations:decide_report",
        "command.report_no > run.reported",
        "False",
    ),
    Mutation(
        "a pause that comes too late stays",
        K + "net.operations:decide_report",
        "if not state.paused",
        "if False",
    ),
    Mutation(
        "any lost lease ends the present one",
        K + "net.operations:decide_lease_lost",
        "or run.fence != command.fence",
        "",
    ),
    Mutation(
        "resume leaves paused runs asleep", K + "net.operations:decide_resume", "if run.paused", "if False"
    ),
    Mutation(
        "cancel forgets suspended runs", K + "net.decider:_unowned", '("ready", "suspended")', '("ready",)'
    ),
    Mutation(
        "what an append left over is not decided",
        K + "net.decider:decision_due",
        "return len(state.agenda) > 0 or not (state.runs or state.waiting)",
        "return False",
    ),
    Mutation(
        "the remainder of a join is kept",
        K + "net.quiescence:_leftovers",
        "for token in join.arrivals]",
        "for token in ()]",
    ),
    Mutation(
        "a join is counted early",
        K + "state.execution_state:ExecutionState.can_reach",
        "(self.occupied | self.failing) & plan.above & ~plan.bit",
        "False",
    ),
    Mutation(
        "a failed branch holds no join back",
        K + "state.execution_state:ExecutionState.can_reach",
        "(self.occupied | self.failing)",
        "self.occupied",
    ),
    Mutation(
        "a retry leaves what came of the failure",
        K + "net.operations:decide_retry",
        "if token.after_failure",
        "if False",
    ),
    Mutation(
        "what failed is settled by a limit",
        K + "state.fold:_end_run",
        "reopens=state.cut_short and not run.final",
        "reopens=False",
    ),
    Mutation(
        "a join does not see tokens on their way in",
        K + "state.execution_state:ExecutionState.can_reach",
        "at.pending > 0",
        "False",
    ),
    Mutation(
        "a join of any takes every token",
        K + "state.marking:fold_step_scheduled",
        "join.absorbing = bool(join.arrivals) or state.can_reach(plan.number)",
        "join.absorbing = False",
    ),
    Mutation(
        "a run sees later writes to ctx",
        K + "state.marking:fold_step_scheduled",
        "state.ctx.pinned()",
        "state.ctx",
    ),
    Mutation(
        "a discarded token is still watched",
        K + "state.marking:_leave",
        "unwatch(state.watchers, token.id, state.step_of(token).watches)",
        "pass",
    ),
    Mutation(
        "a write reaches those who pinned the ctx",
        K + "state.variables:Variables.write",
        "if self.shared:",
        "if False:",
    ),
    Mutation(
        "a routed run is routed again",
        K + "state.fold:_fold_next_evaluated",
        "state.agenda.discard(routing)",
        "pass",
    ),
    Mutation("a signal is used twice", K + "state.fold:_fold_run_resumed", "queue.pop(0)", "pass"),
    Mutation("a run that ended still listens", K + "state.fold:_end_run", "if run.suspended:", "if False:"),
    Mutation(
        "the last branch to end gives the result",
        K + "state.fold:_end_branch",
        "run.step.number >= state.ending:",
        "True:",
    ),
    Mutation(
        "contributions are written as they come",
        K + "state.fold:_fold_task_processed",
        "if not reducer_of(run, patch)",
        "if True",
    ),
    Mutation(
        "a resumed iteration offers an owned run",
        K + "state.fold:_offer",
        'if run.phase == "ready":',
        "if True:",
    ),
    Mutation("a lost attempt counts as none", K + "state.run_fold:release_run", "frame.losses += 1", "pass"),
    Mutation(
        "a lost attempt stays in flight", K + "state.run_fold:release_run", "frame.running = False", "pass"
    ),
    Mutation(
        "losses are carried to the next task",
        K + "state.run_fold:fold_task_processed",
        "frame.losses = frame.given_back = 0",
        "pass",
    ),
    Mutation(
        "a resume counts as reported",
        K + "state.run_fold:evolve_run",
        "if type(body) is not of.RunResumed:",
        "if True:",
    ),
    Mutation(
        "results stand in order of arrival",
        K + "state.run_fold:_count_iteration",
        "_keep_result(loop, body.index, body.result)",
        "_keep_result(loop, loop.succeeded - 1, body.result)",
    ),
    Mutation(
        "a retry forgets failed iterations",
        K + "state.run_fold:reopen_run",
        "run.frames.update(loop.failed_frames)",
        "pass",
    ),
    Mutation(
        "reducers in order of arrival",
        K + "pipeline.loops:reduce_contributions",
        "sorted(run.loop.contributions)",
        "run.loop.contributions",
    ),
    Mutation(
        "too many iterations in flight",
        K + "state.run_state:RunState.can_start",
        "len(self.frames) < loop.max_in_flight and",
        "",
    ),
    Mutation(
        "a redelivery is a new attempt",
        K + "pipeline.task_inputs:_render_attempt",
        "redelivered = frame.losses > 0",
        "redelivered = False",
    ),
    Mutation(
        "a redelivery has a new key",
        K + "pipeline.task_inputs:idempotency_key",
        "str(frame.index)",
        "str((frame.index, frame.losses))",
    ),
    Mutation("iterations share a key", K + "pipeline.task_inputs:idempotency_key", "str(frame.index), ", ""),
    Mutation(
        "a poll keeps its key", K + "pipeline.task_inputs:idempotency_key", "if frame.polls:", "if False:"
    ),
    Mutation(
        "a task is given up at the first loss",
        K + "pipeline.interpreter:advance_frame",
        "frame.losses >= MOST_LOSSES and frame.lost_workers >= MOST_LOSSES",
        "frame.losses >= 1",
    ),
    Mutation("a retried child is the child before", K + "pipeline.waits:child_id", "frame.attempt)", "1)"),
    Mutation(
        "a snapshot is one event late",
        S + "write_jobs:put_snapshot",
        "x, version = identity",
        "x, version = identity\n    snapshot = snapshot._replace(seq=snapshot.seq - 1)",
    ),
    Mutation(
        "a snapshot is one event early",
        S + "reader:read_snapshot",
        "return Snapshot(seq,",
        "return Snapshot(seq + 1,",
    ),
    Mutation(
        "a snapshot forgets the order of queues",
        K + "state.replay:_load",
        "return OrderedSet.of(value)",
        "return OrderedSet.of(sorted(value))",
    ),
    Mutation(
        "a worker gets a run without its last result",
        K + "state.replay:dump_run",
        'return {"state": plain,',
        '[frame.update(prev=None) for frame in plain["frames"].values()]\n    return {"state": plain,',
    ),
    Mutation(
        "the version is not compared",
        S + "batch:AppendBatch._judge",
        "append.expected_version != version",
        "False",
    ),
    Mutation(
        "the end of an append is not marked",
        S + "batch:AppendBatch._add_events",
        "body, last, checksum)",
        "body, False, checksum)",
    ),
    Mutation(
        "timers stay in the store",
        S + "queries:insert_effects",
        'insert_rows(connection, "clear_timers", timers_to_clear)',
        "pass",
    ),
    Mutation(
        "messages are not kept",
        S + "queries:insert_effects",
        'insert_rows(connection, "set_messages", messages_to_set)',
        "pass",
    ),
    Mutation(
        "messages that were sent stay",
        S + "write_jobs:delete_outbox_messages",
        'connection.execute(WRITE["sent"], (ids,))',
        "pass",
    ),
]


@contextmanager
def planted(mutation: Mutation) -> Iterator[None]:
    """The engine has this bug while the context lasts."""
    module_name, _, path = mutation.function.partition(":")
    owner: Any = importlib.import_module(module_name)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    original = inspect.getattr_static(owner, name)
    broken = _broken(mutation, original, vars(sys.modules[module_name]))
    places = list(_places(original)) if inspect.ismodule(owner) else [partial(setattr, owner, name)]
    for put in places:
        put(broken)
    try:
        yield
    finally:
        for put in places:
            put(original)


def _broken(mutation: Mutation, original: Any, names: dict[str, Any]) -> Any:
    function: Any = original.fget if isinstance(original, property) else original
    source = dedent(inspect.getsource(function))
    assert source.count(mutation.old) == 1, (
        f"`{mutation.name}` no longer fits {mutation.function}: write it anew"
    )
    made: dict[str, Any] = {}
    broken = source.replace(mutation.old, mutation.new)
    exec(compile(broken, f"<{mutation.name}>", "exec", dont_inherit=True), names, made)  # noqa: S102 - our own source
    return made[function.__name__]


def _places(function: Any) -> Iterator[Callable[[Any], None]]:
    """Where the function is looked up: every module that imported it, and tables of functions."""
    for module in [module for name, module in sys.modules.items() if name.startswith("noetl.")]:
        for name, value in list(vars(module).items()):
            if value is function:
                yield partial(setattr, module, name)
            elif isinstance(value, dict):
                for key in [key for key, entry in value.items() if entry is function]:
                    yield partial(value.__setitem__, key)
