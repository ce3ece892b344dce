"""Bugs of routing, joins, loops and reducers to plant, for the oracle to find."""

from tests.simulator.mutations import Mutation

N = "noetl.kernel.net."
P = "noetl.kernel.pipeline."
S = "noetl.kernel.state."

NET_MUTATIONS = [
    # Routing
    Mutation("an exclusive router takes all", N + "routing:decide_routing", "break", "pass"),
    Mutation(
        "a guard that did not hold handles a failure",
        N + "routing:decide_routing",
        "for position in selected)\n    evaluated",
        "for position in range(len(arcs)))\n    evaluated",
    ),
    Mutation("an arc does not write", N + "routing:decide_routing", "scope.write(write)", "pass"),
    Mutation("arcs write, and nobody keeps it", N + "routing:decide_routing", "tuple(scope.patches)", "()"),
    Mutation(
        "failed iterations count as well done",
        N + "routing:_event_value",
        '"succeeded": run.loop.succeeded',
        '"succeeded": run.loop.total',
    ),
    Mutation(
        "a failed step does not write at its end",
        N + "routing:seal_run_end",
        "state.stopping\n",
        "state.stopping or isinstance(body, StepFailed)\n",
    ),
    Mutation(
        "a step that passes on forgets",
        S + "marking:fold_token_enqueued",
        "token.inherited = run.result",
        "pass",
    ),
    Mutation(
        "the first branch is passed on",
        S + "marking:fold_step_scheduled",
        "max(tokens, key=lambda token: token.source)",
        "tokens[0]",
    ),
    Mutation(
        "the result after a failure is lost",
        S + "execution_state:ExecutionState.branch_result",
        "self.ending_after_failure >= self.ending",
        "False",
    ),
    Mutation(
        "output is read from what failed", N + "quiescence:_finish", 'if status == "completed":', "if True:"
    ),
    Mutation(
        "a later run hides a failure", S + "execution_state:StepSummary.worst", "if self.failed:", "if False:"
    ),
    # Joins
    Mutation(
        "the youngest join fires first", N + "quiescence:_earliest_join", "min(waiting)", "max(waiting)"
    ),
    Mutation(
        "joins fire by their place in the document",
        N + "quiescence:_earliest_join",
        "(int(join.arrivals[0][1:]), number)",
        "(number, number)",
    ),
    Mutation(
        "a remainder that a retry needs is discarded",
        N + "quiescence:_leftovers",
        "if not is_held_back(state, number):",
        "if True:",
    ),
    Mutation(
        "a join that a retry needs fires",
        N + "quiescence:_earliest_join",
        "and not is_held_back(state, number)",
        "",
    ),
    Mutation(
        "a count takes what is there",
        N + "quiescence:decide_join",
        "join.arrivals[: policy.count or 1]",
        "join.arrivals",
    ),
    Mutation(
        "a count waits for one more",
        S + "marking:fold_token_admitted",
        ">= (policy.count or 1)",
        "> (policy.count or 1)",
    ),
    Mutation(
        "the first token's args win", N + "admission:_merged_args", "in tokens:", "in reversed(tokens):"
    ),
    Mutation(
        "joined is in the wrong order",
        S + "marking:fold_step_scheduled",
        "joined_entry(state, token) for token in tokens",
        "joined_entry(state, token) for token in reversed(tokens)",
    ),
    Mutation(
        "a run of a join on a cycle is not waited for",
        S + "execution_state:ExecutionState.can_reach",
        "plan.above & plan.bit and at.runs > 0",
        "False",
    ),
    Mutation(
        "a failed run of a join on a cycle is not waited for",
        S + "execution_state:ExecutionState.can_reach",
        "or self.failing & plan.above & plan.bit",
        "",
    ),
    Mutation(
        "a join of all waits for its own run where there is no way back",
        S + "execution_state:ExecutionState.can_reach",
        "bool(plan.above & plan.bit and at.runs > 0)",
        "at.runs > 0",
    ),
    Mutation(
        "a join of any arms again at once",
        S + "marking:_complete_join",
        "waiting.absorbing and bool(waiting.arrivals)",
        "False",
    ),
    Mutation(
        "tokens at other joins are not waited for",
        S + "marking:fold_token_admitted",
        "occupancy.joined += 1",
        "occupancy.joined += 1\n    state.occupied &= ~(1 << plan.number)",
    ),
    # Loops
    Mutation("a failed loop begins more", S + "run_state:RunState.startable", "or loop.broken >= 0", ""),
    Mutation(
        "the window is one too wide",
        S + "run_state:RunState.startable",
        "loop.low + window",
        "loop.low + window + 1",
    ),
    Mutation(
        "a sequential loop is not",
        P + "loops:start_loop",
        '1 if loop.mode == "sequential" else _max_in_flight(scope, loop.max_in_flight)',
        "_max_in_flight(scope, loop.max_in_flight)",
    ),
    Mutation(
        "results end with the last that succeeded",
        P + "loops:end_loop",
        "[*loop.results, *[None] * (loop.total - loop.base - len(loop.results))]",
        "list(loop.results)",
    ),
    Mutation("a loop that failed is done", P + "loops:end_loop", "loop.broken >= 0", "False"),
    Mutation("best effort is not made", S + "run_fold:_count_iteration", '== "fail_fast"', '!= ""'),
    Mutation("failures are not counted", S + "run_fold:_count_iteration", "loop.failed += 1", "pass"),
    Mutation(
        "what is written in a loop is not seen in it",
        S + "run_fold:apply_patch",
        "run.ctx.write(patch.path, patch.value)",
        "pass",
    ),
    # Reducers
    Mutation(
        "a failed iteration contributes",
        S + "run_fold:_count_iteration",
        "loop.failed += 1",
        "loop.failed += 1\n    loop.contributions[body.index] = frame.contributions",
    ),
    Mutation(
        "only the last write of an iteration counts",
        P + "loops:reduce_contributions",
        "gathered.setdefault((patch.scope, *patch.path), (patch, []))[1].append(patch.value)",
        "gathered.setdefault((patch.scope, *patch.path), (patch, []))[1][index:] = [patch.value]",
    ),
    Mutation(
        "reduced onto what was there at the start",
        P + "loops:reduce_contributions",
        '{"ctx": ctx, ',
        '{"ctx": run.ctx.values, ',
    ),
    Mutation(
        "a sum forgets what was there", S + "reducers:_sum", "0 if base is None else _number(base)", "0"
    ),
    Mutation("a count forgets what was there", S + "reducers:_count", "_sum(base,", "_sum(None,"),
    Mutation("min forgets what was there", S + "reducers:_min", "if base is None", "if True"),
    Mutation("max forgets what was there", S + "reducers:_max", "if base is None", "if True"),
    Mutation("max is min", S + "reducers:_max", "return max(", "return min("),
    Mutation("append flattens", S + "reducers:_append", "*contributions]", "*_concat(None, contributions)]"),
    Mutation(
        "concat is backwards",
        S + "reducers:_concat",
        "for value in contributions for item",
        "for value in reversed(contributions) for item",
    ),
    Mutation(
        "texts are concatenated backwards",
        S + "reducers:_concat",
        '(base or "", *contributions)',
        '(*contributions, base or "")',
    ),
    Mutation(
        "merge keeps the first",
        S + "reducers:_merge",
        "merged.update(value)",
        "merged.update({k: v for k, v in value.items() if k not in merged})",
    ),
    Mutation(
        "merge is deep",
        S + "reducers:_merge",
        "merged.update(value)",
        "merged.update({k: {**merged[k], **v} if isinstance(v, dict) and isinstance(merged.get(k), dict) else v for k, v in value.items()})",
    ),
    Mutation("union takes 1 for true", S + "reducers:_identity", "(isinstance(value, bool), value)", "value"),
    Mutation(
        "union takes 1 for another 1.0",
        S + "reducers:_identity",
        "(isinstance(value, bool), value)",
        "(type(value), value)",
    ),
    Mutation(
        "union takes 1 for true in lists",
        S + "reducers:_identity",
        '("list", *map(_identity, value))',
        '("list", *value)',
    ),
    Mutation(
        "union takes 1 for true in mappings",
        S + "reducers:_identity",
        "(key, _identity(item))",
        "(key, str(item) if isinstance(item, list) else item)",
    ),
    Mutation("union sorts", S + "reducers:_union", "return items", "return sorted(items, key=str)"),
    Mutation("first is last", S + "reducers:_first", "contributions[0]", "contributions[-1]"),
    Mutation(
        "first is what was there",
        S + "reducers:_first",
        "return contributions[0]",
        "return contributions[0] if _ is None else _",
    ),
    Mutation("last is first", S + "reducers:_last", "contributions[-1]", "contributions[0]"),
]
