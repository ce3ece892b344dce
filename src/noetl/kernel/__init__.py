"""The kernel: what events mean, what follows from a state, what a run wants next. No input or output."""
