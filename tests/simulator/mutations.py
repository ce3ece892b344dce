"""Bugs to plant: each takes a piece of a function's source and writes another in its place."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from textwrap import dedent
from typing import Any, NamedTuple


class Mutation(NamedTuple):
    """`function` is `module:name` or `module:Class.name`; `old` must stand in it exactly once.

    Where two parts of the system guard against the same, `also` is the other one.
    """

    name: str
    function: str
    old: str
    new: str
    also: "Mutation | None" = None


K = "noetl.kernel."
S = "noetl.stores.sqlite."
P = "noetl.server.plane."
W = "noetl.worker."
R = "noetl.server."

MUTATIONS = [
    Mutation(
        "a report is applied twice",
        K + "net.operations:decide_report",
        "recorded >= len(reported):\n        return []",
        "recorded >= len(reported):\n        return list(reported)",
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
        K + "net.operations:take_back",
        "if token.after_failure]",
        "if False]",
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
        "a discarded token is still watched",
        K + "state.marking:_leave",
        "unwatch(state.watchers, token.id, state.step_of(token).watches)",
        "pass",
    ),
    Mutation(
        "a routed run is routed again",
        K + "state.fold:_fold_next_evaluated",
        "del state.agenda[routing]",
        "pass",
    ),
    Mutation(
        "a signal is used twice", K + "state.fold:_fold_run_resumed", "_take_signal(state, signal)", "pass"
    ),
    Mutation("a run that ended still listens", K + "state.fold:_end_run", "if run.suspended:", "if False:"),
    Mutation(
        "contributions are written as they come",
        K + "state.fold:_fold_task_processed",
        "if not reducer_of(run, patch)",
        "if True",
    ),
    Mutation(
        "a resumed iteration offers an owned run",
        K + "state.marking:offer_run",
        "if run.claimable:",
        "if True:",
    ),
    Mutation("a lost attempt counts as none", K + "state.run_fold:_redeliver", "frame.losses += 1", "pass"),
    Mutation(
        "a lost attempt stays in flight", K + "state.run_fold:_redeliver", "frame.running = False", "pass"
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
        "if kind is not RunResumed:",
        "if True:",
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
        K + "state.run_state:RunState.startable",
        "min(left, loop.max_in_flight - len(self.frames), loop.low",
        "min(left, loop.low",
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
        "{frame.index}/",
        "{frame.index},{frame.losses}/",
    ),
    Mutation("iterations share a key", K + "pipeline.task_inputs:idempotency_key", "{frame.index}/", ""),
    Mutation(
        "a poll keeps its key", K + "pipeline.task_inputs:idempotency_key", "if frame.polls:", "if False:"
    ),
    Mutation(
        "a task is given up at the first loss",
        K + "pipeline.interpreter:advance_frame",
        "frame.losses >= MOST_LOSSES and frame.lost_workers >= MOST_LOSSES",
        "frame.losses >= 1",
    ),
    Mutation("a retried child is the child before", K + "pipeline.waits:attempt_id", "frame.attempt)", "1)"),
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
        "the end of an append is not marked",
        S + "batch:AppendBatch._add_events",
        "body, last, checksum)",
        "body, False, checksum)",
    ),
    Mutation(
        "the fence is not checked",
        K + "net.operations:decide_report",
        "run.owned_under(command.fence) if run is not None else None",
        "next(iter(run.owned_parts()), None) if run is not None else None",
        Mutation(
            "a lease is found by its run alone",
            P + "sessions:Leases.get",
            "self._by_run.get((execution_id, run), {}).get(fence)",
            "next(iter(self._by_run.get((execution_id, run), {}).values()), None)",
        ),
    ),
    Mutation(
        "a report with a gap before it is taken",
        K + "net.operations:decide_report",
        "recorded < 0",
        "False",
    ),
    Mutation(
        "a pause that comes too late stays",
        K + "net.operations:decide_report",
        " and not state.paused",
        " and False",
    ),
    Mutation(
        "any lost lease ends the present one",
        K + "net.operations:decide_lease_lost",
        "run.owned_under(command.fence) if run is not None else None",
        "next(iter(run.owned_parts()), None) if run is not None else None\n"
        "    command = command if owned is None else type(command)(command.run, owned.fence, command.reason)",
    ),
    Mutation(
        "resume leaves paused runs asleep", K + "net.operations:decide_resume", "if run.paused]", "if False]"
    ),
    Mutation(
        "a run sees later writes to ctx",
        K + "state.marking:fold_step_scheduled",
        "state.ctx.pinned()",
        "state.ctx",
    ),
    Mutation(
        "a write reaches those who pinned the ctx",
        K + "state.variables:Variables.write",
        "if self.shared:",
        "if False:",
    ),
    Mutation(
        "the last branch to end gives the result",
        K + "state.fold:_end_branch",
        "run.step.number >= state.ending:",
        "True:",
    ),
    Mutation(
        "results stand in order of arrival",
        K + "state.run_fold:_count_iteration",
        "_keep_result(loop, body.index, body.result)",
        "_keep_result(loop, loop.succeeded - 1, body.result)",
    ),
    Mutation(
        "a snapshot forgets the order of queues",
        K + "state.replay:_load",
        "return OrderedSet.of(value)",
        "return OrderedSet.of(sorted(value))",
    ),
    Mutation(
        "a worker gets a run without its last result",
        K + "state.replay:encode_run",
        "run_at_worker(run, shard), ",
        "run_at_worker(structs.replace(run, frames={index: structs.replace(frame, prev=None) "
        "for index, frame in run.frames.items()}), shard), ",
    ),
    Mutation(
        "the version is not compared",
        S + "batch:AppendBatch._judge",
        "append.expected_version != version",
        "False",
    ),
    Mutation(
        "timers stay in the store",
        S + "queries:insert_effects",
        'insert_rows(connection, f"clear_{name}", to_clear)',
        'insert_rows(connection, f"clear_{name}", [] if name == "timers" else to_clear)',
    ),
    Mutation(
        "messages are not kept",
        S + "queries:insert_effects",
        'insert_rows(connection, f"set_{name}", to_set)',
        'insert_rows(connection, f"set_{name}", [] if name == "outbox" else to_set)',
    ),
    Mutation(
        "messages that were sent stay",
        S + "write_jobs:delete_outbox_messages",
        'connection.execute(WRITE["sent"], (ids,))',
        "pass",
    ),
    # Sessions.
    Mutation(
        "a heartbeat keeps nothing",
        P + "sessions:Sessions.beat",
        "self._clock() + session.ttl",
        "session.expires",
    ),
    Mutation(
        "a worker whose leases are over takes what it gives back",
        "noetl.worker.session:RemoteWorker.lease_holds",
        "self._send(ClaimCredit(slots=0))",
        "pass",
    ),
    Mutation(
        "a worker that is heard again takes nothing",
        "noetl.worker.session:RemoteWorker.lease_holds",
        "self._send(ClaimCredit(slots=self._options.slots))",
        "pass",
    ),
    Mutation(
        "a session never ends", P + "sessions:Sessions._expire", "if session.expires <= now", "if False"
    ),
    Mutation(
        "a session has credit whatever it owns",
        P + "sessions:WorkerSession.credit",
        "self.slots - len(self.leases)",
        "self.slots",
    ),
    # Leases.
    Mutation(
        "a lease that ended stays with its session",
        P + "sessions:Leases.remove",
        "lease.session.leases.pop((execution_id, lease.fence), None)",
        "pass",
    ),
    Mutation(
        "what is given back is not taken",
        P + "worker_plane:WorkerPlane._release_runs",
        "if lease.held in set(message.runs)",
        "if False",
    ),
    Mutation(
        "a run is its worker's though that has left it",
        P + "report_recorder:ReportRecorder._record",
        "part.done and lease.owned is not None",
        "False",
    ),
    Mutation(
        "a worker gives up runs and says nothing",
        W + "session:RemoteWorker.lease_holds",
        "self._send(Release(runs=tuple(run.lease for run in runs)))",
        "pass",
    ),
    Mutation(
        "a worker that leaves waits for what it has lost",
        W + "runner:Runner.recheck",
        "if self._held and not claimed.owned:",
        "if False:",
    ),
    # Reports.
    Mutation(
        "a report is acknowledged before it is durable",
        P + "report_recorder:ReportRecorder.record",
        "all_durable(lives.values(), ",
        "all_durable((), ",
    ),
    Mutation(
        "one acknowledgement counts for all that was reported",
        W + "reporter:Reporter.acknowledge",
        "max(run.durable, part.start + len(part.events))",
        "run.reported",
    ),
    Mutation(
        "an acknowledgement forgets its commands",
        P + "sessions:Outgoing.take_now",
        "verdicts=verdicts, commands=commands)",
        "verdicts=verdicts)",
    ),
    Mutation(
        "of several acknowledgements one is sent",
        P + "sessions:Outgoing.take_now",
        "for number, verdicts in acks[:-1]",
        "for number, verdicts in ()",
    ),
    Mutation(
        "a worker that comes back is somebody else",
        P + "sessions:Sessions.open",
        "self._by_id.get(session_id)",
        "None",
    ),
    Mutation(
        "what a worker never saw stays its own",
        P + "worker_plane:WorkerPlane._tell_held",
        "if lease.held not in held",
        "if False",
    ),
    Mutation(
        "a worker that comes back hears nothing",
        P + "worker_plane:WorkerPlane._tell_held",
        "self._tell(lease, lease.news)",
        "pass",
    ),
    Mutation(
        "a lease lives from the answer to its heartbeat",
        W + "heartbeat:LeaseClock.beaten",
        "sent + self.ttl",
        "self.monotonic() + self.ttl",
    ),
    Mutation(
        "what is in the outbox when a server starts stays there",
        R + "server_engine:ServerEngine._take_up_rows",
        "self._outbox_pump.ring()",
        "pass",
    ),
    Mutation(
        "an older command takes the run that was claimed since",
        W + "remote_ledgers:RemoteExecutions.accept",
        "if held.fence > command.fence:",
        "if False:",
    ),
    Mutation(
        "a worker that leaves while it registers has slots",
        W + "session:RemoteWorker._connect",
        "if self._draining:",
        "if False:",
    ),
    Mutation(
        "a lost shard leaves its iteration in flight",
        K + "state.run_fold:release_shard",
        "[run.frames[index] for index in shard.open]",
        "[]",
    ),
    Mutation(
        "a shard that waits keeps its owner",
        K + "state.run_fold:_evolve_shard",
        "elif isinstance(body, of.RunSuspended):",
        "elif False:",
    ),
    # Messages between executions, and timers.
    Mutation(
        "the end of a child is told to nobody who is not there",
        "noetl.engine.children:Children._notify_parent",
        'elif service.serves:\n        self._put_message(live, "end", _ChildMessage(do="end"))',
        "elif service.serves:\n        pass",
    ),
    Mutation(
        "what was delivered stays in the outbox",
        "noetl.engine.children:Children._submit_end",
        "above.delivered += delivered",
        "pass",
    ),
    Mutation(
        "the next timer is forgotten",
        R + "row_pumps:TimerPump._pump",
        "self.arm(timer.due)",
        "pass",
    ),
    Mutation(
        "a server that starts again offers nothing",
        R + "server_engine:ServerEngine._restore_rows",
        "self._service.announce_offer(row)",
        "pass",
    ),
    Mutation(
        "what is in the outbox is not delivered",
        R + "server_engine:ServerEngine._on_rows",
        "self._outbox_pump.ring()",
        "pass",
    ),
    Mutation(
        "a server that starts again knows no leases",
        R + "server_engine:ServerEngine._restore_rows",
        "self.plane.restore_lease(lease)",
        "pass",
    ),
    Mutation(
        "a server that starts again forgets who waits for a time",
        R + "server_engine:ServerEngine._take_up_rows",
        "await self._timer_pump.start()",
        "pass",
    ),
    Mutation(
        "nobody wakes who waits for a time",
        R + "server_engine:ServerEngine._on_rows",
        "self._timer_pump.arm(min(due))",
        "pass",
    ),
    Mutation(
        "a worker waits a thousand times too long",
        W + "session:RemoteWorker._at",
        "/ 1e6",
        "/ 1e3",
    ),
]


@contextmanager
def planted(mutation: Mutation) -> Iterator[None]:
    """The engine has this bug while the context lasts."""
    with planted(mutation.also) if mutation.also is not None else nullcontext(), _planted_alone(mutation):
        yield


@contextmanager
def _planted_alone(mutation: Mutation) -> Iterator[None]:
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
