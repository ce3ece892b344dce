"""The kernel: what events mean, what follows from a state, what a run wants next. No input or output.

Server side: `net.decider.handle(state, command, now)` decides, folds, and gives the events to append. Worker
side: `pipeline.interpreter.advance(run, now)` says what a run wants, `pipeline.policy.judge` what an outcome
means. Both share one fold, `state.fold.evolve`.
"""
